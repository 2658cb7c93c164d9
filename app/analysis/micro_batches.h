// Tokens and padding of micro-batches, and how they differ between ranks. Definitions: metrics.md 2.1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/store/store.h"

namespace shardscope::analysis {

/// A micro-batch of one rank; a model on vectors has one position per sample.
struct MicroBatch {
  std::uint32_t micro_step = 0;
  std::int64_t samples = 0, tokens = 0, padding = 0;
  [[nodiscard]] std::int64_t positions() const noexcept { return tokens + padding; }
};
/// Micro-batches of training that a rank recorded within [begin, end), in order of time.
[[nodiscard]] std::vector<MicroBatch> micro_batches(const store::Store& store, std::uint32_t rank,
                                                    std::int64_t begin_ns, std::int64_t end_ns);

/// Number of micro-steps that a rank began within [begin, end): right also for a script that accumulates on
/// its own, whatever its configuration.
[[nodiscard]] std::int64_t recorded_micro_steps(const store::Store& store, std::uint32_t rank,
                                                std::int64_t begin_ns, std::int64_t end_ns);

/// Sums over several micro-batches.
struct MicroBatchSums {
  std::uint64_t count = 0;
  std::int64_t tokens = 0, padding = 0;
  /// Positions per sample, padding included, of the micro-batch with the fewest and of the one with the most.
  std::int64_t shortest = 0, longest = 0;
  std::int64_t fewest_samples = 0, most_samples = 0;
  void add(const MicroBatch& one) noexcept;
  void add(const MicroBatchSums& others) noexcept;
  [[nodiscard]] std::int64_t positions() const noexcept { return tokens + padding; }
  /// Padding as a share of all positions.
  [[nodiscard]] double padding_pct() const noexcept;
  /// Whether their sizes differ or they have padding.
  [[nodiscard]] bool vary() const noexcept;
};
/// "2 to 4 samples of 5 to 12 tokens".
[[nodiscard]] std::string text_of(const MicroBatchSums& sums);

/// Imbalance between ranks by work size: positions in each micro-step that every rank recorded.
struct Unevenness {
  double mean = 0;  ///< sum over micro-steps of the mean over ranks
  double most = 0;  ///< sum over micro-steps of the maximum over ranks
  /// 100 (1 - mean / most): the share of the ranks' time spent waiting for the rank with the most positions,
  /// if time is proportional to positions.
  [[nodiscard]] std::optional<double> pct() const noexcept;
};
/// The imbalance of a step; `ranks`: the micro-batches of each rank.
[[nodiscard]] Unevenness unevenness(const std::vector<std::vector<MicroBatch>>& ranks);

}  // namespace shardscope::analysis
