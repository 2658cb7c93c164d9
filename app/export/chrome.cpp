#include "app/export/chrome.h"

#include <bit>
#include <cmath>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <unordered_map>

#include "app/export/counter_samples.h"
#include "app/export/json_text.h"
#include "app/export/output_file.h"
#include "app/export/span_walk.h"
#include "app/export/trace_contents.h"
#include "app/store/gap_text.h"
#include "app/store/gather_contents.h"
#include "app/store/lane_name.h"
#include "app/store/names.h"
#include "app/store/rank_end.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
using ev::EventKind;
using store::Span;
using store::Store;

constexpr std::size_t kFlushBytes = 1U << 16;

/// tid of a stream: viewers sort by tid; HTA and TraceLens read args.stream instead.
int tid_of(ev::StreamId stream) noexcept { return static_cast<int>(stream) + 1; }

class ChromeWriter {
 public:
  ChromeWriter(std::ostream& out, const Store& store, const ExportPart& part)
      : out_(out), store_(store), part_(part) {}

  void write() {
    header();
    for (const store::RankRow& rank : store_.ranks()) {
      if (!part_.has_rank(rank.rank)) continue;
      metadata(rank);
      params_ = params_of(store_, rank.rank, part_);
      for (const store::LaneId lane : store_.lanes()) {
        if (lane.rank == rank.rank) spans(lane);
      }
      flows(rank.rank);
      instants(rank.rank);
      memory(rank.rank);
      counters(rank.rank);
    }
    run_counters();
    gaps();
    rank_ends();
    messages();
    text_ += "\n]}\n";
    flush();
  }

 private:
  [[nodiscard]] std::optional<std::uint32_t> first_rank() const {
    for (const store::RankRow& row : store_.ranks()) {
      if (part_.has_rank(row.rank)) return row.rank;
    }
    return std::nullopt;
  }

  void header() {
    const ev::RunTables& run = store_.tables();
    text_ += "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":" +
             std::to_string(store_.origin_ns());
    text_ += ",\"distributedInfo\":{\"backend\":";
    append_json(text_, run.device == "cuda" ? "nccl" : "mpi");
    text_ += ",\"rank\":" + std::to_string(first_rank().value_or(0)) +
             ",\"world_size\":" + std::to_string(run.world) + "}";
    text_ += ",\"traceName\":";
    append_json(text_, run.run_id);
    text_ += ",\"shardscope\":{\"model\":";
    append_json(text_, run.model);
    text_ += ",\"zero_stage\":" + std::to_string(run.stage) +
             ",\"simulated\":" + (run.simulated ? "true" : "false");
    text_ += ",\"emulated_link_gbps\":";
    if (!append_json(text_, run.link_gbps)) text_ += "0";
    text_ += ",\"dropped_events\":" + std::to_string(store_.dropped_count()) + "}";
    text_ += ",\"traceEvents\":[";
  }

  /// Begins an event; the caller appends its arguments and calls close().
  void open(const char* phase, std::string_view name, const char* category, std::uint32_t pid, int tid,
            std::int64_t ns) {
    begun_ = text_.size();
    was_first_ = first_;
    named_ = *phase == 'M';
    from_ns_ = until_ns_ = ns;
    if (std::exchange(pid_, pid) != pid) range_ = part_.of(pid_);
    text_ += first_ ? "\n{\"ph\":\"" : ",\n{\"ph\":\"";
    first_ = false;
    text_ += phase;
    text_ += "\",\"name\":";
    append_json(text_, name);
    text_ += ",\"cat\":\"";
    text_ += category;
    text_ += "\",\"pid\":" + std::to_string(pid) + ",\"tid\":" + std::to_string(tid) + ",\"ts\":";
    append_us(text_, ns);
  }
  /// Ends an event, or removes it if it is outside the exported range.
  void close() {
    if (!named_ && !range_.overlaps(from_ns_, until_ns_)) {
      text_.resize(begun_);
      first_ = was_first_;
      return;
    }
    text_ += '}';
    if (text_.size() > kFlushBytes) flush();
  }
  void flush() {
    out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
    if (!out_) throw std::runtime_error("Chrome trace: cannot write it; the disk may be full");
  }
  void argument(const char* key, std::int64_t value) {
    text_ += text_.back() == '{' ? "\"" : ",\"";
    text_ += key;
    text_ += "\":" + std::to_string(value);
  }
  void argument(const char* key, std::string_view value) {
    text_ += text_.back() == '{' ? "\"" : ",\"";
    text_ += key;
    text_ += "\":";
    append_json(text_, value);
  }

  class Sink final : public ArgumentSink {
   public:
    explicit Sink(ChromeWriter& writer) : writer_(writer) {}
    void number(const char* key, std::int64_t value) override { writer_.argument(key, value); }
    void text(const char* key, std::string_view value) override { writer_.argument(key, value); }

   private:
    ChromeWriter& writer_;
  };

  void metadata(const store::RankRow& rank) {
    const auto name_thing = [&](const char* what, int tid, const std::string& name) {
      open("M", what, "__metadata", rank.rank, tid, 0);
      text_ += ",\"args\":{";
      argument("name", name);
      text_ += '}';
      close();
    };
    const auto sort_thing = [&](const char* what, int tid, std::int64_t index) {
      open("M", what, "__metadata", rank.rank, tid, 0);
      text_ += ",\"args\":{";
      argument("sort_index", index);
      text_ += '}';
      close();
    };
    name_thing("process_name", 0,
               "rank " + std::to_string(rank.rank) + (rank.host.empty() ? "" : " on " + rank.host) +
                   (store_.tables().simulated ? " (simulated)" : ""));
    sort_thing("process_sort_index", 0, rank.rank);
    for (const store::LaneId lane : store_.lanes()) {
      if (lane.rank != rank.rank) continue;
      name_thing("thread_name", tid_of(lane.stream), store::lane_name(store_, lane));
      sort_thing("thread_sort_index", tid_of(lane.stream), tid_of(lane.stream));
    }
  }

  static const char* category(const WalkedSpan& walked) noexcept {
    if (walked.span->kind == EventKind::transfer_begin)
      return walked.is_work ? "gpu_memcpy" : "user_annotation";
    if (walked.span->kind == EventKind::gpu_begin) {
      switch (ev::as<EventKind::gpu_begin>(*walked.span).work) {
        case ev::GpuWork::kernel:
          return "kernel";
        case ev::GpuWork::memset:
          return "gpu_memset";
        default:
          return "gpu_memcpy";
      }
    }
    if (walked.is_work) return "kernel";
    const bool waits =
        ev::role_of(walked.span->kind) == ev::EventRole::wait || walked.span->kind == EventKind::paused_begin;
    return waits ? "wait" : "user_annotation";
  }

  void spans(store::LaneId lane) {
    walk_part(store_, lane, part_, [&](const WalkedSpan& walked) {
      const Span& span = *walked.span;
      std::string name = span_label(store_, lane.rank, span);
      // HTA and TraceLens recognize communication by the prefix "nccl", as in PyTorch's traces.
      if (span.kind == EventKind::collective_begin) name.insert(0, "nccl:");
      open("X", name, category(walked), lane.rank, tid_of(lane.stream), span.begin_ns);
      text_ += ",\"dur\":";
      append_us(text_, walked.end_ns - span.begin_ns);
      until_ns_ = walked.end_ns;
      text_ += ",\"args\":{";
      span_arguments(lane, walked);
      text_ += '}';
      close();
    });
  }

  void span_arguments(store::LaneId lane, const WalkedSpan& walked) {
    const Span& span = *walked.span;
    if (walked.is_work) {
      argument("device", lane.rank);
      argument("stream", tid_of(lane.stream));
    }
    if (span.kind == EventKind::collective_begin) {
      const auto fields = ev::as<EventKind::collective_begin>(span);
      collective_arguments(fields, span.mark_ns);
      if (const auto moved = params_.find(fields.sequence); moved != params_.end())
        argument("holds", store::contents_text(store_, moved->second));
    }
    Sink sink(*this);
    exporter::span_arguments(walked, sink);
    if (!walked.time.ended) {
      argument("not_ended", 1);
      argument("not_ended_because", store::why_open(store_, lane.rank));
    }
  }

  /// The keys that TraceLens and other readers of NCCL arguments in PyTorch traces expect.
  void collective_arguments(const ev::Fields<EventKind::collective_begin>& fields, std::int64_t mark_ns) {
    const ev::RunTables& run = store_.tables();
    const std::int64_t world = std::max<std::uint32_t>(run.world, 1);
    const std::int64_t share = fields.elems / world;
    argument("correlation", fields.sequence);
    argument("External id", fields.sequence);
    argument("Collective name", store::name_of(fields.op));
    argument("In msg nelems", fields.op == ev::CollectiveOp::all_gather ? share : fields.elems);
    argument("Out msg nelems", fields.op == ev::CollectiveOp::reduce_scatter ? share : fields.elems);
    argument("Group size", world);
    argument("Process Group Name", std::to_string(fields.group));
    argument("bytes", fields.bytes);
    if (mark_ns != 0) {
      text_ += ",\"all_ranks_arrived_us\":";
      append_us(text_, mark_ns);
    }
  }

  void flows(std::uint32_t rank) {
    for (const Flow& flow : flows_of(store_, rank, part_)) {
      const char* name = flow.reduces ? "bucket" : "gather";
      const char* way = flow.reduces ? "reduce_to_wait" : "gather_to_wait";
      const ev::StreamId from = flow.reduces ? ev::StreamId::reduce : ev::StreamId::gather;
      open("s", name, way, rank, tid_of(from), flow.from_ns);
      text_ += ",\"id\":" + std::to_string(flow.id);
      close();
      open("f", name, way, rank, tid_of(ev::StreamId::compute), flow.to_ns);
      text_ += ",\"bp\":\"e\",\"id\":" + std::to_string(flow.id);
      close();
    }
  }

  void instants(std::uint32_t rank) {
    for_each_trace_instant(store_, rank, part_, [&](const TraceInstant& instant) {
      // A submission becomes a launch on the host, with the correlation of the collective that it launches.
      const bool launch = instant.event->kind == EventKind::collective_submitted;
      open(launch ? "X" : "i", instant.name, launch ? "cuda_runtime" : "instant", rank,
           tid_of(launch ? ev::StreamId::host : instant.event->stream), instant.at_ns);
      text_ += launch ? ",\"dur\":0,\"args\":{" : ",\"s\":\"t\",\"args\":{";
      Sink sink(*this);
      instant.arguments(sink);
      text_ += '}';
      close();
    });
  }

  void memory(std::uint32_t rank) {
    for (std::size_t p = 0; p < ev::kMemoryPoolCount; ++p) {
      const auto pool = static_cast<ev::MemoryPool>(p);
      if (!store_.memory_peak(rank, pool)) continue;
      const std::string name = std::string("memory ") + store::name_of(pool) + " (bytes)";
      std::int64_t last = -1;
      const auto counter = [&](std::int64_t at) {
        last = at;
        const store::MemorySample sample = store_.memory_at(rank, pool, at);
        open("C", name, "memory", rank, 0, at);
        text_ += ",\"args\":{";
        for (std::size_t c = 0; c < sample.bytes.size(); ++c) {
          argument(store::name_of(static_cast<ev::MemoryCategory>(c)), sample.bytes[c]);
        }
        text_ += '}';
        close();
      };
      const auto begin = state_begins(store_, rank, part_);
      if (begin && part_.has_kind(EventKind::memory_alloc)) counter(*begin);
      for_each_instant(store_, rank, part_, [&](const ev::Event& event) {
        if (event.kind != EventKind::memory_alloc && event.kind != EventKind::memory_free) return;
        const auto at = static_cast<std::int64_t>(event.ticks);
        if (ev::as<EventKind::memory_alloc>(event).pool != pool || at == last)
          return;  // one sample for each instant
        counter(at);
      });
    }
  }

  void counters(std::uint32_t rank) {
    for_each_counter_sample(
        store_, rank, part_,
        [&](const analysis::CounterSeries& series, const analysis::CounterSample& sample) {
          if (!std::isfinite(sample.value)) return;  // JSON has no such number
          const std::string title = title_of(series);
          open("C", title, "counter", rank, 0, sample.at_ns);
          text_ += ",\"args\":{";
          append_json(text_, title);
          text_ += ':';
          (void)append_json(text_, sample.value);
          text_ += '}';
          close();
        });
  }

  void run_counters() {
    const auto pid = first_rank();
    if (!pid) return;
    for (const store::StepRow& step : store_.steps()) {
      if (!part_.has_end(step)) continue;
      const auto counter = [&](const char* name, double value) {
        if (!std::isfinite(value)) return;
        open("C", name, "training", *pid, 0, step.end_ns);
        from_ns_ = step.begin_ns;  // a part that contains the step contains its values
        text_ += ",\"args\":{\"";
        text_ += name;
        text_ += "\":";
        (void)append_json(text_, value);
        text_ += '}';
        close();
      };
      for (const store::StepValue& value : store::kStepValues) counter(value.name(), step.*value.member);
    }
  }

  /// Gaps as asynchronous events, since they may overlap.
  void gaps() {
    std::uint64_t id = 0;
    for (const store::Gap& gap : store_.gaps()) {
      if (!part_.has(gap)) continue;
      const std::string name = "missing: " + store::what_is_missing(gap);
      ++id;
      for (const char* phase : {"b", "e"}) {
        open(phase, name, "gap", gap.rank, 0, *phase == 'b' ? gap.begin_ns : gap.end_ns);
        text_ += ",\"id\":" + std::to_string(id);
        from_ns_ = gap.begin_ns;  // the whole gap, so that begin and end are both exported or neither
        until_ns_ = gap.end_ns;
        close();
      }
    }
  }

  /// Marks where a rank ended abnormally, which is why its slices stop there.
  void rank_ends() {
    for (const store::RankRow& rank : store_.ranks()) {
      if (!part_.has_rank(rank.rank)) continue;
      const store::RankEnd end = store::rank_end(store_, rank);
      if (!store::is_failure(end.how)) continue;
      open("i", store::text_of(end), "rank_end", rank.rank, tid_of(ev::StreamId::host), end.at_ns);
      text_ += ",\"s\":\"p\",\"args\":{";
      argument("exit_message", std::string_view(end.exit_message));
      text_ += '}';
      close();
    }
  }

  void messages() {
    for (const store::Message& message : store_.messages()) {
      if (!part_.has(message)) continue;
      open("i", message.text, "message", message.rank, tid_of(ev::StreamId::host), message.at_ns);
      text_ += ",\"s\":\"p\",\"args\":{";
      argument("severity", store::name_of(message.severity));
      text_ += '}';
      close();
    }
  }

  std::ostream& out_;
  const Store& store_;
  const ExportPart& part_;
  std::string text_;
  bool first_ = true;
  // The event opened last.
  std::size_t begun_ = 0;
  bool was_first_ = true, named_ = false;
  std::int64_t from_ns_ = 0, until_ns_ = 0;
  std::uint32_t pid_ = ev::kNoId;
  TimeRange range_;                                                       ///< of the current rank
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> params_;  ///< by collective, of one rank
};

}  // namespace

void write_chrome(std::ostream& out, const Store& store, const ExportPart& part) {
  ChromeWriter(out, store, part).write();
}

void write_chrome(const std::string& path, const Store& store, const ExportPart& part) {
  OutputFile file(path);
  file.write([&](std::ostream& out) { write_chrome(out, store, part); });
  file.commit();
}

}  // namespace shardscope::exporter
