// Predicted gains of a recording's findings: `shardscope findings` simulates the change each one suggests, in
// a separate process, so that the window stays responsive.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/summary.h"
#include "app/gui/model/command_run.h"
#include "app/store/store.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

/// Parses the output of `findings --json`; on failure the second member is the reason.
[[nodiscard]] std::pair<std::vector<analysis::Finding>, std::string> read_findings(const std::string& json);

/// Why no setting of this run can be simulated, as a sentence without a full stop; empty for Shardscope's own
/// runtime and for DeepSpeed on a CPU, whose recorded steps are replayed.
[[nodiscard]] std::string why_not_simulated(const store::Store& store);

/// Whether a prediction is possible: of a run that can be simulated, with at least one finding that suggests
/// a setting.
[[nodiscard]] bool can_be_played(const store::Store& store, const std::vector<analysis::Finding>& findings);

/// Runs `shardscope findings` on a recording in the background.
class AdviceRun {
 public:
  enum class State : std::uint8_t { not_asked, asking, answered, failed };

  /// Cancels a command that is still running.
  void ask(const std::string& recording);
  [[nodiscard]] State state() const noexcept { return state_; }
  /// Why the command failed; empty unless state() is `failed`.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  /// Findings with predicted gains: returned once, after the command has succeeded.
  [[nodiscard]] std::optional<std::vector<analysis::Finding>> take();

 private:
  State state_ = State::not_asked;
  std::string problem_;
  CommandRun::Ended ended_;  ///< written by the command's thread, read after that has ended
  std::unique_ptr<CommandRun> command_;
};

}  // namespace shardscope::gui
