// Order of the ranks in the timeline, from top to bottom, within their groups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/app_state.h"

namespace shardscope::gui {

[[nodiscard]] const char* word(RankOrder order) noexcept;
[[nodiscard]] const char* word(RankHeight height) noexcept;
/// By number; by computation or by exposed communication in the step whose figures are shown
/// (rank_pace), longest first, ranks without figures last; or the user's own order. Empty: in order of
/// number.
[[nodiscard]] std::vector<std::uint32_t> rank_order(const AppState& app);

/// Applies order, groups and filter of the ranks to TimelineOptions; call once per frame.
void arrange_ranks(AppState& app);
/// The effect of the filter, or what is wrong with it, as a status line.
struct FilterLine {
  std::string text;
  bool problem = false;
};
[[nodiscard]] std::optional<FilterLine> filter_line(const AppState& app);
/// Sets the order and scrolls to the first rank.
void order_ranks(AppState& app, RankOrder order);
/// Sets the grouping; the order is kept.
void group_ranks(AppState& app, const std::string& grouping);
/// Switches to the next available grouping; after the last one to none.
void next_grouping(AppState& app);

}  // namespace shardscope::gui
