// Replays the recorded steps of an attached run with other settings: the host times of each step on a
// simulated clock, which collectives synchronize.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/attached/ddp_buckets.h"
#include "app/analysis/attached/group_actions.h"
#include "app/analysis/attached/planned_actions.h"
#include "app/analysis/attached/recorded_costs.h"
#include "instrumentation/run_tables.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::analysis::attached {

/// The settings of a replay: those of the recorded framework.
struct ReplaySettings {
  plan::ZeroConfig zero;   ///< DeepSpeed's; of the others only gradient_accumulation_steps
  GroupSettings groups;    ///< FSDP2's
  BucketSettings buckets;  ///< DistributedDataParallel's
};

struct ReplayOutcome {
  double step_ms = 0;    ///< median of the replayed steps; NaN if times cannot be predicted
  double waited_ms = 0;  ///< mean over steps and ranks: time for which the host waited for communication
  StepActions actions;
  std::int64_t model_state_bytes = 0;  ///< peak of a rank, as recorded, adjusted for the settings
  std::int64_t bucket_bytes = 0;       ///< buffers of gradient buckets
};

/// The data of a recording that a replay needs; keeps no reference to the store.
class AttachedRun {
 public:
  explicit AttachedRun(const store::Store& store);

  /// Why the run cannot be replayed; empty if it can. One reason is that a replay of the recorded settings
  /// decides otherwise than the run.
  [[nodiscard]] const std::string& missing() const noexcept { return missing_; }
  /// Why no times are predicted, only decisions and memory; empty if they are. One reason is that a replay of
  /// the recorded settings deviates from the recorded time by more than kMostErrorPct.
  [[nodiscard]] const std::string& no_times() const noexcept { return no_times_; }
  static constexpr double kMostErrorPct = 10;

  [[nodiscard]] const RecordedCosts& costs() const noexcept { return costs_; }
  [[nodiscard]] const ReplaySettings& recorded_settings() const noexcept { return settings_; }
  /// The replay of the recorded settings. Only valid if missing() is empty.
  [[nodiscard]] const ReplayOutcome& modelled() const noexcept { return modelled_; }
  /// 100 (modelled / recorded - 1); NaN if times cannot be predicted.
  [[nodiscard]] double model_error_pct() const noexcept;
  /// Throws std::invalid_argument for limits that no scheduler accepts.
  [[nodiscard]] ReplayOutcome play(const ReplaySettings& settings) const;
  /// The recorded time, plus the change predicted by the model.
  [[nodiscard]] double predicted_ms(const ReplayOutcome& played) const noexcept;
  /// The most that is gathered at a time, in bytes as communicated.
  [[nodiscard]] std::int64_t gathered_bytes(const ReplayOutcome& played) const noexcept;
  /// What a prediction for these settings ignores, as sentences; may be empty.
  [[nodiscard]] std::vector<std::string> caveats(const ReplaySettings& settings) const;

 private:
  [[nodiscard]] bool in_groups() const noexcept { return !costs_.groups.empty(); }
  [[nodiscard]] bool is_ddp() const noexcept { return !costs_.reduced.empty(); }
  [[nodiscard]] StepActions actions_of(const ReplaySettings& settings) const;
  [[nodiscard]] GroupPlan group_plan(const ReplaySettings& settings) const;
  [[nodiscard]] std::string why_it_differs() const;
  [[nodiscard]] std::int64_t state_bytes(const plan::ZeroConfig& zero) const;

  std::string missing_, no_times_;
  RecordedCosts costs_;
  ReplaySettings settings_;
  instrumentation::RunTables tables_;
  std::int64_t recorded_state_bytes_ = 0;
  StepActions recorded_;
  GroupPlan recorded_groups_;  ///< FSDP2
  ReplayOutcome modelled_;
};

}  // namespace shardscope::analysis::attached
