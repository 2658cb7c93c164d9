// Drives a scheduler through the visits of an iteration, with the calls that the engine makes but without a
// device.
#pragma once

#include <optional>

#include "runtime/plan/forward_stack.h"
#include "runtime/plan/model_mode.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/visit_order.h"

namespace shardscope::plan {

/// The scheduler's decision at one visit: one of the two, neither at the marks of a recomputation.
struct VisitDecision {
  std::optional<FetchPlan> fetch;      ///< before a module, for a parameter read or returned
  std::optional<ReleasePlan> release;  ///< after a module
};

class VisitDriver {
 public:
  /// `scheduler` must outlive the driver.
  explicit VisitDriver(FetchScheduler& scheduler) : scheduler_(scheduler) {}

  TraceMode begin_iteration(ModelMode mode = ModelMode::training);
  /// A forward after the backward has begun is a recomputation, whether marked (visit_order()) or not (the
  /// order of a recorded run).
  VisitDecision take(const Visit& visit);
  /// From the end of backward to the end of a step that was not skipped: releases leftovers, performs the
  /// update and returns the gather of the persistent parameters.
  Gather end_step();

 private:
  [[nodiscard]] bool recomputes() const noexcept { return marked_ || backward_; }

  FetchScheduler& scheduler_;
  ForwardStack stack_;
  bool marked_ = false;    ///< between the marks of a recomputation
  bool backward_ = false;  ///< a pre-backward was seen in this iteration
};

}  // namespace shardscope::plan
