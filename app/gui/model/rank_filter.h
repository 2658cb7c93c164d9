// Which ranks the timeline shows, as text: "0-7,17", "node 2", "slow", or several of these.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/gui/model/rank_groups.h"
#include "app/store/store.h"

namespace shardscope::gui {

struct RankFilter {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> numbers;  ///< first and last
  std::vector<std::string> nodes;   ///< a host, its number in the order of ranks, or a part of its name
  std::vector<std::string> groups;  ///< the number of a group of those that the ranks stand in
  bool slow = false;                ///< those that is_slow() (app/analysis/slow_rank.h) in the step shown
  std::string problem;              ///< what of the text is none of these; empty: nothing
  [[nodiscard]] bool empty() const noexcept {
    return numbers.empty() && nodes.empty() && groups.empty() && !slow;
  }
};
[[nodiscard]] RankFilter parse_rank_filter(std::string_view text);
/// Of these ranks. `slow`: those that are, in the step that is shown.
[[nodiscard]] std::set<std::uint32_t> ranks_of(const RankFilter& filter, const store::Store& store,
                                               const std::vector<RankGroup>& groups,
                                               const std::set<std::uint32_t>& slow);
/// "2 of 256 ranks: 0, 17. 254 are hidden."
[[nodiscard]] std::string hidden_text(const std::set<std::uint32_t>& shown, std::size_t all);

}  // namespace shardscope::gui
