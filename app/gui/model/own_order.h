// The user's own order of ranks in the timeline: made by dragging or keys, saved in the settings with the
// levels of lanes that are hidden.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/gui/model/places.h"
#include "app/gui/model/timeline_rows.h"

namespace shardscope::gui {

struct AppState;
class Session;

/// All ranks of the run in the user's order, then the ranks missing in it by number.
[[nodiscard]] std::vector<std::uint32_t> own_order_of(const AppState& app);
/// For arrange_ranks(): orders the ranks of each group as in `order` (of all ranks; empty: by number), and,
/// if that is by a figure, the groups by their first rank: the longest is at the top in any grouping. Empty
/// TimelineOptions::groups are first filled with the default groups.
void order_groups(const store::Store& store, TimelineOptions& options,
                  const std::vector<std::uint32_t>& order);

/// Moves a rank into a gap between the visible ranks of its group; gap 0 is above the first. Turns a sorted
/// order into the user's own. A rank cannot leave its group. False: the rank is already there.
bool place_rank(AppState& app, std::uint32_t rank, std::size_t gap);
/// Moves a rank by `places`, down if positive; stops at the first or last place of its group.
bool shift_rank(AppState& app, std::uint32_t rank, int places);
/// shift_rank() as a user command: also expands its group and scrolls to it. Returns why the rank did not
/// move; empty if it did.
[[nodiscard]] std::string move_rank(AppState& app, std::uint32_t rank, int places);

/// Pixels to scroll in `seconds` while a rank is dragged at `y` outside of [`top`, `bottom`]: negative is up,
/// and faster with the distance.
[[nodiscard]] float drag_scroll(float y, float top, float bottom, double seconds);
/// Where a rank dragged to `y` of the rows would be dropped; nullopt where the rank is not shown.
struct RankDrop {
  std::size_t gap = 0;
  float y = 0;  ///< of the gap, from the top of all rows
};
[[nodiscard]] std::optional<RankDrop> drop_at(const store::Store& store, const TimelineOptions& options,
                                              const TimelineRows& rows, std::uint32_t rank, float y);

/// Saved orders by the run's file or endpoint, newest first: lines of the settings file.
class KeptOrders {
 public:
  static constexpr std::size_t kMost = 12;
  /// Null if there is none.
  [[nodiscard]] const RankArrangement* of(const std::string& source) const;
  /// Without an own order or hidden levels the entry is removed.
  void put(const std::string& source, const RankArrangement& ranks);
  [[nodiscard]] std::vector<std::string> lines() const;
  /// Ignores lines of other kinds.
  void take_line(std::string_view line);

  /// Call at the begin of a frame: applies the saved order to a new run, and saves a changed order. True:
  /// lines() have changed.
  bool follow(AppState& app);
  /// Call at the end of a frame: adds the current place to AppState::history. Skipped in a frame that changed
  /// the run, which has neither its order nor its time range yet.
  void note_place(AppState& app, double seconds) const;

 private:
  std::vector<std::pair<std::string, RankArrangement>> orders_;
  std::uint64_t run_ = 0;   ///< Session::number() of the two members below
  bool had_order_ = false;  ///< the run was opened with a saved order
  RankArrangement last_;
};
/// Key of a saved order: the absolute path of the recording, or the endpoint.
[[nodiscard]] std::string kept_as(const Session& run);

}  // namespace shardscope::gui
