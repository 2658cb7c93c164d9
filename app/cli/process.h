// Child processes: mpirun with the ranks, the dashboard. Each has a process group of its own, so that a
// Ctrl-C reaches it only once, from this process, and no process is left behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardscope::cli {

class Process {
 public:
  enum class Output : std::uint8_t {
    inherit,
    capture,            ///< its standard output and error are read by read_lines()
    to_standard_error,  ///< its standard output goes there too, and its standard input is empty
  };
  /// Starts argv[0] (searched in PATH). Throws UserError when it cannot be started.
  Process(const std::vector<std::string>& argv, Output output,
          const std::vector<std::pair<std::string, std::string>>& environment = {});
  ~Process();  ///< a child still running is terminated, then killed
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Waits up to `wait` for output and calls `line` with each whole line. False once the output has ended.
  bool read_lines(std::chrono::milliseconds wait, const std::function<void(const std::string&)>& line);
  /// Exit code if it has ended (128 + signal when a signal ended it); never blocks.
  [[nodiscard]] std::optional<int> poll();
  int wait();
  /// Waits until it has ended or `most` has passed; a signal to this process ends the wait.
  void wait_for(std::chrono::milliseconds most);
  void signal(int number);
  [[nodiscard]] bool running();

 private:
  pid_t pid_ = -1;
  int output_fd_ = -1;
  std::string partial_;
  std::optional<int> exit_code_;
};

/// From now on SIGINT, SIGTERM, SIGQUIT and SIGHUP (a terminal or an ssh connection was closed) are
/// requests to end: the recording is finished first. The third ends the program at once. Standard
/// output and error of a closed terminal are discarded, so that writing to them does not end it either.
void install_interrupt_handler();
[[nodiscard]] bool interrupted() noexcept;
/// Name of the first of these signals received, and its exit code, 128 + its number.
[[nodiscard]] const char* interrupt_name() noexcept;
[[nodiscard]] int interrupt_code() noexcept;

/// From now on SIGUSR2 requests to keep the current moment, instead of ending the program. Every program
/// that records installs it at its start, also where nothing can be kept, because the signal would end it.
void install_request_handler();
/// Whether SIGUSR2 was received since the last call.
[[nodiscard]] bool take_request() noexcept;

}  // namespace shardscope::cli
