// The tables spans, events and memory, read block by block.
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "app/arrow/event_columns.h"
#include "app/arrow/table_definition.h"
#include "app/export/span_walk.h"
#include "app/store/names.h"
#include "instrumentation/event_table.h"

namespace shardscope::arrow {
namespace {

using ev::EventKind;
using store::Store;

std::vector<std::string> stream_names() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < ev::kStreamCount; ++i)
    names.emplace_back(store::name_of(static_cast<ev::StreamId>(i)));
  return names;
}
std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const ev::KindInfo& info : ev::event_kinds()) names.emplace_back(ev::name_of(info.kind));
  return names;
}
/// The index of a kind in kind_names().
std::size_t index_of(EventKind kind) { return static_cast<std::size_t>(kind) - 1; }

enum class Wanted : std::uint8_t { spans, instants };

/// The kind called `name`; a span's kind may be given as "fetch_wait" or "fetch_wait_begin".
EventKind kind_of(const std::string& name, Wanted wanted) {
  for (const ev::KindInfo& info : ev::event_kinds()) {
    const std::string known = ev::name_of(info.kind);
    const bool begins = ev::is_begin(info.kind), ends = ev::is_end(info.kind);
    if (known != name && !(begins && known == name + "_begin")) continue;
    if (wanted == Wanted::spans && begins) return info.kind;
    if (wanted == Wanted::instants && !begins && !ends) return info.kind;
    throw BadFilter("kind " + name + ": " +
                    (wanted == Wanted::instants
                         ? "a span has a begin and an end; ask for it among the spans"
                         : "an event at one time and no span; ask for it among the events"));
  }
  throw BadFilter("kind " + name + ": unknown; docs/events.md lists the kinds");
}

std::vector<EventKind> kinds_of(const Filter& filter, Wanted wanted) {
  std::vector<EventKind> out;
  for (const std::string& name : filter.kinds) out.push_back(kind_of(name, wanted));
  return out;
}

/// Payload columns: the raw slots if a table holds several kinds, else the named fields of its one kind.
class Payload {
 public:
  explicit Payload(const std::vector<EventKind>& kinds) {
    if (kinds.size() == 1) fields_ = columns_of(kinds.front());
  }
  void add_columns(Schema& schema) const {
    if (!fields_.empty()) {
      for (const EventColumn& field : fields_) {
        Column column = field.column;
        // A column of the table keeps its name; a field of that name gets a suffix.
        const auto taken = [&](const Column& other) { return other.name == column.name; };
        if (std::any_of(schema.begin(), schema.end(), taken)) column.name += "_field";
        schema.push_back(std::move(column));
      }
      return;
    }
    schema.push_back({"code", ColumnType::int64});
    for (const char* name : {"a", "b", "c"}) schema.push_back({name, ColumnType::uint32});
    for (const char* name : {"v0", "v1"}) schema.push_back({name, ColumnType::int64});
  }
  void append(Batch& batch, const ev::Event& record) const {
    if (!fields_.empty()) {
      for (const EventColumn& field : fields_) field.append(batch, record);
      return;
    }
    batch.integer(record.code).id(record.a).id(record.b).id(record.c);
    batch.integer(record.v0).integer(record.v1);
  }

 private:
  std::vector<EventColumn> fields_;
};

bool wants(const std::vector<EventKind>& kinds, EventKind kind) {
  return kinds.empty() || std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

class SpanRows : public Rows {
 public:
  SpanRows(const Store& store, const Filter& filter)
      : store_(store), filter_(filter), kinds_(kinds_of(filter, Wanted::spans)), payload_(kinds_) {
    schema_ = {{"rank", ColumnType::uint32},         {"stream", ColumnType::word, stream_names()},
               {"depth", ColumnType::int64},         {"kind", ColumnType::word, kind_names()},
               {"label", ColumnType::text},          {"begin_ns", ColumnType::int64},
               {"end_ns", ColumnType::int64},        {"duration_ns", ColumnType::int64},
               {"paused_ns", ColumnType::int64},     {"all_ranks_arrived_ns", ColumnType::int64},
               {"open_until_ns", ColumnType::int64}, {"is_work", ColumnType::boolean}};
    payload_.add_columns(schema_);
    const std::vector<std::uint32_t> ranks = ranks_of(store, filter);
    for (const store::LaneId lane : store.lanes()) {
      if (std::find(ranks.begin(), ranks.end(), lane.rank) != ranks.end()) lanes_.push_back(lane);
    }
    for (const std::uint32_t rank : ranks)
      static_cast<void>(wanted(store, rank, filter));  // throws BadFilter now rather than in fill()
  }
  [[nodiscard]] const Schema& schema() const override { return schema_; }

  bool fill(Batch& batch, std::size_t most) override {
    while (batch.rows() < most) {
      if (part_ == parts_.size()) {
        if (lane_ == lanes_.size()) return false;
        parts_ = parts(store_, lanes_[lane_++], filter_);
        part_ = 0;
        continue;
      }
      const store::LaneId lane = lanes_[lane_ - 1];
      const ReadInterval& part = parts_[part_++];
      exporter::walk_spans(store_, lane, part.begin_ns, part.end_ns, [&](const exporter::WalkedSpan& walked) {
        if (wants(kinds_, walked.span->kind)) append(batch, lane, walked);
      });
    }
    return true;
  }

 private:
  void append(Batch& batch, store::LaneId lane, const exporter::WalkedSpan& walked) const {
    const store::Span& of = *walked.span;
    const bool ended = walked.time.ended;
    batch.id(lane.rank).word(static_cast<std::size_t>(lane.stream)).integer(of.depth).word(index_of(of.kind));
    batch.text(exporter::span_label(store_, lane.rank, of));
    batch.integer(of.begin_ns).time(of.end_ns).time(ended ? walked.time.running_ns : store::kOpen);
    batch.integer(walked.time.paused_ns).time(of.mark_ns == 0 ? store::kOpen : of.mark_ns);
    batch.time(ended ? store::kOpen : walked.time.until_ns).flag(walked.is_work);
    payload_.append(batch, begin_of(of));
    batch.end_row();
  }

  const Store& store_;
  Filter filter_;
  std::vector<EventKind> kinds_;
  Payload payload_;
  Schema schema_;
  std::vector<store::LaneId> lanes_;
  std::size_t lane_ = 0;
  std::vector<ReadInterval> parts_;
  std::size_t part_ = 0;
};

/// Instants, rank by rank. Derived classes append the row of each instant.
class InstantRows : public Rows {
 public:
  InstantRows(const Store& store, const Filter& filter, std::vector<EventKind> kinds)
      : store_(store), filter_(filter), kinds_(std::move(kinds)) {
    for (const std::uint32_t rank : ranks_of(store, filter)) {
      static_cast<void>(wanted(store, rank, filter));
      const auto has = [&](EventKind kind) { return store.instant_count(rank, kind) > 0; };
      if (kinds_.empty() || std::any_of(kinds_.begin(), kinds_.end(), has)) ranks_.push_back(rank);
    }
  }
  [[nodiscard]] const Schema& schema() const override { return schema_; }

  bool fill(Batch& batch, std::size_t most) override {
    while (batch.rows() < most) {
      if (part_ == parts_.size()) {
        if (rank_ == ranks_.size()) return false;
        parts_ = parts(store_, busiest_lane(ranks_[rank_++]), filter_);
        part_ = 0;
        continue;
      }
      const std::uint32_t rank = ranks_[rank_ - 1];
      const ReadInterval& part = parts_[part_++];
      store_.for_each_instant(rank, part.begin_ns, part.end_ns, [&](const ev::Event& record) {
        if (wants(kinds_, record.kind)) append(batch, rank, record);
      });
    }
    return true;
  }

 protected:
  virtual void append(Batch& batch, std::uint32_t rank, const ev::Event& record) const = 0;
  Schema schema_;

 private:
  /// Instants have no cuts of their own. A block holds events of all lanes of a rank, so the lane with the
  /// most cuts gives the block boundaries.
  [[nodiscard]] store::LaneId busiest_lane(std::uint32_t rank) const {
    store::LaneId busiest{rank, ev::StreamId::host};
    std::size_t most = 0;
    for (const store::LaneId lane : store_.lanes()) {
      if (lane.rank != rank) continue;
      const std::size_t cuts = store_.cuts(lane).size();
      if (cuts > most) busiest = lane;
      most = std::max(most, cuts);
    }
    return busiest;
  }

  const Store& store_;
  Filter filter_;
  std::vector<EventKind> kinds_;
  std::vector<std::uint32_t> ranks_;
  std::size_t rank_ = 0;
  std::vector<ReadInterval> parts_;
  std::size_t part_ = 0;
};

class EventRows : public InstantRows {
 public:
  EventRows(const Store& store, const Filter& filter)
      : InstantRows(store, filter, kinds_of(filter, Wanted::instants)),
        payload_(kinds_of(filter, Wanted::instants)) {
    schema_ = {{"rank", ColumnType::uint32},
               {"at_ns", ColumnType::int64},
               {"kind", ColumnType::word, kind_names()},
               {"stream", ColumnType::word, stream_names()}};
    payload_.add_columns(schema_);
  }

 private:
  void append(Batch& batch, std::uint32_t rank, const ev::Event& record) const override {
    batch.id(rank).integer(static_cast<std::int64_t>(record.ticks)).word(index_of(record.kind));
    batch.word(static_cast<std::size_t>(record.stream));
    payload_.append(batch, record);
    batch.end_row();
  }
  Payload payload_;
};

class MemoryRows : public InstantRows {
 public:
  MemoryRows(const Store& store, const Filter& filter)
      : InstantRows(store, filter, {EventKind::memory_alloc, EventKind::memory_free}) {
    schema_ = {{"rank", ColumnType::uint32},       {"at_ns", ColumnType::int64},
               {"pool", ColumnType::text},         {"category", ColumnType::text},
               {"delta_bytes", ColumnType::int64}, {"pool_bytes_after", ColumnType::int64},
               {"owner", ColumnType::uint32}};
  }

 private:
  void append(Batch& batch, std::uint32_t rank, const ev::Event& record) const override {
    const auto memory = ev::as<EventKind::memory_alloc>(record);
    batch.id(rank).integer(static_cast<std::int64_t>(record.ticks));
    batch.text(store::name_of(memory.pool)).text(store::name_of(memory.category));
    batch.integer(record.kind == EventKind::memory_alloc ? memory.bytes : -memory.bytes);
    batch.integer(memory.pool_bytes).id(memory.owner).end_row();
  }
};

/// A table that is written as one batch.
class WholeTable : public Rows {
 public:
  WholeTable(const Store& store, const store::RecordingInfo& info, const TableDefinition& table)
      : store_(store), info_(info), table_(table), schema_(table.schema()) {}
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  bool fill(Batch& batch, std::size_t) override {
    if (!std::exchange(written_, true)) table_.write(store_, info_, batch);
    return false;
  }

 private:
  const Store& store_;
  const store::RecordingInfo& info_;
  const TableDefinition& table_;
  Schema schema_;
  bool written_ = false;
};

const TableDefinition* definition_of(std::string_view table) {
  for (const std::span<const TableDefinition> tables : {run_tables(), retained_tables()}) {
    const auto found = std::ranges::find(tables, table, &TableDefinition::name);
    if (found != tables.end()) return &*found;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Rows> open_table(const Store& store, const store::RecordingInfo& info,
                                 const std::string& table, const Filter& filter) {
  if (table == "spans") return std::make_unique<SpanRows>(store, filter);
  if (table == "events") return std::make_unique<EventRows>(store, filter);
  if (table == "memory") {
    if (!filter.kinds.empty()) throw BadFilter("kind " + filter.kinds.front() + ": memory has no kinds");
    return std::make_unique<MemoryRows>(store, filter);
  }
  const TableDefinition* const whole = definition_of(table);
  if (whole == nullptr) throw BadFilter("table " + table + ": unknown");
  if (!filter.empty()) throw BadFilter("table " + table + ": takes no filter");
  return std::make_unique<WholeTable>(store, info, *whole);
}

}  // namespace shardscope::arrow
