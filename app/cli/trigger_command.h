// The command of `watch --on-trigger`: one at a time, for a limited time, and never the end of the watch.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "app/analysis/watch.h"
#include "app/cli/process.h"

namespace shardscope::cli {

class TriggerCommand {
 public:
  using Clock = std::chrono::steady_clock;
  /// A command that takes longer is ended: it would hold up all later ones.
  static constexpr std::chrono::seconds kLimit{60};
  /// From SIGTERM to SIGKILL.
  static constexpr std::chrono::seconds kGrace{3};
  /// Takes a problem as a line of text.
  using Report = std::function<void(const std::string& problem)>;

  TriggerCommand(std::string command, std::string endpoint, Report report, Clock::duration limit = kLimit);
  /// While a command runs the newest trigger of each kind is queued.
  void add(const analysis::Trigger& trigger);
  /// Ends a command that has taken too long, reports how one has ended, and starts the next one if none is
  /// running. Call often; it never waits and never throws.
  void next();
  [[nodiscard]] bool busy() const noexcept { return child_.has_value() || !waiting_.empty(); }

 private:
  void start(const analysis::Trigger& trigger);
  void look_at_child();
  /// Once per kind of trigger, until a command of that kind has succeeded.
  void failed(analysis::TriggerKind kind, const std::string& how);

  std::string command_, endpoint_;
  Report report_;
  Clock::duration limit_;
  std::map<analysis::TriggerKind, analysis::Trigger> waiting_;
  std::optional<Process> child_;
  analysis::TriggerKind kind_{};  ///< of the child
  Clock::time_point began_, terminated_;
  enum class Ending : std::uint8_t { by_itself, terminated, killed } ending_ = Ending::by_itself;
  std::set<analysis::TriggerKind> reported_;
};

}  // namespace shardscope::cli
