// The ranks of a run from the view of one: those that train the same copy of the model
// (shardscope.data_parallel_groups), and its model-parallel peers in the other copies.
#pragma once

#include <memory>
#include <optional>

#include "runtime/comm/communicator.h"
#include "runtime/comm/group_world.h"
#include "runtime/comm/world.h"
#include "runtime/config/config.h"
#include "runtime/plan/data_parallel.h"

namespace shardscope::train {

class RunRanks {
 public:
  /// The link and nodes of `world` must be set. Without groups all its ranks train one copy.
  RunRanks(comm::World& world, const plan::DataParallelGroups& groups);

  /// The ranks of this copy, among which states are partitioned, gathered and reduced.
  [[nodiscard]] comm::World& copy() noexcept { return group_ ? *group_ : world_; }
  /// Whether this copy writes checkpoints, weights and losses: that of rank 0; the others have equal ones.
  [[nodiscard]] bool writes() const noexcept { return place_.members.front() == 0; }
  /// Communicator of all ranks of the run, to compare settings; null if there is one copy. Collective.
  [[nodiscard]] std::unique_ptr<comm::Communicator> make_everybody();
  /// Communicator of this rank's peers, for overflow and stop requests; null without peers. Collective.
  [[nodiscard]] std::unique_ptr<comm::Communicator> make_peers();

 private:
  comm::World& world_;
  const plan::DataParallelPlace place_;
  std::optional<comm::GroupWorld> group_;
};

}  // namespace shardscope::train
