// Problems of a collector: counted in its status, and reported as messages of the run.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "app/collector/access_guard.h"
#include "app/collector/now.h"
#include "app/collector/problem_reports.h"
#include "app/collector/status_board.h"

namespace shardscope::collector {

class Problems {
 public:
  /// `warn`: records a warning of the run.
  Problems(StatusBoard& board, std::function<void(const std::string& text)> warn)
      : board_(board), warn_(std::move(warn)) {}

  /// Publishes a message, at most once per kind and interval (ProblemReports).
  void report(const std::string& kind, const std::string& text) {
    if (const auto report = reports_.add(kind, text, now_s())) warn_(*report);
  }
  /// Counts and reports that a message of `who` is ignored.
  void reject(const std::string& kind, const std::string& who, const std::string& why) {
    board_.rejected(kind);
    report(kind, "ignored a message from " + who + ": " + why);
  }
  void refused(const std::vector<AccessGuard::Refusal>& refusals) {
    for (const AccessGuard::Refusal& refusal : refusals) {
      board_.refused();
      report("refused", "refused a connection (" + refusal.peer + "): " + refusal.why);
    }
  }
  /// Reports the problems that were only counted.
  void publish(double now_s, ProblemReports::Take take) {
    for (const std::string& text : reports_.take(now_s, take)) warn_(text);
  }

 private:
  StatusBoard& board_;
  std::function<void(const std::string&)> warn_;
  ProblemReports reports_;
};

}  // namespace shardscope::collector
