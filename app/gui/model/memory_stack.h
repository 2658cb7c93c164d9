// Memory categories in stacking order: model states first, so that their sum can be compared with the ZeRO
// formula, then transient memory.
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
/// The ZeRO stage, which decides whether gathered parameters are model states. 3 before any rank's tables.
[[nodiscard]] std::int32_t stage_of(const store::Store& store);
/// The largest sum of a rank's model states and its time, usually not that of the pool's peak.
struct ModelStatePeak {
  std::int64_t bytes = 0;
  std::int64_t at_ns = 0;
  [[nodiscard]] std::string text() const;  ///< "model states at most 3.59 MiB"
};
/// nullopt where it was not measured (app/analysis/memory.h).
[[nodiscard]] std::optional<ModelStatePeak> model_state_peak(const store::Store& store, std::uint32_t rank,
                                                             ev::MemoryPool pool);

/// A run of equal columns: memory changes in steps, so a plot has far fewer runs than pixels.
struct StackRun {
  std::size_t first = 0, last = 0;  ///< columns [first, last)
  store::CategoryBytes bytes{};
};
[[nodiscard]] std::vector<StackRun> stack_runs(std::span<const store::MemorySample> columns);

/// Categories with bytes in any of the samples, in stacking order.
[[nodiscard]] std::vector<ev::MemoryCategory> used_categories(std::span<const store::MemorySample> columns);
/// The categories of `used` that fit into `lines`, in its order: all, or the largest with one line left for
/// the rest. Sizes are the larger of the two samples.
[[nodiscard]] std::vector<ev::MemoryCategory> largest_categories(
    std::span<const ev::MemoryCategory> used, const store::MemorySample& now,
    const std::optional<store::MemorySample>& peak, int lines);
/// Pools of a rank with allocations, device first.
[[nodiscard]] std::vector<ev::MemoryPool> used_pools(const store::Store& store, std::uint32_t rank);

}  // namespace shardscope::gui
