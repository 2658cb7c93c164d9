// What is known of the run that is shown and of its recording: the program, hosts, times, counts of events,
// what was lost, memory and file, as a table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "app/gui/model/table.h"

namespace shardscope::gui {

struct Analysis;
struct AppState;
class Session;

/// Rows: what, value, and of figures how they are meant. `app`: for the clock's error in the range shown.
[[nodiscard]] Table trace_table(const AppState& app);

/// Which moment of the store (moments()) a row of trace_table() is about; nothing: none.
[[nodiscard]] std::optional<std::size_t> moment_of(const Table& facts, std::size_t row);

/// Why there is no time of an analysis: it is not whole yet, or it has failed. Empty: there is one.
[[nodiscard]] std::string no_analysis(const Analysis& analysis);

/// "loaded in 0.24 s" and how much that was, of a recording that is wholly analysed; else nothing.
struct LoadText {
  std::string brief, whole;
};
[[nodiscard]] std::optional<LoadText> load_text(const Session& run);

/// How many events of each kind: spans by their begin, instants by kind and code. Those of a rank, or of all.
/// Columns: kind, count, share.
[[nodiscard]] Table event_counts(const Session& run);

/// Both, made when the run has changed, and of a live one at most once in a while.
class TraceInfo {
 public:
  static constexpr double kEvery = 1;  ///< seconds
  struct Tables {
    Table facts, events;
  };
  [[nodiscard]] const Tables& of(const AppState& app, double seconds);

 private:
  Tables made_;
  std::optional<std::array<std::uint64_t, 3>> of_;  ///< the run, what is known of it, its notes
  std::shared_ptr<const Analysis> of_analysis_;
  double made_at_ = 0;
};

}  // namespace shardscope::gui
