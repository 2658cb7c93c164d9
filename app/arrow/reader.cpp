#include "app/arrow/reader.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/digest.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/summary.h"
#include "app/arrow/table.h"
#include "app/store/recording.h"
#include "app/store/wall_clock.h"
#include "instrumentation/plain_text.h"

namespace {

using shardscope::arrow::Batch;
using shardscope::arrow::Filter;
using shardscope::arrow::Rows;

/// A store is used by one thread at a time. The streams of a recording share it: either may be closed first.
struct Opened {
  std::mutex one_at_a_time;
  shardscope::store::RecordingInfo info;
  shardscope::store::Store store;
};

/// Cache for decoded blocks. Streams read each lane from front to back, so few blocks are read twice.
constexpr std::size_t kCacheBytes = std::size_t{64} << 20;

thread_local std::string last_error;

/// Runs `work`. An exception sets last_error and returns `failed`.
template <typename Result, typename Work>
Result guarded(Result failed, Work work) noexcept {
  try {
    return work();
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "an error without words";
  }
  return failed;
}

struct Stream {
  std::shared_ptr<Opened> opened;
  std::unique_ptr<Rows> rows;
  std::size_t batch_rows = 0;
  bool more = true;
  std::string error;
};

Stream& stream_of(ArrowArrayStream* stream) { return *static_cast<Stream*>(stream->private_data); }

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  Stream& of = stream_of(stream);
  const int failed = guarded(EIO, [&] {
    shardscope::arrow::export_schema(of.rows->schema(), *out);
    return 0;
  });
  if (failed != 0) of.error = last_error;
  return failed;
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  Stream& of = stream_of(stream);
  std::memset(out, 0, sizeof *out);  // no release(): end of stream
  const int failed = guarded(EIO, [&] {
    if (!of.more) return 0;
    Batch batch(of.rows->schema());
    {
      const std::lock_guard<std::mutex> lock(of.opened->one_at_a_time);
      of.more = of.rows->fill(batch, of.batch_rows);
    }
    if (batch.rows() > 0) batch.release_to(*out);
    return 0;
  });
  if (failed != 0) of.error = last_error;
  return failed;
}

const char* get_last_error(ArrowArrayStream* stream) {
  const std::string& error = stream_of(stream).error;
  return error.empty() ? nullptr : error.c_str();
}

void release(ArrowArrayStream* stream) {
  delete static_cast<Stream*>(stream->private_data);
  stream->release = nullptr;
}

Filter filter_of(const shardscope_filter& given) {
  Filter out;
  out.ranks.assign(given.ranks, given.ranks + given.rank_count);
  out.kinds.assign(given.kinds, given.kinds + given.kind_count);
  out.steps.assign(given.steps, given.steps + given.step_count);
  out.begin_ns = given.begin_ns;
  out.end_ns = given.end_ns;
  return out;
}

std::string summary_json(const Opened& opened) {
  namespace analysis = shardscope::analysis;
  return shardscope::instrumentation::plain_json(
      analysis::to_json(analysis::whole_summary(opened.store, opened.info)));
}

std::string findings_json(const Opened& opened) {
  namespace analysis = shardscope::analysis;
  const analysis::Digest digest = analysis::digest_of(opened.store);
  const analysis::Summary summary = analysis::summarize(opened.store, opened.info, digest);
  const bool simulated = opened.store.has_tables() && opened.store.tables().simulated;
  return shardscope::instrumentation::plain_json(
      analysis::findings_json(analysis::find(opened.store, summary, digest), simulated));
}

std::string info_json(const Opened& opened) {
  const shardscope::store::RecordingInfo& info = opened.info;
  std::vector<std::string> problems = info.problems;
  for (const std::string& problem : opened.store.problems()) problems.push_back(problem);
  const std::optional<std::int64_t> unix_ns = shardscope::store::unix_offset_ns(info.path);
  const nlohmann::json begin =
      unix_ns ? nlohmann::json(opened.store.origin_ns() + *unix_ns) : nlohmann::json();
  const nlohmann::json out = {{"path", info.path},
                              {"begin_unix_ns", begin},
                              {"format_version", info.format_version},
                              {"complete", info.complete && problems.empty()},
                              {"events", info.events},
                              {"file_bytes", info.file_bytes},
                              {"problems", problems}};
  return shardscope::instrumentation::plain_json(shardscope::analysis::to_text(out));
}

}  // namespace

struct shardscope_recording {
  std::shared_ptr<Opened> opened;
};

extern "C" {

const char* shardscope_reader_error() { return last_error.c_str(); }

shardscope_recording* shardscope_reader_open(const char* path, int check) {
  return guarded(static_cast<shardscope_recording*>(nullptr), [&] {
    using shardscope::store::Verify;
    auto opened = std::make_shared<Opened>();
    opened->store = shardscope::store::open_recording(path, &opened->info,
                                                      check != 0 ? Verify::everything : Verify::as_read);
    opened->store.set_cache_bytes(kCacheBytes);
    return std::make_unique<shardscope_recording>(shardscope_recording{std::move(opened)}).release();
  });
}

void shardscope_reader_close(shardscope_recording* recording) { delete recording; }

char* shardscope_reader_json(shardscope_recording* recording, const char* what) {
  return guarded(static_cast<char*>(nullptr), [&] {
    Opened& opened = *recording->opened;
    const std::lock_guard<std::mutex> lock(opened.one_at_a_time);
    const std::string name = what;
    if (name == "summary") return strdup(summary_json(opened).c_str());
    if (name == "findings") return strdup(findings_json(opened).c_str());
    if (name == "info") return strdup(info_json(opened).c_str());
    throw std::runtime_error(name + ": none of summary, findings, info");
  });
}

void shardscope_reader_free(char* text) { std::free(text); }

int shardscope_reader_stream(shardscope_recording* recording, const char* table,
                             const shardscope_filter* filter, std::size_t batch_rows, ArrowArrayStream* out) {
  return guarded(1, [&] {
    auto stream = std::make_unique<Stream>();
    stream->opened = recording->opened;
    stream->batch_rows = batch_rows;
    Opened& opened = *recording->opened;
    const std::lock_guard<std::mutex> lock(opened.one_at_a_time);
    const Filter wanted = filter_of(*filter);
    stream->rows = shardscope::arrow::open_table(opened.store, opened.info, table, wanted);
    *out = {.get_schema = get_schema,
            .get_next = get_next,
            .get_last_error = get_last_error,
            .release = release,
            .private_data = stream.release()};
    return 0;
  });
}

}  // extern "C"
