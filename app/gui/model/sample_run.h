// A run to look at for people who have none yet: simulated when it is asked for, so that it shows what this
// version records, and no file has to be kept with the program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/command_run.h"

namespace shardscope::gui {

/// GPT-2 under ZeRO-3 on four GPUs, one of which is slow: there is something to find. A third of a second.
[[nodiscard]] std::vector<std::string> sample_arguments(const std::string& program, const std::string& out);

class SampleRun {
 public:
  SampleRun() = default;
  ~SampleRun();  ///< removes the recording
  SampleRun(const SampleRun&) = delete;
  SampleRun& operator=(const SampleRun&) = delete;

  void start();
  [[nodiscard]] bool running() const noexcept { return command_ && command_->running(); }
  struct Outcome {
    std::string recording, problem;  ///< one of them is empty
  };
  /// Once, of the run that has ended.
  [[nodiscard]] std::optional<Outcome> take();

 private:
  std::vector<std::string> files_;
  Outcome outcome_;  ///< written by the command's thread, read when it is no longer running
  bool wanted_ = false;
  std::optional<CommandRun> command_;
};

}  // namespace shardscope::gui
