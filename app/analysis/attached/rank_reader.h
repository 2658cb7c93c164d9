// One step of one rank of an attached run, read into the pieces of recorded_costs.h, with what its
// collectives and hooks took.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "app/analysis/attached/recorded_costs.h"
#include "app/analysis/rank_step.h"

namespace shardscope::analysis::attached {

/// A collective as the rank that it took least saw it: the others waited for that one.
struct Seen {
  Transfer transfer;
  bool gather = false;  ///< of a fetch or a prefetch; else of a bucket
};

/// What is fitted, of all steps and ranks.
struct Samples {
  std::map<std::uint64_t, Seen> collectives;        ///< of one step, by instance
  std::vector<Transfer> gathers, reductions;        ///< of all steps
  std::vector<Transfer> issues, unpacked, flushes;  ///< hops: times, bytes: elements
  std::vector<double> idle_fetches, releases;       ///< ns where nothing is gathered
  /// Those of one step, seen on all of its ranks.
  void add_step(const Samples& step);
};

struct StepOfRank {
  std::int64_t first_gate_ns = 0;  ///< of its first micro-step
  RankTime time;
  std::vector<std::vector<Piece>> micro_steps;
  std::int64_t gathers = 0, gathered_elems = 0, flushes = 0;
};

/// Nothing where the step has no gates of micro-steps and of its optimizer.
[[nodiscard]] std::optional<StepOfRank> read_step(const store::Store& store, const RankStep& step,
                                                  Samples& samples);

}  // namespace shardscope::analysis::attached
