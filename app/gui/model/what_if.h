// What if: the recorded run played again with other settings by `shardscope what-if`, in a process of its
// own, so that the window goes on meanwhile and a failure there is a message here.
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

/// A setting that the panel offers.
struct WhatIfSetting {
  enum class Kind : std::uint8_t { on_off, count, choice };
  const char* key;    ///< in the configuration, with dots
  const char* label;  ///< as the panel shows it
  Kind kind = Kind::count;
  std::int64_t least = 0, most = 0;              ///< of a count, on a logarithmic slider
  std::vector<std::string> choices = {};         ///< as the configuration writes them
  std::int32_t first_stage = 0, last_stage = 3;  ///< in which it does something
  const char* tip = "";
  const char* unit = "";  ///< of a count
};
/// "500 000 000 elements"; a value that the configuration does not have is the default of who reads it.
[[nodiscard]] std::string text_of(const WhatIfSetting& setting, const std::string& value);
/// The text as a printf format that prints it and converts nothing: a recording's configuration may hold any.
[[nodiscard]] std::string as_format(std::string_view text);
[[nodiscard]] const std::vector<WhatIfSetting>& what_if_settings();

/// Which controls of the panel are of no use for a run, and why: those of an attached run that `what-if`
/// refuses. Of a run of this runtime all are empty.
struct WhatIfRefusals {
  std::string run;                    ///< no setting can be asked of this run
  std::vector<std::string> settings;  ///< by setting
  std::string ranks, links, search, open_beside;
};
[[nodiscard]] WhatIfRefusals what_if_refusals(const instrumentation::RunTables& tables);

/// A setting's value in a configuration: what is recorded, or empty where it has none.
[[nodiscard]] std::string setting_value(const std::string& config_json, const std::string& key);

/// What the user chose.
struct WhatIfChoice {
  std::vector<std::string> values;  ///< by setting; as recorded: not changed
  std::vector<bool> own;            ///< by setting: the user or a finding has set it, to whatever value
  std::uint32_t ranks = 0, ranks_per_node = 0;
  double link_gb_per_s = 0, link_latency_us = 0;  ///< among the ranks of a node; 0: as fitted
  double node_link_gb_per_s = 0, node_link_latency_us = 0;
  std::string more;  ///< "KEY=VALUE" each on a line, for what has no slider
};
/// As the run is.
[[nodiscard]] WhatIfChoice as_recorded(const instrumentation::RunTables& tables);
/// Sets one of what_if_settings(). It keeps its value when another stage is chosen, also where that is a
/// stage's default.
void set(WhatIfChoice& choice, std::size_t which, std::string value);
/// Chooses a stage. Settings whose default depends on it, which neither the configuration nor the user has
/// set, become those of the new stage: what the panel shows is what is played.
void choose_stage(WhatIfChoice& choice, const instrumentation::RunTables& tables, const std::string& stage);
/// Changes settings: those that the panel offers at their place, others as lines of `more`.
void change(WhatIfChoice& choice, const instrumentation::RunTables& tables,
            const std::vector<analysis::Change>& changes);
/// The command line: only what differs from the recording, or from the defaults of the chosen stage, is
/// named. `out` empty: the run is not kept.
[[nodiscard]] std::vector<std::string> what_if_arguments(const std::string& program,
                                                         const std::string& recording,
                                                         const instrumentation::RunTables& tables,
                                                         const WhatIfChoice& choice, const std::string& out);

struct WhatIfResult {
  double recorded_ms = 0, modelled_ms = 0, changed_ms = 0, predicted_ms = 0, change_pct = 0,
         model_error_pct = 0;
  analysis::Comparison comparison;  ///< A: recorded settings, modelled; B: the changed ones
  std::string warnings;             ///< of the command, a line each
  std::string recording;            ///< the changed run, as a file
  std::vector<PlanCount> counts;    ///< of it: what its plan decided
};
/// Reads the command's JSON; gives the reason in words where it is none.
[[nodiscard]] std::pair<std::optional<WhatIfResult>, std::string> read_what_if(const std::string& json);

/// One run of the command at a time.
class WhatIfRun {
 public:
  WhatIfRun() = default;
  ~WhatIfRun();  ///< ends the command and removes what it wrote
  WhatIfRun(const WhatIfRun&) = delete;
  WhatIfRun& operator=(const WhatIfRun&) = delete;

  /// Another that still runs is ended first. argv[0] is the program.
  void start(std::vector<std::string> argv, std::string recording);
  void cancel() { command_->cancel(); }
  /// Ends it; there is no outcome from here on. Files that it wrote stay: one may be what is shown now.
  void forget();
  [[nodiscard]] bool running() const noexcept { return command_->running(); }
  struct Outcome {
    std::optional<WhatIfResult> result;
    std::string problem;  ///< what the command said, where there is no result
  };
  /// Outcome of the last run that has ended; null while none has.
  [[nodiscard]] std::shared_ptr<const Outcome> outcome() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Outcome> outcome_;
  std::vector<std::string> files_;
  std::unique_ptr<CommandRun> command_ = std::make_unique<CommandRun>();
};

}  // namespace shardscope::gui
