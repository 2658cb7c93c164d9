// The ranks of the timeline from top to bottom.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/app_state.h"

namespace shardscope::gui {

[[nodiscard]] const char* word(RankOrder order) noexcept;
[[nodiscard]] const char* word(RankHeight height) noexcept;
/// By number; or those first that computed longest, or whose communication was exposed longest, in the step
/// whose figures are shown (rank_pace). Ranks without figures come last. Or as the user put them. Empty where
/// all are in order of their numbers.
[[nodiscard]] std::vector<std::uint32_t> rank_order(const AppState& app);

/// Takes order, groups and filter of the ranks to what they come to, once for each frame.
void arrange_ranks(AppState& app);
/// What the filter leaves, or what is wrong with it, for the line that says so.
struct FilterLine {
  std::string text;
  bool problem = false;
};
[[nodiscard]] std::optional<FilterLine> filter_line(const AppState& app);
/// The RankGrouping of the order that is shown, by its name; empty: none. A filter by groups is of these also
/// while the ranks are sorted by a figure.
[[nodiscard]] std::string grouping_of(const TimelineOptions& options);
/// From its first rank on.
void order_ranks(AppState& app, RankOrder order);
/// Shows them in these groups; in the user's own order they keep it.
void group_ranks(AppState& app, const std::string& grouping);
/// Groups the ranks another way: the next one that there is, then not at all.
void next_grouping(AppState& app);

}  // namespace shardscope::gui
