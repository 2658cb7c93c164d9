// The communicators of every rank, and classes of equivalent ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/plan/ownership.h"
#include "runtime/plan/zero_config.h"
#include "runtime/plan/zero_groups.h"
#include "runtime/simulate/cost_model.h"

namespace shardscope::simulate {

/// One communicator of one rank.
struct Membership {
  std::string name;
  std::uint32_t group = 0;     ///< of RunGroups::groups
  std::uint32_t position = 0;  ///< rank within it
};

class RunGroups {
 public:
  /// Throws std::invalid_argument when the configuration asks for groups that the ranks do not form.
  RunGroups(const plan::ZeroConfig& zero, const plan::Topology& topology);

  struct Entry {
    comm::Group group;
    GroupShape shape;
  };
  [[nodiscard]] const std::vector<Entry>& groups() const noexcept { return groups_; }
  /// The communicators of `rank` in the order in which it makes them: gather, reduce, control, then those of
  /// ZeRO++ and MiCS.
  [[nodiscard]] const std::vector<Membership>& of(std::uint32_t rank) const { return of_rank_[rank]; }
  [[nodiscard]] const plan::Topology& topology() const noexcept { return topology_; }

 private:
  plan::Topology topology_;
  std::vector<Entry> groups_;
  std::vector<std::vector<Membership>> of_rank_;
};

/// For each rank the lowest rank whose engine makes the same calls and events: both own pieces of equal size
/// of the same parameters and have equal group shapes. Stage 3 has few classes; in stages 1 and 2 every rank
/// owns different parameters.
[[nodiscard]] std::vector<std::uint32_t> representatives(const plan::ModelPlan& model,
                                                         const plan::ZeroConfig& zero,
                                                         const plan::Ownership& ownership,
                                                         const RunGroups& groups);

}  // namespace shardscope::simulate
