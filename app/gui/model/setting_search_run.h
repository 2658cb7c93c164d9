// `shardscope what-if --search` from the window: its command line and results.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/summary.h"
#include "app/gui/model/command_run.h"
#include "app/gui/model/table.h"

namespace shardscope::gui {

struct FoundSettings {
  std::vector<analysis::Change> changes;  ///< empty: as recorded
  double step_ms = 0, change_pct = 0;     ///< predicted
  std::int64_t peak_bytes = 0;
  bool beyond_error = false;  ///< greater than the model's error
};
struct SearchOutcome {
  double recorded_ms = 0, error_pct = 0;
  std::int64_t recorded_peak_bytes = 0;
  std::uint64_t played = 0, combinations = 0;
  std::string verdict;
  std::string error_on,
      not_measured;  ///< what `error_pct` was measured on, and for what it was not; may be empty
  std::vector<FoundSettings> best;  ///< fastest first
};
/// `memory_gib`: limit per device; 0: none.
[[nodiscard]] std::vector<std::string> search_arguments(const std::string& program,
                                                        const std::string& recording, double memory_gib);
/// Parses the command's JSON; on failure the second member is the reason.
[[nodiscard]] std::pair<std::optional<SearchOutcome>, std::string> read_search(const std::string& json);
/// A sentence: how far predictions are off, and where that was measured.
[[nodiscard]] std::string error_text(const SearchOutcome& outcome);
[[nodiscard]] Table search_table(const SearchOutcome& outcome);

/// Runs one search at a time, in a child process.
class SettingSearchRun {
 public:
  SettingSearchRun() = default;
  ~SettingSearchRun() { command_.reset(); }  ///< cancels the search
  SettingSearchRun(const SettingSearchRun&) = delete;
  SettingSearchRun& operator=(const SettingSearchRun&) = delete;

  void start(std::vector<std::string> argv);
  void cancel() { command_->cancel(); }
  /// Cancels the search and drops its outcome.
  void forget();
  [[nodiscard]] bool running() const noexcept { return command_->running(); }
  struct Ended {
    std::optional<SearchOutcome> outcome;
    std::string problem;
  };
  /// Outcome of the last search; null before it has ended.
  [[nodiscard]] std::shared_ptr<const Ended> ended() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Ended> ended_;
  std::unique_ptr<CommandRun> command_ = std::make_unique<CommandRun>();
};

}  // namespace shardscope::gui
