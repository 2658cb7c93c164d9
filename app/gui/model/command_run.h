// A command beside the window: started, read to its end, ended early when the user says so.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace shardscope::gui {

/// One run of a command at a time.
class CommandRun {
 public:
  struct Ended {
    std::string out;      ///< its standard output, 64 MiB at most
    std::string problem;  ///< why it came to nothing, in words; empty: it exited with 0
    std::string words;    ///< its error output, without the program's name in front of each line
  };
  /// Called on a thread of its own, before running() is false.
  using Done = std::function<void(Ended)>;

  CommandRun() = default;
  ~CommandRun();  ///< ends the command
  CommandRun(const CommandRun&) = delete;
  CommandRun& operator=(const CommandRun&) = delete;

  /// Another that still runs is ended first. argv[0] is the program.
  void start(std::vector<std::string> argv, Done done);
  void cancel();
  [[nodiscard]] bool running() const noexcept { return running_; }

 private:
  [[nodiscard]] Ended run(const std::vector<std::string>& argv);
  std::mutex mutex_;
  std::atomic<bool> running_ = false, cancelled_ = false;
  int child_ = -1;  ///< process, under mutex_
  std::thread thread_;
};

/// The `shardscope` program beside this one, or the one in PATH.
[[nodiscard]] std::string shardscope_program();
/// A recording's name in the folder of temporary files, `what` and this process in it; used by no other call.
[[nodiscard]] std::string temporary_recording(const std::string& what);

}  // namespace shardscope::gui
