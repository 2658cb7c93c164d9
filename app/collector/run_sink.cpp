#include "app/collector/run_sink.h"

#include <filesystem>
#include <utility>

#include "app/collector/for_store.h"
#include "app/collector/shared_lists.h"
#include "app/store/crc32.h"
#include "app/store/recorded_run.h"
#include "instrumentation/clock.h"

namespace shardscope::collector {

namespace {
std::vector<std::uint8_t> bytes_of(const wire::Header& from, wire::Tables tables) {
  wire::Message message;
  message.header = from;
  message.body = std::move(tables);
  const wire::Frame frame = wire::encode(message);
  return {frame.data(), frame.data() + frame.size()};
}
}  // namespace

RunSink::RunSink(const std::string& record_path, ViewLogLimits limits)
    : log_(
          record_path.empty() ? std::string() : std::filesystem::absolute(record_path).parent_path().string(),
          limits),
      held_([this](const store::Chunk& chunk, std::span<const std::byte> encoded) {
        if (encoded.empty()) {
          recording_->append(chunk);
        } else {
          recording_->append(chunk, encoded);
        }
      }) {}

void RunSink::open_recording(const std::string& path, const store::Retention& retention,
                             const instrumentation::HostClock& clock, const store::Rotation& rotation) {
  clock_ = clock;
  using WallClock = store::RecordingWriter::WallClock;
  recording_ =
      std::make_unique<store::RecordingWriter>(path, retention, WallClock::of_the_collector, rotation);
}

void RunSink::tables(const wire::Header& from, const wire::Tables& tables) {
  const instrumentation::RunTables& t = tables.tables;
  std::vector<std::uint8_t> whole_bytes = bytes_of(from, tables);
  const std::uint32_t crc = store::crc32c(whole_bytes.data(), whole_bytes.size());
  const auto [known, added] = tables_crc_.try_emplace(from.rank, crc);
  if (!added && std::exchange(known->second, crc) == crc) return;  // resent on request
  const bool first = !whole_ || whole_->rank == from.rank;
  const bool alike = !first && same_lists(*whole_, t);
  wire::Tables bare{t};
  bare.tables.drop_lists();
  // Viewers read the configuration of the first tables; it is most of the bytes of tables without lists.
  if (!first && whole_->config_json == t.config_json) bare.tables.config_json.clear();
  std::vector<std::uint8_t> bare_bytes = bytes_of(from, std::move(bare));
  wire::ViewItem item;
  item.kind = wire::ViewItem::Kind::tables;
  item.rank = from.rank;
  const bool no_lists = t.modules.empty() && t.params.empty() && t.slices.empty() && t.param_groups.empty();
  item.data = alike || (!first && no_lists) ? bare_bytes : std::move(whole_bytes);
  log_.add_tables(std::move(item), std::move(bare_bytes));
  if (first) whole_ = t;
  if (recording_) recording_->tables(from.rank, t);
  const std::lock_guard lock(store_mutex_);
  store_.set_tables(from.rank, t);
}

void RunSink::name(std::uint32_t rank, const wire::Name& name) {
  wire::ViewItem item;
  item.kind = wire::ViewItem::Kind::name;
  item.rank = rank;
  item.id = name.id;
  item.text = name.name;
  log_.add_name(std::move(item));
  if (recording_) recording_->name(rank, name.id, name.name);
  const std::lock_guard lock(store_mutex_);
  store_.add_name(rank, name.id, name.name);
}

void RunSink::chunk(store::Chunk& chunk) {
  std::vector<std::byte> encoded = chunk.encode();
  wire::ViewItem item;
  item.kind = wire::ViewItem::Kind::chunk;
  item.rank = chunk.rank;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(encoded.data());
  item.data.assign(bytes, bytes + encoded.size());
  log_.append(std::move(item));
  {
    const std::lock_guard lock(store_mutex_);
    store_.ingest(chunk);
  }
  if (recording_) held_.add(chunk, std::move(encoded), instrumentation::monotonic_now_ns());
}

void RunSink::rank(const store::RankRow& row) {
  if (recording_) recording_->rank(row);
  const std::lock_guard lock(store_mutex_);
  store_.set_rank(for_store(row));
}

void RunSink::message(std::uint32_t rank, std::int64_t at_ns, instrumentation::Severity severity,
                      const std::string& text) {
  wire::ViewItem item;
  item.kind = wire::ViewItem::Kind::message;
  item.rank = rank;
  item.at_ns = at_ns;
  item.severity = severity;
  item.text = text.substr(0, wire::kMaxText);
  log_.append(std::move(item));
  // The recording must contain the run's first event, like the store: times of messages are relative to
  // that.
  if (recording_) held_.record_all();
  const std::lock_guard lock(store_mutex_);
  const store::Message message{in_run_time(at_ns, store_), rank, severity, text};
  if (recording_) recording_->message(message);
  store_.add_message(message);
}

void RunSink::keep(store::Moment moment) {
  if (recording_) recording_->keep(std::move(moment));
}

std::string RunSink::commit() {
  if (!recording_) return {};
  held_.record_due(instrumentation::monotonic_now_ns());
  // This thread alone changes the store.
  const std::int64_t now_ns = clock_.at(instrumentation::monotonic_now_ns());
  recording_->retain(store_, now_ns);
  if (std::string text = recording_->take_warning(); !text.empty()) {
    message(0, now_ns, instrumentation::Severity::warning, text);
    const std::lock_guard lock(warning_mutex_);
    warning_ = std::move(text);
  }
  recording_->commit();
  return recording_->error();
}

std::string RunSink::finish() {
  if (!recording_) return {};
  held_.record_all();
  const std::lock_guard lock(store_mutex_);
  // The file's table of steps: those of a node's ranks have ended, however short the run was.
  store::RecordedRun(store_).all_ranks_came();
  recording_->finish(store_);
  const std::string error = recording_->error();
  recording_.reset();
  return error;
}

std::string RunSink::take_warning() {
  const std::lock_guard lock(warning_mutex_);
  return std::exchange(warning_, {});
}

void RunSink::read(const std::function<void(const store::Store&)>& reader) const {
  const std::lock_guard lock(store_mutex_);
  reader(store_);
}

}  // namespace shardscope::collector
