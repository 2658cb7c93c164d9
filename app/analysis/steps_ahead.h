// Steps of a rank that are read before the others' are due.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>

#include "app/analysis/rank_step.h"

namespace shardscope::analysis {

/// Steps that end by then, `until_ns` at most, are known whole of every rank. Goes over all ranks: it is
/// taken once for all that are read.
[[nodiscard]] std::int64_t steps_known_until(const store::Store& store, std::int64_t until_ns);

/// [Note: steps read ahead]
/// A digest takes step after step, of each all ranks. The events of a rank lie in blocks of many steps, and a
/// store has room for the blocks of some ranks: of thousands each step would read and decode the block of
/// every rank anew. So where there are many, what is read of a rank is some of its steps, and kept until they
/// are due. Only what nothing that comes later can change: steps of a rank that lacks no event from there on
/// (how long such a step lasts, the other ranks say), and of a live run none that others may still be in.
class StepsAhead {
 public:
  /// The reading of the rank's first step that begins at `from_ns` or later; null: none was read. What lies
  /// before is forgotten.
  [[nodiscard]] const RankReading* next(std::uint32_t rank, std::int64_t from_ns);
  /// The same, which is due.
  [[nodiscard]] std::optional<RankReading> take(std::uint32_t rank, const StepWindow& window);
  /// Reads steps of a rank from `from_ns` on that have ended by `known_until_ns` (steps_known_until): as many
  /// as it has room and time for.
  void read(const store::Store& store, std::uint32_t rank, std::int64_t from_ns, std::int64_t known_until_ns,
            const std::function<bool()>& out_of_time);

  /// With fewer ranks the store has room for a block of each.
  static constexpr std::size_t kManyRanks = 32;
  static constexpr std::size_t kMostBytes = std::size_t{96} << 20;  ///< of all ranks, and a step of each
  static constexpr std::size_t kMostSteps = 64;                     ///< of a rank

 private:
  std::unordered_map<std::uint32_t, std::deque<RankReading>> ranks_;
};

}  // namespace shardscope::analysis
