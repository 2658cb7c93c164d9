// A recorded run that can be played with other settings: its configuration, and the fitted cost model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/pace.h"
#include "app/analysis/setting_search.h"
#include "app/cli/config_override.h"
#include "app/cli/modelled_run.h"
#include "app/store/store.h"
#include "runtime/config/config.h"

namespace shardscope::cli {

/// Options of `what-if`, as the user gives them.
struct ReplayOptions {
  std::string recording, model, link, node_link, host_link;
  std::optional<double> matrix_tflops;  ///< of the changed data type
  bool trial = false;
  std::vector<std::string> set;
  std::uint32_t ranks = 0, ranks_per_node = 0;  ///< 0: as recorded
  std::int64_t steps = 4;
  bool quiet = false;  ///< no warnings, where the user did not ask for a play
};

/// Why what-if cannot play this run; empty where its framework allows it.
[[nodiscard]] std::string why_not_played(const store::Store& store);

/// "the model's step is 7.9 % shorter than the recorded one", for ReplayedRun::model_error_pct().
[[nodiscard]] std::string model_error_text(double error_pct);

/// The largest device memory peak of any rank.
[[nodiscard]] std::int64_t device_peak(const store::Store& store);

class ReplayedRun {
 public:
  /// Reads the recording and fits the model to it. Throws UserError, config::ConfigError.
  explicit ReplayedRun(const ReplayOptions& options);

  [[nodiscard]] const store::Store& recorded() const noexcept { return recorded_; }
  [[nodiscard]] const analysis::Pace& pace() const noexcept { return pace_; }
  /// The recorded settings, played on the fitted model.
  [[nodiscard]] const Measured& modelled() const noexcept { return *modelled_; }
  [[nodiscard]] const config::TrainingConfig& recorded_config() const noexcept { return as_recorded_; }
  [[nodiscard]] const analysis::Rates& fitted() const noexcept { return fitted_; }
  /// Rates for playing the changed run: fitted, with given links and the rate of a changed data type.
  [[nodiscard]] const analysis::Rates& rates() const noexcept { return rates_; }
  [[nodiscard]] std::uint32_t ranks() const noexcept { return ranks_; }

  /// The recorded configuration with the options' --set and then `more` applied.
  [[nodiscard]] TemporaryConfig changed(const std::vector<std::string>& more = {}) const;
  /// The same, parsed.
  [[nodiscard]] config::TrainingConfig changed_config() const;
  /// Uses the machine of the options from now on: links, ranks, rates of the data
  /// type of `changed`. Throws UserError.
  void set_machine(const TemporaryConfig& changed);
  /// Plays the changed settings, after set_machine(); returns the recording's path. Throws UserError, also
  /// where they need a link whose speed was not given, and config::ConfigError.
  std::string play(const TemporaryConfig& changed);
  /// Throws UserError where `played` used a link of unknown speed.
  void check_links(const analysis::Pace& played) const;
  /// Plays the recorded configuration with `sets`, which must need no other machine. Settings that cannot be
  /// played or measured are refused; throws UserError when the user has interrupted it.
  [[nodiscard]] analysis::PlayOutcome outcome_of(const std::vector<std::string>& sets);
  /// 100 (modelled / recorded - 1).
  [[nodiscard]] double model_error_pct() const noexcept;
  /// The recorded time plus the change between plays of the model.
  [[nodiscard]] double predicted_ms(double played_ms) const noexcept;

 private:
  void read(const ReplayOptions& options);
  void fit();
  [[nodiscard]] std::string text_with(const std::vector<std::string>& sets, const std::string& name) const;
  void set_rates_of_type(const TemporaryConfig& changed);

  ReplayOptions options_;
  store::Store recorded_;
  analysis::Pace pace_;
  std::uint32_t ranks_ = 1, per_node_ = 1, recorded_per_node_ = 1;
  std::string name_, documents_, text_, model_, description_;
  config::TrainingConfig as_recorded_;
  std::optional<std::int64_t> length_;
  analysis::Rates fitted_, rates_;
  std::unique_ptr<ModelledRun> run_;
  std::optional<Measured> modelled_;
};

}  // namespace shardscope::cli
