// Predicted gains of a recording's findings: `shardscope findings` plays what they would change, in a process
// of its own, so that the window goes on meanwhile.
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

/// Reads `findings --json`; gives the reason in words where it is none.
[[nodiscard]] std::pair<std::vector<analysis::Finding>, std::string> read_findings(const std::string& json);

/// Whether asking could change anything: a run of Shardscope's own runtime with findings that a setting
/// answers.
[[nodiscard]] bool can_be_played(const store::Store& store, const std::vector<analysis::Finding>& findings);

/// Asked once for each recording.
class AdviceRun {
 public:
  enum class State : std::uint8_t { not_asked, asking, answered, failed };

  /// A command that still runs is ended first.
  void ask(const std::string& recording);
  [[nodiscard]] State state() const noexcept { return state_; }
  /// Why there is no answer, where it failed.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  /// The findings as the command gives them, once, when it has ended well.
  [[nodiscard]] std::optional<std::vector<analysis::Finding>> take();

 private:
  State state_ = State::not_asked;
  std::string problem_;
  CommandRun::Ended ended_;  ///< written by the command's thread, read when it no longer runs
  std::unique_ptr<CommandRun> command_;
};

}  // namespace shardscope::gui
