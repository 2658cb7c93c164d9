// Makes blocks while a run is recorded: each complete chunk becomes one, with the state before it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "app/store/block.h"
#include "app/store/chunk.h"
#include "app/store/own_times.h"
#include "app/store/span_sketches.h"
#include "instrumentation/emitter.h"

namespace shardscope::store {

/// Memory: open spans and the latest status of each parameter, per rank; no events.
class BlockMaker {
 public:
  void tables(const ev::RunTables& tables);
  /// Makes the block of its rank's next chunk. nullopt when the chunk's times are impossible.
  [[nodiscard]] std::optional<Block> make(const Chunk& chunk);
  /// Adds the spans of later blocks to `sketches`, which must outlive this.
  void sketch(SpanSketches& sketches) { sketches_ = &sketches; }
  /// Adds the own time of each later step to `times`, which must outlive this.
  void measure(OwnTimes& times) { own_times_ = &times; }
  /// Each rank's state after its last block, as blocks without events.
  [[nodiscard]] std::vector<Block> tails();
  /// Adds the own time of the last steps; no block may follow.
  void measure_rest();

 private:
  struct Rank {
    RankState state{RankState::For::blocks};
    RankKeyframe begin;
    Pauses pauses;  ///< that open spans may overlap
    std::uint64_t next_sequence = 0;
    OwnTimeOfRank own;
    bool own_lacks = false;  ///< a chunk before the next one has no block
  };
  Rank& rank(std::uint32_t rank);

  SpanSketches* sketches_ = nullptr;
  OwnTimes* own_times_ = nullptr;
  OwnTimeSource source_;
  std::vector<std::uint32_t> parents_;
  std::array<bool, ev::kMemoryCategoryCount> model_state_{};
  ParamState initial_{.since_ns = StatusIndex::kNever};
  std::map<std::uint32_t, Rank> ranks_;
};

}  // namespace shardscope::store
