// What if: replays the recorded run with other settings by `shardscope what-if` in a child process, so that
// the window stays responsive and a failure there is only a message here.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/analysis/summary.h"
#include "app/gui/model/command_run.h"
#include "app/gui/model/plan_counts.h"
#include "instrumentation/event.h"

namespace shardscope::gui {

/// A setting offered by the panel.
struct WhatIfSetting {
  enum class Kind : std::uint8_t { on_off, count, choice };
  const char* key;    ///< dotted key of the configuration
  const char* label;  ///< label in the panel
  Kind kind = Kind::count;
  std::int64_t least = 0, most = 0;              ///< range of a count, on a logarithmic slider
  std::vector<std::string> choices = {};         ///< as in the configuration
  std::int32_t first_stage = 0, last_stage = 3;  ///< stages in which it has an effect
  const char* tip = "";
  const char* unit = "";  ///< of a count
};
/// "500 000 000 elements"; "default" for an empty value.
[[nodiscard]] std::string text_of(const WhatIfSetting& setting, const std::string& value,
                                  const char* unset = "default");
/// Texts of a value that the recording does not have, in a control and in its tip. Calls in a script may have
/// set it, so it need not be the default.
[[nodiscard]] const char* unset_text(const instrumentation::RunTables& tables);
[[nodiscard]] const char* unset_tip(const instrumentation::RunTables& tables);
/// Escapes the text for use as a printf format: a recording's configuration may contain '%'.
[[nodiscard]] std::string as_format(std::string_view text);
[[nodiscard]] const std::vector<WhatIfSetting>& what_if_settings();
/// Whether the run's framework has the setting.
[[nodiscard]] bool is_offered(const WhatIfSetting& setting, const instrumentation::RunTables& tables);

/// Controls that cannot be used for a run, and why: `what-if` refuses them for attached runs. All empty for
/// runs of our own runtime.
struct WhatIfRefusals {
  std::string run;                    ///< no setting can be changed for this run
  std::vector<std::string> settings;  ///< by setting
  std::string ranks, links, search, open_beside;
};
[[nodiscard]] WhatIfRefusals what_if_refusals(const instrumentation::RunTables& tables);

/// The value of a setting in a configuration; empty if it is not set, "none" for a device that is not set.
[[nodiscard]] std::string setting_value(const std::string& config_json, const std::string& key);

/// The user's choices.
struct WhatIfChoice {
  std::vector<std::string> values;  ///< by setting; equal to the recorded value: unchanged
  std::vector<bool> own;            ///< by setting: set by the user or a finding, to any value
  std::uint32_t ranks = 0, ranks_per_node = 0;
  double link_gb_per_s = 0, link_latency_us = 0;  ///< within a node; 0: as fitted
  double node_link_gb_per_s = 0, node_link_latency_us = 0;
  std::string more;  ///< one "KEY=VALUE" per line, for other settings
};
/// The choice that changes nothing.
[[nodiscard]] WhatIfChoice as_recorded(const instrumentation::RunTables& tables);
/// Sets one of what_if_settings(). The value is kept when another stage is chosen, even if it equals the
/// default of a stage.
void set(WhatIfChoice& choice, std::size_t which, std::string value);
/// Chooses a stage. Settings with a stage-dependent default that neither the configuration nor the user has
/// set change to the default of the new stage: the panel shows the values that are simulated.
void choose_stage(WhatIfChoice& choice, const instrumentation::RunTables& tables, const std::string& stage);
/// Applies changes: to settings of the panel, or as lines of `more` for other keys.
void change(WhatIfChoice& choice, const instrumentation::RunTables& tables,
            const std::vector<analysis::Change>& changes);
/// The command line: contains only values that differ from the recording or from the defaults of the chosen
/// stage. Empty `out`: the simulated run is not stored.
[[nodiscard]] std::vector<std::string> what_if_arguments(const std::string& program,
                                                         const std::string& recording,
                                                         const instrumentation::RunTables& tables,
                                                         const WhatIfChoice& choice, const std::string& out);

struct WhatIfResult {
  double recorded_ms = 0, modelled_ms = 0, changed_ms = 0, predicted_ms = 0, change_pct = 0,
         model_error_pct = 0;
  analysis::Comparison comparison;  ///< A: recorded settings, modelled; B: changed settings
  std::string warnings;             ///< of the command, one per line
  std::string recording;            ///< file of the changed run
  std::vector<PlanCount> counts;    ///< plan counts of the changed run
};
/// Parses the command's JSON; on failure the second member is the reason.
[[nodiscard]] std::pair<std::optional<WhatIfResult>, std::string> read_what_if(const std::string& json);

/// Runs one command at a time.
class WhatIfRun {
 public:
  WhatIfRun() = default;
  ~WhatIfRun();  ///< cancels the command and deletes its output
  WhatIfRun(const WhatIfRun&) = delete;
  WhatIfRun& operator=(const WhatIfRun&) = delete;

  /// Cancels a command that is still running. argv[0] is the program.
  void start(std::vector<std::string> argv, std::string recording);
  void cancel() { command_->cancel(); }
  /// Cancels the command and drops its outcome. Its files are kept: the window may be showing one.
  void forget();
  [[nodiscard]] bool running() const noexcept { return command_->running(); }
  struct Outcome {
    std::optional<WhatIfResult> result;
    std::string problem;  ///< error message of the command, if there is no result
  };
  /// Outcome of the last run; null before it has ended.
  [[nodiscard]] std::shared_ptr<const Outcome> outcome() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Outcome> outcome_;
  std::vector<std::string> files_;
  std::unique_ptr<CommandRun> command_ = std::make_unique<CommandRun>();
};

}  // namespace shardscope::gui
