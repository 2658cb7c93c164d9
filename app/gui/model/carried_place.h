// Where something of one run lies in another run: the same part of the step with the same number, the same
// rank, the parameter or module with the same name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "app/gui/model/selection.h"
#include "app/gui/model/time_axis.h"
#include "app/store/store.h"

namespace shardscope::gui {

/// Linear within a step; before the first common step and after the last one as far from it in both runs.
/// Without a common step the same time. Not limited to the run.
[[nodiscard]] std::int64_t carried_time(const store::Store& from, const store::Store& to, std::int64_t at_ns);
/// Never empty.
[[nodiscard]] TimeRange carried_range(const store::Store& from, const store::Store& to, TimeRange range);
/// kNoId: there is none of that name.
[[nodiscard]] std::uint32_t param_named(const store::Store& store, std::string_view name);
/// By name; kNoId: the other run has none.
[[nodiscard]] std::uint32_t carried_param(const store::Store& from, const store::Store& to,
                                          std::uint32_t param);
[[nodiscard]] std::uint32_t carried_module(const store::Store& from, const store::Store& to,
                                           std::uint32_t module);
/// nullopt: the other run has no such thing. A span is of its run only.
[[nodiscard]] std::optional<Selection> carried_selection(const store::Store& from, const store::Store& to,
                                                         const Selection& selection);
[[nodiscard]] bool knows_rank(const store::Store& store, std::uint32_t rank);

}  // namespace shardscope::gui
