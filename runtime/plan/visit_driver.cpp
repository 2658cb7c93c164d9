#include "runtime/plan/visit_driver.h"

namespace shardscope::plan {

TraceMode VisitDriver::begin_iteration(ModelMode mode) {
  stack_.clear();
  marked_ = backward_ = false;
  return scheduler_.begin_iteration(mode);
}

VisitDecision VisitDriver::take(const Visit& visit) {
  switch (visit.kind) {
    case VisitKind::pre_forward:
      stack_.enter(visit.module);
      return {recomputes() ? scheduler_.fetch_recomputed(visit.module)
                           : scheduler_.fetch(visit.module, Direction::forward),
              {}};
    case VisitKind::use_external:
      return {scheduler_.fetch_external(visit.param, visit.module), {}};
    case VisitKind::return_param:
      return {scheduler_.return_param(visit.param, visit.module, stack_.around()).fetch, {}};
    // After return_param, which needs the module still on the stack.
    case VisitKind::post_forward:
      stack_.leave();
      return {{},
              recomputes() ? scheduler_.release_recomputed(visit.module)
                           : scheduler_.release(visit.module, Direction::forward)};
    case VisitKind::pre_backward:
      backward_ = true;
      return {scheduler_.fetch(visit.module, Direction::backward), {}};
    case VisitKind::post_backward:
      return {{}, scheduler_.release(visit.module, Direction::backward)};
    // A recomputed root runs again before the first pre-backward.
    case VisitKind::begin_recompute:
    case VisitKind::end_recompute:
      marked_ = visit.kind == VisitKind::begin_recompute;
      return {};
  }
  return {};
}

// The calls of PartitionedParameters at the end of a step, in its order.
Gather VisitDriver::end_step() {
  (void)scheduler_.release_leftovers();
  (void)scheduler_.begin_update();
  (void)scheduler_.end_update(WeightChange::trainable);
  return scheduler_.gather_persistent();
}

}  // namespace shardscope::plan
