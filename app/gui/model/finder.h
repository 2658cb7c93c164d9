// State of the span search, shared by the panels Find and Statistics, the keys for the next and previous hit
// and the marks in the timeline.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/find_spans.h"
#include "app/gui/model/hit_marks.h"
#include "app/gui/model/hit_rows.h"
#include "app/gui/model/span_statistics.h"
#include "app/gui/model/time_axis.h"

namespace shardscope::gui {

struct AppState;

enum class FindScope : std::uint8_t { run, shown, measured };

struct Finder {
  // Set by the panels.
  std::string words;
  FindScope scope = FindScope::run;
  TimeRange range;  ///< visible when the scope was chosen: moving to a hit does not change the results
  SpanFilter filter;
  GroupBy by = GroupBy::name;
  HistogramScale scale = HistogramScale::automatic;
  HitOrder order = HitOrder::begin;
  bool descending = false;

  // Results.
  SpanSearch search;
  SpanStatistics statistics;
  HitRows rows;
  HitMarks marks;
  std::optional<HitPlace> at;  ///< the hit visited last
  std::uint64_t version = 0;   ///< incremented when the results change
  /// Number of searches and of statistics started; a change invalidates indexes into the previous results.
  std::uint64_t searches = 0, countings = 0;
  /// Collectives are found by what they move too. False for what is outside of the index of a long run.
  bool by_contents = true;
  bool again = true;  ///< restart the search: initially, and when the same search is requested again

  /// Set by a panel that shows the results: the search is continued and hits are marked, this frame and next.
  bool wanted = false, wanted_next = false;
  bool focus = false;  ///< move the keyboard focus to the search field

  /// Call once per frame: searches for about `time`. True while there is more to do.
  bool advance(const AppState& app, std::chrono::nanoseconds time);
  /// Clears search, results and filter; call when another run is opened.
  void forget();
  /// Searches for all spans with exactly this name.
  void find_name(const std::string& name);
  /// "of the first 2 000 000 spans found" if the hits were limited; else empty.
  [[nodiscard]] std::string coverage() const;
  /// Whether to mark hits: there are words or a filter.
  [[nodiscard]] bool marked() const noexcept { return wanted && (!words.empty() || !filter.empty()); }
};

/// "name", "rank 2", "1.2 ms to 1.4 ms": each active part of the filter and an action that removes it.
struct FilterPart {
  std::string text;
  SpanFilter without;
};
[[nodiscard]] std::vector<FilterPart> filter_parts(const AppState& app);

/// Selects a span and makes it visible in the Timeline: expands its rank's lanes, moves the range and zooms
/// in where the span would be too narrow.
void go_to_span(AppState& app, store::LaneId lane, const store::Span& span);
/// The same for a hit.
void go_to_hit(AppState& app, const HitPlace& hit);
/// Moves to the hit after or before the last visited one (initially: the current time). False without one.
bool go_to_next_hit(AppState& app, Toward toward);
/// Searches for the selection: its name, rank or step. False when it has none of these.
bool find_selection(AppState& app);

/// Table of the hits' rows. Name hits (find_names.h) are listed before them.
[[nodiscard]] Table hit_table(const AppState& app, const std::vector<HitRef>& rows);

}  // namespace shardscope::gui
