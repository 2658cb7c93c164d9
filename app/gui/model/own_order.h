// The user's own order of the timeline's ranks: dragged or moved by keys, and kept from window to window.
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

/// All ranks of the run in the user's order; those that came later stand last, by number.
[[nodiscard]] std::vector<std::uint32_t> own_order_of(const AppState& app);
/// For arrange_ranks(): orders the ranks of each group by TimelineOptions::ranks, which it empties. Where
/// TimelineOptions::groups is empty, in the groups that the ranks have by number.
void order_within_groups(const store::Store& store, TimelineOptions& options);

/// Puts a rank into a gap among the ranks of its group that are shown: 0 is above the first. What was sorted
/// becomes the user's order. A rank stays in its group: its node is a fact. False: it is there already.
bool place_rank(AppState& app, std::uint32_t rank, std::size_t gap);
/// By this many places down, or up where it is less than 0; to the first or last where there are fewer.
bool shift_rank(AppState& app, std::uint32_t rank, int places);
/// The same on the user's behalf: its group is opened and the timeline scrolls to it. Returns why it stays
/// where it is; empty: it has moved.
[[nodiscard]] std::string move_rank(AppState& app, std::uint32_t rank, int places);

/// How many px the rows scroll in `seconds` while a rank is dragged at `y`, above or below the room from
/// `top` to `bottom`: less than 0 is up, and the further out the faster.
[[nodiscard]] float drag_scroll(float y, float top, float bottom, double seconds);
/// Where a rank that is dragged to `y` of the rows would be dropped; nothing where it is not shown.
struct RankDrop {
  std::size_t gap = 0;
  float y = 0;  ///< of the gap, from the top of all rows
};
[[nodiscard]] std::optional<RankDrop> drop_at(const store::Store& store, const TimelineOptions& options,
                                              const TimelineRows& rows, std::uint32_t rank, float y);

/// Orders that were made, by the run's file or endpoint, newest first: lines of the settings file.
class KeptOrders {
 public:
  static constexpr std::size_t kMost = 12;
  /// Null: none was made of it.
  [[nodiscard]] const RankArrangement* of(const std::string& source) const;
  /// One without an order of the user's own is not kept.
  void put(const std::string& source, const RankArrangement& ranks);
  [[nodiscard]] std::vector<std::string> lines() const;
  /// A line that is none of these is passed over.
  void take_line(std::string_view line);

  /// At a frame's begin: another run is shown with the order that was made of it, and a new order is kept.
  /// True: lines() have changed.
  bool follow(AppState& app);
  /// At its end: takes what is looked at into AppState::history. Not in a frame that changed the run: the new
  /// one has neither its order nor its range of time yet, so that this is no place of the user's.
  void note_place(AppState& app, double seconds) const;

 private:
  std::vector<std::pair<std::string, RankArrangement>> orders_;
  std::uint64_t run_ = 0;   ///< Session::number() that the two below are of
  bool had_order_ = false;  ///< it was shown with an order that was kept before
  RankArrangement last_;
};
/// What an order is kept under: the recording's path from the root, or the endpoint.
[[nodiscard]] std::string kept_as(const Session& run);

}  // namespace shardscope::gui
