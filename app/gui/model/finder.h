// What is searched for and found: the state that the panels Find and Statistics, the keys of next and
// previous hit and the marks in the timeline share.
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
  // What the panels set.
  std::string words;
  FindScope scope = FindScope::run;
  TimeRange range;  ///< what was shown when that was chosen: going to a hit does not change what is found
  SpanFilter filter;
  GroupBy by = GroupBy::name;
  HistogramScale scale = HistogramScale::automatic;
  HitOrder order = HitOrder::begin;
  bool descending = false;

  // What came of it.
  SpanSearch search;
  SpanStatistics statistics;
  HitRows rows;
  HitMarks marks;
  std::optional<HitPlace> at;  ///< the hit that was gone to last
  std::uint64_t version = 0;   ///< grows when anything found does
  /// Searches begun, and statistics begun: indexes into what an older one held are of nothing any more.
  std::uint64_t searches = 0, countings = 0;
  bool again = true;  ///< the search begins anew: at first, and where the same is asked for once more

  /// A panel shows it, in the frame that is drawn and in the next: it is kept up and its hits are marked.
  bool wanted = false, wanted_next = false;
  bool focus = false;  ///< the field takes the keyboard

  /// Once a frame: searches for what is wanted, for about `time`. True while there is more to do.
  bool advance(const AppState& app, std::chrono::nanoseconds time);
  /// Another run: nothing is searched, found or filtered.
  void forget();
  /// Exactly the spans of this name, all of them.
  void find_name(const std::string& name);
  /// "of the first 2 000 000 spans found" where there are more than are kept; else empty.
  [[nodiscard]] std::string coverage() const;
  /// Whether the hits are to be marked: something was typed or filtered.
  [[nodiscard]] bool marked() const noexcept { return wanted && (!words.empty() || !filter.empty()); }
};

/// "name", "rank 2", "1.2 ms to 1.4 ms" of each part of the filter that is set, with what takes it away.
struct FilterPart {
  std::string text;
  SpanFilter without;
};
[[nodiscard]] std::vector<FilterPart> filter_parts(const AppState& app);

/// Shows a hit and selects it: its rank's lanes open, the range moves, and zooms where the hit could not be
/// seen.
void go_to_hit(AppState& app, const HitPlace& hit);
/// The hit after or before the last one that was gone to; without one, from "now". False where there is none.
bool go_to_next_hit(AppState& app, Toward toward);
/// Puts what is selected into the search: its name, its rank, its step. False when nothing of it has one.
bool find_selection(AppState& app);

/// The hits' rows as a table. The names of a run that the words find (find_names.h) stand before them.
[[nodiscard]] Table hit_table(const AppState& app, const std::vector<HitRef>& rows);

}  // namespace shardscope::gui
