// Facts about the current run and its recording as a table: program, hosts, times, event counts, lost events,
// memory, file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "app/gui/model/table.h"
#include "app/store/store.h"

namespace shardscope::gui {

struct Analysis;
struct AppState;
class Session;

/// Rows: fact, value, and how figures are defined. `app`: for the clock error in the visible range.
[[nodiscard]] Table trace_table(const AppState& app);

/// Index into the store's moments() of the moment in a row of trace_table(); nullopt for other rows.
[[nodiscard]] std::optional<std::size_t> moment_of(const Table& facts, std::size_t row);

/// Why the time of an analysis is unknown: incomplete or failed. Empty: it is known.
[[nodiscard]] std::string no_analysis(const Analysis& analysis);

/// "loaded in 0.24 s" and the amount loaded, for a completely analysed recording; else nullopt.
struct LoadText {
  std::string brief, whole;
};
[[nodiscard]] std::optional<LoadText> load_text(const Session& run);

/// Number of completed spans and of instants of each kind, summed over all ranks. Columns: kind, count,
/// share.
[[nodiscard]] Table event_counts(const Session& run);

/// One row per host, by name: its ranks, how many, device, hardware and versions as its ranks have sent them.
/// Ranks of one host that differ have a row for each. A host or machine that was not recorded has no name.
[[nodiscard]] Table machine_table(const store::Store& store);

/// The tables, cached; recomputed when the run, its analysis or its notes change, at most every kEvery.
class TraceInfo {
 public:
  static constexpr double kEvery = 1;  ///< seconds
  struct Tables {
    Table facts, events, machines;
  };
  [[nodiscard]] const Tables& of(const AppState& app, double seconds);

 private:
  Tables made_;
  std::optional<std::array<std::uint64_t, 3>> of_;  ///< run, store revision, notes version
  std::shared_ptr<const Analysis> of_analysis_;
  double made_at_ = 0;
};

}  // namespace shardscope::gui
