#include "runtime/train/run_ranks.h"

#include "runtime/engine/run_tables.h"

namespace shardscope::train {

RunRanks::RunRanks(comm::World& world, const plan::DataParallelGroups& groups)
    : world_(world), place_(plan::data_parallel_place(groups, world.size(), world.rank())) {
  if (groups.empty()) return;
  const plan::Topology topology = plan::topology_of_group(place_.members, world.node_size());
  group_.emplace(world, place_.members, topology.ranks_per_node, engine::kDataParallelGroup);
}

std::unique_ptr<comm::Communicator> RunRanks::make_everybody() {
  return group_ ? world_.make_communicator("all ranks") : nullptr;
}

std::unique_ptr<comm::Communicator> RunRanks::make_peers() {
  if (place_.peers.size() < 2) return nullptr;
  return world_.make_communicator(
      "model-parallel peers",
      {place_.peers, instrumentation::CollectiveScope::group, engine::kModelParallelPeers});
}

}  // namespace shardscope::train
