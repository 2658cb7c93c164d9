// What micro-batches held, tokens and padding, and how far ranks differ in it. Definitions: metrics.md 2.1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/store/store.h"

namespace shardscope::analysis {

/// A micro-batch of one rank; a model of vectors has one position for each sample.
struct MicroBatch {
  std::uint32_t micro_step = 0;
  std::int64_t samples = 0, tokens = 0, padding = 0;
  [[nodiscard]] std::int64_t positions() const noexcept { return tokens + padding; }
};
/// Micro-batches of training that a rank recorded within [begin, end), in order.
[[nodiscard]] std::vector<MicroBatch> micro_batches(const store::Store& store, std::uint32_t rank,
                                                    std::int64_t begin_ns, std::int64_t end_ns);

/// Micro-steps that a rank recorded to begin within [begin, end): the steps of a script that accumulates,
/// whatever its configuration says.
[[nodiscard]] std::int64_t recorded_micro_steps(const store::Store& store, std::uint32_t rank,
                                                std::int64_t begin_ns, std::int64_t end_ns);

/// Sums over several micro-batches.
struct MicroBatchSums {
  std::uint64_t count = 0;
  std::int64_t tokens = 0, padding = 0;
  /// Positions of a sample, padding included, in the micro-batch where they are fewest and where they are
  /// most.
  std::int64_t shortest = 0, longest = 0;
  std::int64_t fewest_samples = 0, most_samples = 0;
  void add(const MicroBatch& one) noexcept;
  void add(const MicroBatchSums& others) noexcept;
  [[nodiscard]] std::int64_t positions() const noexcept { return tokens + padding; }
  /// Padding as a share of all positions.
  [[nodiscard]] double padding_pct() const noexcept;
  /// They are not all of one size, or have padding.
  [[nodiscard]] bool vary() const noexcept;
};
/// "2 to 4 samples of 5 to 12 tokens".
[[nodiscard]] std::string text_of(const MicroBatchSums& sums);

/// How unequal the work of ranks is by its size: positions of each micro-step that every rank recorded.
struct Unevenness {
  double mean = 0;  ///< sum over micro-steps of the mean over ranks
  double most = 0;  ///< and of the largest
  /// 100 (1 - mean / most): the part of the ranks' time that would be waiting for the one with the most
  /// positions, were time as positions are.
  [[nodiscard]] std::optional<double> pct() const noexcept;
};
/// How uneven the ranks of a step are; `ranks`: what each of them had.
[[nodiscard]] Unevenness unevenness(const std::vector<std::vector<MicroBatch>>& ranks);

}  // namespace shardscope::analysis
