#include "runtime/comm/group_world.h"

#include <algorithm>
#include <utility>

#include "runtime/base/emulated_link.h"
#include "runtime/comm/transport.h"
#include "runtime/device/error.h"

namespace shardscope::comm {

/// Copies the link and the sanity-check switch of `whole`; later changes there have no effect here.
GroupWorld::GroupWorld(World& whole, std::vector<std::uint32_t> members, std::uint32_t ranks_per_node,
                       std::uint32_t id)
    : World(whole.link_),
      whole_(whole),
      members_(std::move(members)),
      ranks_per_node_(ranks_per_node),
      id_(id) {
  const auto at = std::lower_bound(members_.begin(), members_.end(), whole.rank());
  if (at == members_.end() || *at != whole.rank()) {
    throw BackendError("GroupWorld", 0, "this rank is not a member of its group",
                       "rank " + std::to_string(whole.rank()));
  }
  // Members ascend, so the order of ranks in the group is their order in the world.
  rank_ = static_cast<std::uint32_t>(at - members_.begin());
  set_sanity_checks(whole.sanity_checks_);
}

/// Ranks in this world's numbering, and the group's scope and id in the run's tables.
Group GroupWorld::all_ranks() const {
  Group all = World::all_ranks();
  all.scope = instrumentation::CollectiveScope::group;
  all.id = id_;
  return all;
}

std::unique_ptr<Transport> GroupWorld::make_transport(const std::string& name, const Group& group) {
  Group of_whole = group;
  // Back to ranks of `whole`, which owns the transport's memory and channels. Ascending members stay
  // ascending.
  for (std::uint32_t& member : of_whole.members) member = members_.at(member);
  return whole_.make_transport(name, of_whole);
}

}  // namespace shardscope::comm
