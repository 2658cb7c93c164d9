// FSDP2's groups of parameters, and what it did with them at each boundary of one step of one rank.
#pragma once

#include <string>
#include <vector>

#include "app/analysis/attached/rank_reader.h"
#include "app/analysis/attached/recorded_costs.h"
#include "app/analysis/rank_step.h"

namespace shardscope::analysis::attached {

struct GroupsOfStep {
  std::string missing;  ///< why they are not known; then all else is empty
  std::vector<ParamGroup> groups;
  std::vector<std::vector<GroupDecisions>> decisions;  ///< by micro-step, then by piece of RecordedCosts
};
[[nodiscard]] GroupsOfStep groups_of_step(const store::Store& store, const RankStep& step);

/// Adds what a gather and a reduction of a group cost the host beside the transfer: from the decision to the
/// begin of the collective, and from its end to the end of the hook.
void sample_groups(const store::Store& store, const RankStep& step, Samples& samples);

}  // namespace shardscope::analysis::attached
