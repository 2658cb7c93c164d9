// Memory categories in the order they are stacked: model states first, so that their sum can be read
// against the ZeRO expression, then what comes and goes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/store/store.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

/// Bottom to top.
[[nodiscard]] std::span<const ev::MemoryCategory> stack_order() noexcept;
/// Stage: it says whether gathered parameters are model states. 3 where no rank's tables have come.
[[nodiscard]] std::int32_t stage_of(const store::Store& store);
/// The largest sum of a rank's model states and when it was: usually not when its whole pool peaks.
struct ModelStatePeak {
  std::int64_t bytes = 0;
  std::int64_t at_ns = 0;
  [[nodiscard]] std::string text() const;  ///< "model states at most 3.59 MiB"
};
/// Nothing where it was not measured (app/analysis/memory.h).
[[nodiscard]] std::optional<ModelStatePeak> model_state_peak(const store::Store& store, std::uint32_t rank,
                                                             ev::MemoryPool pool);

/// A run of equal columns: memory moves in steps, so a plot has far fewer of these than pixels.
struct StackRun {
  std::size_t first = 0, last = 0;  ///< columns [first, last)
  store::CategoryBytes bytes{};
};
[[nodiscard]] std::vector<StackRun> stack_runs(std::span<const store::MemorySample> columns);

/// Categories that hold anything in any of the samples, in stacking order.
[[nodiscard]] std::vector<ev::MemoryCategory> used_categories(std::span<const store::MemorySample> columns);
/// Categories of `used` for which there is room in `lines`, in its order: all, or the largest ones and a line
/// left for the rest. A category is as large as at either time.
[[nodiscard]] std::vector<ev::MemoryCategory> largest_categories(
    std::span<const ev::MemoryCategory> used, const store::MemorySample& now,
    const std::optional<store::MemorySample>& peak, int lines);
/// Pools of a rank that hold anything, device first.
[[nodiscard]] std::vector<ev::MemoryPool> used_pools(const store::Store& store, std::uint32_t rank);

}  // namespace shardscope::gui
