// What a GPU did: the spans of its lanes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/analysis/intervals.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// Those that overlap the window, by begin.
[[nodiscard]] std::vector<store::Span> gpu_spans(const store::Store& store, store::LaneId lane,
                                                 Interval window);
/// Nanoseconds from the host's call that launched it to its begin; nullopt: not recorded, or corrupt.
[[nodiscard]] std::optional<std::int64_t> delay_of(const store::Span& span);
/// When the host entered the call that launched it; nullopt: not recorded.
[[nodiscard]] std::optional<std::int64_t> launch_of(const store::Span& span);

}  // namespace shardscope::analysis
