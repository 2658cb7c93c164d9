// Runs a command in a child process and collects its output; can be cancelled.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace shardscope::gui {

/// Runs one command at a time.
class CommandRun {
 public:
  struct Ended {
    std::string out;      ///< standard output, truncated at 64 MiB
    std::string problem;  ///< why the command failed; empty: exit code 0
    std::string words;    ///< standard error, without the program's name at the begin of each line
  };
  /// Called on the worker thread, before running() returns false.
  using Done = std::function<void(Ended)>;

  CommandRun() = default;
  ~CommandRun();  ///< cancels the command
  CommandRun(const CommandRun&) = delete;
  CommandRun& operator=(const CommandRun&) = delete;

  /// Cancels a command that is still running. argv[0] is the program.
  void start(std::vector<std::string> argv, Done done);
  void cancel();
  [[nodiscard]] bool running() const noexcept { return running_; }

 private:
  [[nodiscard]] Ended run(const std::vector<std::string>& argv);
  std::mutex mutex_;
  std::atomic<bool> running_ = false, cancelled_ = false;
  int child_ = -1;  ///< process id, guarded by mutex_
  std::thread thread_;
};

/// Path of the `shardscope` program in the folder of this one, or else in PATH.
[[nodiscard]] std::string shardscope_program();
/// Unique path in the temporary folder for a recording; the name contains `what` and the process id.
[[nodiscard]] std::string temporary_recording(const std::string& what);

}  // namespace shardscope::gui
