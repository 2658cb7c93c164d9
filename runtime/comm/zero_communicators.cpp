#include "runtime/comm/zero_communicators.h"

#include "instrumentation/event.h"

namespace shardscope::comm {

/// Every rank runs the same list in the same order: making a communicator is collective over the world, also
/// for groups of one rank. Which of them exist follows from the configuration, which is equal on all ranks.
ZeroCommunicators::ZeroCommunicators(const plan::ZeroConfig& zero, const plan::Topology& topology,
                                     std::uint32_t rank, const Make& make)
    : topology_(topology) {
  using Scope = instrumentation::CollectiveScope;
  const plan::ZeroGroups groups = plan::make_zero_groups(zero, topology, rank);
  const auto of = [&](const char* name, const std::vector<std::uint32_t>& members, Scope scope) {
    // Empty on every rank or on none.
    return members.empty() ? nullptr : make(name, {members, scope});
  };
  secondary = of("secondary", groups.secondary, Scope::secondary);
  shard_gather = of("shard gather", groups.shard, Scope::shard);
  gather_inter = of("gather between nodes", groups.shard_inter, Scope::inter_node);
  gather_intra = of("gather inside a node", groups.shard_intra, Scope::intra_node);
  // The same ranks as shard_gather, and a communicator of its own: it is used on another stream, and
  // collectives of one communicator run in one order.
  shard_reduce = of("shard reduce", groups.shard, Scope::shard);
  replica = of("replicas", groups.replica, Scope::replica);
  reduce_intra = of("reduce inside a node", groups.intra_node, Scope::intra_node);
  reduce_inter = of("reduce between nodes", groups.inter_node, Scope::inter_node);
}

}  // namespace shardscope::comm
