// The ranks of a run as one of them sees them: those that train its copy of the model with it
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
  /// `world` has its link and its nodes. Without groups all its ranks train one copy.
  RunRanks(comm::World& world, const plan::DataParallelGroups& groups);

  /// The ranks of this copy: who partitions, gathers and reduces with whom.
  [[nodiscard]] comm::World& copy() noexcept { return group_ ? *group_ : world_; }
  /// The copy of rank 0 writes checkpoints, weights and losses; the others have the same.
  [[nodiscard]] bool writes() const noexcept { return place_.members.front() == 0; }
  /// Among all ranks of the run, for what they must have alike; null where that is the copy. Collective.
  [[nodiscard]] std::unique_ptr<comm::Communicator> make_everybody();
  /// Among this rank's peers, for overflow and stops; null without any. Collective.
  [[nodiscard]] std::unique_ptr<comm::Communicator> make_peers();

 private:
  comm::World& world_;
  const plan::DataParallelPlace place_;
  std::optional<comm::GroupWorld> group_;
};

}  // namespace shardscope::train
