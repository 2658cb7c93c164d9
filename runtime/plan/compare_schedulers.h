// Compares two ZeRO-3 schedulers, in totals and in sentences: the same model, world and limits under our
// scheduler and under DeepSpeed's (or that of the documents).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/model_plan.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/visit_order.h"

namespace shardscope::plan {

/// One iteration that follows the recorded trace, from root forward to optimizer step.
struct SchedulerTotals {
  std::int64_t gathers = 0;         ///< collectives, fetches and prefetches
  std::int64_t on_demand = 0;       ///< gathers that the module itself waits for
  std::int64_t gathered_elems = 0;  ///< full elements
  std::int64_t peak_elems = 0;      ///< most full elements held at a time, persistent ones included
};

/// One module boundary at which the two decisions differ. Gathers after the optimizer step count to the last
/// boundary.
struct SchedulerDifference {
  std::int64_t visit = 0;  ///< number of the boundary in the iteration, from 0; recompute marks do not count
  ModuleId module{};
  Direction direction{};
  std::string text;  ///< "before h.0.fc1: ours prefetches h.0.fc2 (16 448 elements), deepspeed nothing"
};

struct SchedulerComparison {
  SchedulerTotals first, second;
  std::vector<SchedulerDifference> differences;
  /// "gathers 30 and 34, ...", and the differences; empty if all decisions are equal.
  [[nodiscard]] std::string summary(const char* first_name, const char* second_name) const;
};

/// "shardscope", "deepspeed" or "notes".
[[nodiscard]] const char* to_string(Compat compat) noexcept;

/// Runs three iterations of `visits` under `config` with `first` and with `second` and compares the third,
/// which follows a complete trace after a step. `visits` are those without VisitOptions::deepspeed_hooks:
/// visits that DeepSpeed's hooks add or omit are added or omitted on the side that follows DeepSpeed. Only
/// modules and parameters of the model are read, so that a recorded run, which has no ModelSpec, can be
/// compared in its recorded order.
[[nodiscard]] SchedulerComparison compare_schedulers(const ModelPlan& model, std::uint32_t world,
                                                     SchedulerConfig config, const std::vector<Visit>& visits,
                                                     Compat first, Compat second);
/// The same in the order of the model's tree. Conditionals are evaluated as in iteration 0.
[[nodiscard]] SchedulerComparison compare_schedulers(const ModelPlan& model, std::uint32_t world,
                                                     SchedulerConfig config, Compat first, Compat second);

}  // namespace shardscope::plan
