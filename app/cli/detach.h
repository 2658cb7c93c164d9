// --detach: the verb runs in the background, independent of the terminal and of the connection to it.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace shardscope::cli {

struct DetachOptions {
  bool detach = false;
  std::string log;  ///< empty: beside the recording, or in the current folder
};

/// Adds --detach, which it returns, and --log.
CLI::Option* add_detach_options(CLI::App& verb, DetachOptions& options);

/// Called by the work once it has started, with the command to watch it. Before that it may fail as
/// in the foreground.
using UnderWay = std::function<void(const std::string& watch_command)>;

/// Runs `work` in a child process without a terminal, its output in the log. The calling process
/// prints the child's id, the log, how to watch and how to stop it, and returns 0; or, where the work ended
/// before it had started, prints its output and returns its exit code. The child returns the exit code
/// of `work`. Call while there are no other threads. Throws UserError when the log cannot be written.
[[nodiscard]] int detached(const DetachOptions& options, const std::string& recording,
                           const std::function<int(const UnderWay&)>& work);

}  // namespace shardscope::cli
