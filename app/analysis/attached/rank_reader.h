// Reads one step of one rank of an attached run into the pieces of recorded_costs.h, with the durations of
// its collectives and hooks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "app/analysis/attached/recorded_costs.h"
#include "app/analysis/rank_step.h"

namespace shardscope::analysis::attached {

/// A collective on the rank with the shortest duration: the other ranks waited for that one.
struct Seen {
  Transfer transfer;
  bool gather = false;  ///< of a fetch or prefetch; else of a bucket
};

/// Samples to fit, over all steps and ranks.
struct Samples {
  std::map<std::uint64_t, Seen> collectives;        ///< of the current step, by instance
  std::vector<Transfer> gathers, reductions;        ///< of all steps
  std::vector<Transfer> issues, unpacked, flushes;  ///< Transfer::hops: number, bytes: elements
  std::vector<double> idle_fetches, releases;       ///< ns, at boundaries without a gather
  /// Gathers that the module at the boundary needs: number, and how many had ended when the wait began.
  std::uint64_t demanded = 0, demanded_ended = 0;
  /// Of FSDP2's groups and DDP's buckets: bytes of their collectives, and their elements.
  double gathered_bytes = 0, gathered_elems = 0, reduced_bytes = 0, reduced_elems = 0;
  /// Adds the collectives of one step, read on all of its ranks.
  void add_step(const Samples& step);
};

struct StepOfRank {
  std::int64_t first_gate_ns = 0;  ///< first gate of its first micro-step
  RankTime time;
  std::vector<std::vector<Piece>> micro_steps;
  std::int64_t gathers = 0, gathered_elems = 0, flushes = 0;
};

/// The gates at which the pieces of a step begin, in order, with that of its optimizer last; empty if the
/// step lacks gates of micro-steps or of its optimizer.
[[nodiscard]] std::vector<store::Store::GateRow> piece_gates(const store::Store& store, const RankStep& step);

/// nullopt if the step lacks gates of micro-steps or of its optimizer.
[[nodiscard]] std::optional<StepOfRank> read_step(const store::Store& store, const RankStep& step,
                                                  Samples& samples);

}  // namespace shardscope::analysis::attached
