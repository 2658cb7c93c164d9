// Steps of a rank that are read before the digest reaches them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>

#include "app/analysis/rank_step.h"

namespace shardscope::analysis {

/// The time up to which ended steps are final on every rank, at most `until_ns`. Visits all ranks: call it
/// once per pass.
[[nodiscard]] std::int64_t steps_known_until(const store::Store& store, std::int64_t until_ns);

/// [Note: steps read ahead]
/// A digest processes step after step, each for all ranks. A rank's events are stored in blocks of many
/// steps, and the store caches blocks of some ranks: with thousands, each step would decode every rank's
/// block again. With many ranks several steps of a rank are therefore read at once and kept until the digest
/// reaches them. Only steps that later events cannot change: of ranks that lack no event from there on (else
/// other ranks determine the step's end), and in a live run none that other ranks may still be in.
class StepsAhead {
 public:
  /// The rank's first step read that begins at `from_ns` or later; null if none was read. Discards earlier
  /// steps.
  [[nodiscard]] const RankReading* next(std::uint32_t rank, std::int64_t from_ns);
  /// Removes and returns the reading of `window`; nullopt if it was not read.
  [[nodiscard]] std::optional<RankReading> take(std::uint32_t rank, const StepWindow& window);
  /// Reads steps of a rank from `from_ns` on that ended by `known_until_ns` (steps_known_until), as far as
  /// memory and time allow.
  void read(const store::Store& store, std::uint32_t rank, std::int64_t from_ns, std::int64_t known_until_ns,
            const std::function<bool()>& out_of_time);

  /// With fewer ranks the store can cache a block of each.
  static constexpr std::size_t kManyRanks = 32;
  static constexpr std::size_t kMostBytes = std::size_t{96} << 20;  ///< over all ranks, plus one step of each
  static constexpr std::size_t kMostSteps = 64;                     ///< per rank

 private:
  std::unordered_map<std::uint32_t, std::deque<RankReading>> ranks_;
};

}  // namespace shardscope::analysis
