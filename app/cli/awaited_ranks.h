// While no rank of an attached command has sent anything: what its processes are waited for.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::cli {

/// A Python process that the command has started, on this host.
struct CommandProcess {
  pid_t pid = 0;
  bool armed = false;       ///< the package's hooks are loaded: a rank, or one of its workers
  bool has_torch = false;   ///< PyTorch is loaded
  bool has_folder = false;  ///< its environment names the folder that arms ranks
  double processor_s = 0;   ///< used since it began, all threads
};
/// Descendants of `ancestor` that run Python, as far as /proc may be read. `folder`: that arms ranks.
[[nodiscard]] std::vector<CommandProcess> python_processes(pid_t ancestor, const std::string& folder);
/// A sentence for the terminal: "no rank has sent anything for 60 s: ...". `before`: the same processes
/// `over` ago, for how much they computed meanwhile.
[[nodiscard]] std::string no_rank_text(const std::vector<CommandProcess>& before,
                                       const std::vector<CommandProcess>& now, std::chrono::seconds waited,
                                       std::chrono::seconds over);

/// Says it once, when a minute has passed without a rank, and again after ten.
class AwaitedRanks {
 public:
  explicit AwaitedRanks(std::string folder) : folder_(std::move(folder)) {}
  /// Call every now and then while the command runs and no rank has come. The text to print, or empty.
  [[nodiscard]] std::string look(std::chrono::steady_clock::time_point now);

 private:
  std::string folder_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::vector<CommandProcess> before_;
  bool has_before_ = false;
  std::size_t said_ = 0;
};

}  // namespace shardscope::cli
