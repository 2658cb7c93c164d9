// Sample run for users without a recording: simulated on request, so that it shows what this version records
// and no file has to be installed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/command_run.h"

namespace shardscope::gui {

/// GPT-2 under ZeRO-3 on four GPUs, one of them slow, so that there is something to find; 0.3 s long.
[[nodiscard]] std::vector<std::string> sample_arguments(const std::string& program, const std::string& out);

class SampleRun {
 public:
  SampleRun() = default;
  ~SampleRun();  ///< deletes the recording
  SampleRun(const SampleRun&) = delete;
  SampleRun& operator=(const SampleRun&) = delete;

  void start();
  [[nodiscard]] bool running() const noexcept { return command_ && command_->running(); }
  struct Outcome {
    std::string recording, problem;  ///< exactly one is non-empty
  };
  /// Returned once, after the run has ended.
  [[nodiscard]] std::optional<Outcome> take();

 private:
  std::vector<std::string> files_;
  Outcome outcome_;  ///< written by the command's thread, read after it has ended
  bool wanted_ = false;
  std::optional<CommandRun> command_;
};

}  // namespace shardscope::gui
