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
  std::string log;  ///< empty: beside the recording, or in the folder one is in
};

/// Adds --detach, which is returned, and --log.
CLI::Option* add_detach_options(CLI::App& verb, DetachOptions& options);

/// To be called by the work when it is up, with the command that shows it. Before that it may still fail as
/// it would in the foreground.
using UnderWay = std::function<void(const std::string& watch_command)>;

/// Does `work` in a process of its own, without a terminal, its output in the log. In the process that calls,
/// prints the other's id, the log, how to watch and how to stop it, and returns 0; or, where the work ended
/// before it was up, what it had to say, and returns its exit code. In the process of its own, returns that
/// of `work`. To be called while there are no other threads. Throws UserError when the log cannot be written.
[[nodiscard]] int detached(const DetachOptions& options, const std::string& recording,
                           const std::function<int(const UnderWay&)>& work);

}  // namespace shardscope::cli
