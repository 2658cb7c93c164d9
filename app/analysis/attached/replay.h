// The recorded steps of an attached run played again with other settings: the host's own times of each step,
// on a clock that the collectives decide between.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/attached/planned_actions.h"
#include "app/analysis/attached/recorded_costs.h"
#include "instrumentation/run_tables.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::analysis::attached {

struct ReplayOutcome {
  double step_ms = 0;    ///< median of the steps played
  double waited_ms = 0;  ///< mean of a step and rank: the host waited for communication
  StepActions actions;
  std::int64_t model_state_bytes = 0;  ///< peak of a rank, as recorded but for what another stage holds
  std::int64_t bucket_bytes = 0;       ///< buffers of gradients' buckets
};

/// A recording with what a replay needs. It keeps no reference to the store.
class AttachedRun {
 public:
  explicit AttachedRun(const store::Store& store);

  /// Why it cannot be replayed, in words; empty where it can. Among the reasons: a replay of the recorded
  /// settings takes another time than the recording by more than kMostErrorPct, or decides otherwise than the
  /// run did.
  [[nodiscard]] const std::string& missing() const noexcept { return missing_; }
  static constexpr double kMostErrorPct = 10;

  [[nodiscard]] const RecordedCosts& costs() const noexcept { return costs_; }
  [[nodiscard]] const plan::ZeroConfig& recorded_settings() const noexcept { return zero_; }
  /// The recorded settings, played. Only where nothing is missing.
  [[nodiscard]] const ReplayOutcome& modelled() const noexcept { return modelled_; }
  /// 100 (modelled / recorded - 1).
  [[nodiscard]] double model_error_pct() const noexcept;
  /// Throws std::invalid_argument on limits that a scheduler cannot have.
  [[nodiscard]] ReplayOutcome play(const plan::ZeroConfig& zero) const;
  /// The recorded time and what the model changes by.
  [[nodiscard]] double predicted_ms(const ReplayOutcome& played) const noexcept;
  /// What a prediction of these settings leaves out, in sentences; may be empty.
  [[nodiscard]] std::vector<std::string> caveats(const plan::ZeroConfig& zero) const;

 private:
  [[nodiscard]] std::string why_it_differs() const;
  [[nodiscard]] std::int64_t state_bytes(const plan::ZeroConfig& zero) const;

  std::string missing_;
  RecordedCosts costs_;
  plan::ZeroConfig zero_;
  instrumentation::RunTables tables_;
  std::int64_t recorded_state_bytes_ = 0;
  StepActions recorded_;
  ReplayOutcome modelled_;
};

}  // namespace shardscope::analysis::attached
