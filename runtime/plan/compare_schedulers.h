// Where two ways of scheduling ZeRO-3 part, in figures and in words: the same model, world and limits under
// our scheduler and under DeepSpeed's (or the documents').
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
  std::int64_t on_demand = 0;       ///< gathers that their own module waits for
  std::int64_t gathered_elems = 0;  ///< full elements
  std::int64_t peak_elems = 0;      ///< most full elements held at a time, persistent ones included
};

/// One module boundary at which the two decide otherwise. What is gathered after the optimizer step counts to
/// the last one.
struct SchedulerDifference {
  std::int64_t visit = 0;  ///< number of the boundary in the iteration, from 0; recompute marks are none
  ModuleId module{};
  Direction direction{};
  std::string text;  ///< "before h.0.fc1: ours prefetches h.0.fc2 (16 448 elements), deepspeed nothing"
};

struct SchedulerComparison {
  SchedulerTotals first, second;
  std::vector<SchedulerDifference> differences;
  /// "gathers 30 and 34, ...", and why the two part; empty when they decide alike everywhere.
  [[nodiscard]] std::string summary(const char* first_name, const char* second_name) const;
};

/// "shardscope", "deepspeed" or "notes".
[[nodiscard]] const char* to_string(Compat compat) noexcept;

/// Runs three iterations of `visits` under `config` with `first` and with `second` and compares the third,
/// which follows a complete trace after a step. `visits` are those without VisitOptions::deepspeed_hooks:
/// what DeepSpeed's hooks add and leave out is added and left out on the sides that have them. Of the model
/// only modules and parameters are read, so that a recorded run, which has no ModelSpec, can be compared by
/// the order it was seen to take.
[[nodiscard]] SchedulerComparison compare_schedulers(const ModelPlan& model, std::uint32_t world,
                                                     SchedulerConfig config, const std::vector<Visit>& visits,
                                                     Compat first, Compat second);
/// The same in the order that the model's tree gives. Conditionals are taken as in their first iteration.
[[nodiscard]] SchedulerComparison compare_schedulers(const ModelPlan& model, std::uint32_t world,
                                                     SchedulerConfig config, Compat first, Compat second);

}  // namespace shardscope::plan
