// Which modules report the end of their backward, as DeepSpeed's hooks do.
#pragma once

#include <set>

#include "runtime/plan/compat.h"
#include "runtime/plan/ids.h"
#include "runtime/plan/scheduler_compat.h"

namespace shardscope::plan {

/// DeepSpeed counts the inputs of a module anew in each forward (PO: ds_grads_remaining), so of several
/// visits in one iteration only the one whose backward comes first reports its end. A recomputation is a
/// forward: the modules it visits report again. Parameters of modules that never report are released by
/// FetchScheduler::release_leftovers(). Under Compat::shardscope every visit reports. Pure; one per rank.
class BackwardEnds {
 public:
  explicit BackwardEnds(Compat compat) : first_only_(SchedulerCompat(compat).reports_first_backward_only()) {}

  /// Call at each pre-forward, also in a recomputation.
  void forward(ModuleId module) { reported_.erase(module); }
  /// Call at post-backward. Returns whether the scheduler releases the module now.
  [[nodiscard]] bool reports(ModuleId module) { return !first_only_ || reported_.insert(module).second; }

 private:
  bool first_only_;
  std::set<ModuleId> reported_;
};

}  // namespace shardscope::plan
