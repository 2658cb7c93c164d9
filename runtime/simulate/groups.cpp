#include "runtime/simulate/groups.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

#include "runtime/comm/zero_communicators.h"

namespace shardscope::simulate {
namespace {

/// The communicators of every run, in order of creation.
constexpr std::array kWorldNames{"gather", "reduce", "control"};

}  // namespace

RunGroups::RunGroups(const plan::ZeroConfig& zero, const plan::Topology& topology) : topology_(topology) {
  std::map<std::pair<std::string, std::vector<std::uint32_t>>, std::uint32_t> known;
  comm::Group world;
  world.members.resize(topology.world);
  std::iota(world.members.begin(), world.members.end(), 0U);
  groups_.assign(kWorldNames.size(), {world, {topology.world, topology.nodes()}});
  of_rank_.resize(topology.world);
  for (std::uint32_t rank = 0; rank < topology.world; ++rank) {
    const auto join = [&](const std::string& name, const comm::Group& group) {
      const auto [it, added] =
          known.try_emplace({name, group.members}, static_cast<std::uint32_t>(groups_.size()));
      if (added) {
        std::set<std::uint32_t> nodes;
        for (const std::uint32_t member : group.members) nodes.insert(member / topology.ranks_per_node);
        groups_.push_back(
            {group,
             {static_cast<std::uint32_t>(group.members.size()), static_cast<std::uint32_t>(nodes.size())}});
      }
      const auto at = std::lower_bound(group.members.begin(), group.members.end(), rank);
      of_rank_[rank].push_back({name, it->second, static_cast<std::uint32_t>(at - group.members.begin())});
      return std::unique_ptr<comm::Communicator>();
    };
    for (std::uint32_t i = 0; i < kWorldNames.size(); ++i) {
      of_rank_[rank].push_back({kWorldNames[i], i, rank});
    }
    const comm::ZeroCommunicators made(zero, topology, rank, join);
  }
}

std::vector<std::uint32_t> representatives(const plan::ModelPlan& model, const plan::ZeroConfig& zero,
                                           const plan::Ownership& ownership, const RunGroups& groups) {
  std::map<std::vector<std::int64_t>, std::uint32_t> known;
  std::vector<std::uint32_t> of_rank;
  std::vector<std::int64_t> key;
  for (std::uint32_t rank = 0; rank < ownership.world(); ++rank) {
    key.clear();
    for (const plan::ParamPlan& param : model.params) {
      for (const plan::OwnedSlice& slice : ownership.slices(param.id, rank)) {
        key.insert(key.end(), {static_cast<std::int64_t>(plan::raw(param.id)), slice.owned_offset,
                               slice.elems, slice.padding_elems});
        // ZenFlow: the number of its elements in chosen columns depends on its first column.
        if (zero.zenflow && param.shape.size() == 2) key.push_back(slice.param_offset % param.shape[1]);
      }
    }
    for (const Membership& member : groups.of(rank)) {
      const GroupShape& shape = groups.groups()[member.group].shape;
      key.insert(key.end(),
                 {-1, static_cast<std::int64_t>(shape.ranks), static_cast<std::int64_t>(shape.nodes)});
    }
    // If collectives have a root (the owner of a gradient, stages 1 and 2), each rank is different.
    if (ownership.stage() == 1 || ownership.stage() == 2) key.push_back(rank);
    of_rank.push_back(known.try_emplace(key, rank).first->second);
  }
  return of_rank;
}

}  // namespace shardscope::simulate
