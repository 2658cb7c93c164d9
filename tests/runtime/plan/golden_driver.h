// A FetchScheduler driven through the iterations of a recorded case, and what it decides written down in the
// terms of coordinator.json: fetch, gather, wait, prefetch and release, event by event.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/fetch_counters.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/visit_driver.h"
#include "runtime/plan/visit_order.h"
#include "tests/runtime/plan/golden.h"

namespace shardscope::golden {

/// A list of parameters as the file has them: ascending, each once.
[[nodiscard]] Json ids_of(const std::vector<plan::ParamId>& ids);

class SchedulerDriver {
 public:
  /// `run`: a case with its "config" and "register_external". Throws std::invalid_argument where the model
  /// has no module or parameter of that name.
  SchedulerDriver(const plan::ModelPlan& model, std::uint32_t world, const Json& run);

  [[nodiscard]] const plan::FetchScheduler& scheduler() const noexcept { return scheduler_; }

  /// What follows the forward: backward and step, a step that is skipped, or nothing in an evaluation.
  enum class Step { applied, skipped, none };
  /// Visits the modules, and returns what was decided as the file records an iteration.
  [[nodiscard]] Json iteration(const std::vector<plan::Visit>& visits, Step after = Step::applied);

 private:
  void step(const plan::Visit& visit);
  void fetched(const plan::FetchPlan& plan, plan::ModuleId module, plan::Direction direction);
  void released(const plan::ReleasePlan& plan, plan::ModuleId module, plan::Direction direction);
  void finish(Json& result);
  void released(const char* kind, const std::vector<plan::ParamId>& ids);
  [[nodiscard]] Json counted();
  [[nodiscard]] Json with_status(plan::ParamStatus status) const;
  [[nodiscard]] plan::ModuleId module_at(const std::string& path) const;
  [[nodiscard]] plan::ParamId param_named(const std::string& name) const;

  const plan::ModelPlan& model_;
  plan::FetchScheduler scheduler_;
  plan::VisitDriver driver_;
  plan::FetchCounters counters_;
  Json events_;
};

}  // namespace shardscope::golden
