// The order in which one iteration visits the modules of a model: forward, then autograd's backward. Drives a
// scheduler without a device (simulator, tests, checks against recorded sequences).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "runtime/plan/model_plan.h"

namespace shardscope::plan {

enum class VisitKind : std::uint8_t {
  pre_forward,
  post_forward,
  pre_backward,
  post_backward,
  use_external,     ///< a weight of another module is read inside `module`
  return_param,     ///< `module`, whose forward ends now, returns `param` (before its post_forward)
  begin_recompute,  ///< the forward of a checkpointed module runs again
  end_recompute,
};

struct Visit {
  VisitKind kind = VisitKind::pre_forward;
  ModuleId module{};
  ParamId param = kNone<ParamId>;  ///< use_external and return_param only

  friend bool operator==(const Visit&, const Visit&) = default;
};

struct VisitOptions {
  std::int64_t iteration = 0;  ///< from 0; decides which conditionals are skipped
  /// Which children of a list run, in order, instead of all of them: indices of children, repeats allowed.
  std::map<ModuleId, std::vector<std::uint32_t>> list_order;
  /// As DeepSpeed's hooks: of several visits in one forward only the backward of the last reports its end
  /// (BackwardEnds), and a returned parameter that was read adds a pre_backward (ReturnedValues).
  bool deepspeed_hooks = false;
};

/// All visits of one iteration. A module whose input needs no gradient has no post_backward (P12), one whose
/// output needs none (all parameters up to it frozen) no backward at all. Throws std::invalid_argument when
/// list_order names a child that does not exist.
[[nodiscard]] std::vector<Visit> visit_order(const ModelPlan& model, const VisitOptions& options = {});

}  // namespace shardscope::plan
