// Builds small recordings by hand, event by event, so that every expected figure is a closed form.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/store/chunk.h"
#include "app/store/store.h"
#include "instrumentation/capability.h"

namespace shardscope::test {

namespace ev = shardscope::instrumentation;

inline constexpr std::int64_t kMs = 1'000'000;  ///< ns
inline constexpr auto kGatherOp = static_cast<std::uint8_t>(ev::CollectiveOp::all_gather);
using ev::CollectiveOp;
using ev::EventKind;
using ev::StreamId;

class RunBuilder {
 public:
  explicit RunBuilder(std::uint32_t world, std::int32_t stage = 3, const std::string& framework = {}) {
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      ev::RunTables tables;
      tables.run_id = "test";
      tables.model = "hand-made";
      tables.rank = rank;
      tables.world = world;
      tables.stage = stage;
      tables.framework = framework;
      tables.elems = 1000;
      tables.config_json =
          R"({"gradient_accumulation_steps": 1, "zero_optimization": {"overlap_comm": true}})";
      tables.modules = {{0, ev::kNoId, "", "Root", {}, true}, {1, 0, "layer", "Linear", {0}, true}};
      tables.params = {{0, "layer.weight", "f32", {1000}, 1000, 500, 0, {1}, false}};
      store_.set_tables(rank, tables);
      store::RankRow row;
      row.rank = rank;
      row.connected = true;
      store_.set_rank(row);
    }
    events_.resize(world);
    sequences_.resize(world);
    dropped_.resize(world);
  }

  void instant(std::uint32_t rank, std::int64_t at, ev::EventKind kind, ev::StreamId stream,
               std::uint32_t a = ev::kNoId, std::uint32_t b = ev::kNoId, std::uint32_t c = ev::kNoId,
               std::uint8_t code = 0, std::int64_t v0 = 0, std::int64_t v1 = 0) {
    events_[rank].push_back({static_cast<std::uint64_t>(at), kind, stream, code, a, b, c, v0, v1});
  }
  void span(std::uint32_t rank, std::int64_t begin, std::int64_t end, ev::EventKind kind, ev::StreamId stream,
            std::uint32_t a = ev::kNoId, std::uint32_t b = ev::kNoId, std::uint8_t code = 0,
            std::int64_t v0 = 0, std::int64_t v1 = 0) {
    instant(rank, begin, kind, stream, a, b, ev::kNoId, code, v0, v1);
    instant(rank, end, ev::end_of(kind), stream, a, b, ev::kNoId, code, v0, v1);
  }
  /// The device that the ranks train on.
  void on(const std::string& device) {
    change_tables([&](ev::RunTables& tables) { tables.device = device; });
  }
  /// The program cannot record this.
  void without(ev::Capability capability, const std::string& why) {
    change_tables([&](ev::RunTables& tables) {
      tables.not_recorded.push_back({ev::bit_of(capability), why});
    });
  }
  /// `change`, of the tables of each rank.
  template <typename Change>
  void change_tables(const Change& change) {
    for (std::uint32_t rank = 0; rank < events_.size(); ++rank) {
      ev::RunTables tables = store_.tables();
      tables.rank = rank;
      change(tables);
      store_.set_tables(rank, tables);
    }
  }
  /// Before what is added next to a rank so many events were dropped.
  void drop(std::uint32_t rank, std::uint64_t events) { dropped_[rank] = events; }
  /// The store with everything added so far; more may be added and built again. Events are sorted by time,
  /// ends before begins at one time.
  store::Store& build() {
    for (std::uint32_t rank = 0; rank < events_.size(); ++rank) {
      store::Chunk chunk;
      chunk.rank = rank;
      chunk.events = events_[rank];
      std::stable_sort(chunk.events.begin(), chunk.events.end(), [](const ev::Event& a, const ev::Event& b) {
        return a.ticks != b.ticks ? a.ticks < b.ticks : ev::is_end(a.kind) && !ev::is_end(b.kind);
      });
      chunk.sequence = sequences_[rank]++;
      chunk.dropped_before = std::exchange(dropped_[rank], 0);
      store_.ingest(chunk);
      events_[rank].clear();
    }
    return store_;
  }

 private:
  store::Store store_;
  std::vector<std::vector<ev::Event>> events_;
  std::vector<std::uint64_t> sequences_;  ///< of each rank's next chunk
  std::vector<std::uint64_t> dropped_;
};

}  // namespace shardscope::test
