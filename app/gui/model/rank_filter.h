// Text filter for the ranks in the timeline: "0-7,17", "node 2", "slow", or several of these.
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
  std::vector<std::string> nodes;   ///< a host, its index in order of ranks, or a part of its name
  std::vector<std::string> groups;  ///< number of a group in the current grouping
  bool slow = false;                ///< ranks for which is_slow() holds in the step shown
  std::string problem;              ///< the invalid part of the text; empty: valid
  [[nodiscard]] bool empty() const noexcept {
    return numbers.empty() && nodes.empty() && groups.empty() && !slow;
  }
};
[[nodiscard]] RankFilter parse_rank_filter(std::string_view text);
/// The ranks that pass. `slow`: the slow ranks of the step shown.
[[nodiscard]] std::set<std::uint32_t> ranks_of(const RankFilter& filter, const store::Store& store,
                                               const std::vector<RankGroup>& groups,
                                               const std::set<std::uint32_t>& slow);
/// "2 of 256 ranks: 0, 17. 254 are hidden."
[[nodiscard]] std::string hidden_text(const std::set<std::uint32_t>& shown, std::size_t all);

}  // namespace shardscope::gui
