#include "runtime/plan/data_parallel.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

namespace shardscope::plan {

std::string validate(const DataParallelGroups& groups, std::uint32_t world) {
  if (groups.empty()) return {};
  std::set<std::uint32_t> seen;
  for (const std::vector<std::uint32_t>& group : groups) {
    if (group.size() != groups.front().size() || group.empty()) {
      return "groups are of one size, of at least one rank: the first has " +
             std::to_string(groups.front().size()) + ", another " + std::to_string(group.size());
    }
    if (std::adjacent_find(group.begin(), group.end(), std::greater_equal<>()) != group.end()) {
      return "the ranks of a group ascend";
    }
    for (const std::uint32_t rank : group) {
      if (rank >= world) {
        return "names rank " + std::to_string(rank) + " of a run of " + std::to_string(world) +
               " ranks, 0 to " + std::to_string(world - 1);
      }
      if (!seen.insert(rank).second) return "rank " + std::to_string(rank) + " is in two groups";
    }
  }
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    if (!seen.contains(rank)) {
      return "rank " + std::to_string(rank) +
             " is in no group; every rank of the run trains a copy of the model, in a group of its own where "
             "need be";
    }
  }
  return {};
}

std::uint32_t data_parallel_world(const DataParallelGroups& groups, std::uint32_t world) noexcept {
  return groups.empty() ? world : static_cast<std::uint32_t>(groups.front().size());
}

DataParallelPlace data_parallel_place(const DataParallelGroups& groups, std::uint32_t world,
                                      std::uint32_t rank) {
  DataParallelPlace place;
  if (groups.empty()) {
    place.rank = rank;
    place.members.resize(world);
    std::iota(place.members.begin(), place.members.end(), 0U);
    place.peers = {rank};
    return place;
  }
  for (const std::vector<std::uint32_t>& group : groups) {
    const auto at = std::lower_bound(group.begin(), group.end(), rank);
    if (at == group.end() || *at != rank) continue;
    place.rank = static_cast<std::uint32_t>(at - group.begin());
    place.members = group;
  }
  for (const std::vector<std::uint32_t>& group : groups) place.peers.push_back(group.at(place.rank));
  std::sort(place.peers.begin(), place.peers.end());
  return place;
}

Topology topology_of_group(const std::vector<std::uint32_t>& members, std::uint32_t ranks_per_node) {
  const auto world = static_cast<std::uint32_t>(members.size());
  std::map<std::uint32_t, std::uint32_t> of_node;
  for (const std::uint32_t member : members) ++of_node[member / std::max(ranks_per_node, 1U)];
  const std::uint32_t first = of_node.empty() ? world : of_node.begin()->second;
  const bool alike =
      std::all_of(of_node.begin(), of_node.end(), [first](const auto& node) { return node.second == first; });
  return {world, alike ? std::max(first, 1U) : world};
}

}  // namespace shardscope::plan
