// The rows of the timeline: which rank and stream each is, how high, and what lies under the pointer.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/gui/model/rank_groups.h"
#include "app/gui/model/view_options.h"
#include "app/store/store.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

inline constexpr float kLaneHeight = 18;
inline constexpr float kRankHeaderHeight = 22;
inline constexpr float kHeatHeight = 4;  ///< of a rank whose lanes are hidden, where there are very many
inline constexpr float kHeatGap = 1;
inline constexpr float kBandHeight = 10;    ///< of a parameter's statuses on one rank
inline constexpr float kLowBandHeight = 4;  ///< where ranks are many
inline constexpr float kLaneGap = 2;
inline constexpr float kRankGap = 8;
inline constexpr std::uint8_t kComputeDepths = 10;  ///< rows of the compute lane at most
inline constexpr std::uint8_t kLaneDepths = 2;      ///< of the others

enum class RowKind : std::uint8_t {
  node,     ///< header of the ranks of one host; when closed it carries their mean
  rank,     ///< header of a rank; when collapsed it carries the rank's overview
  host,     ///< steps, micro-steps, pauses: depth `depth` of the host lane
  compute,  ///< depth `depth` of the compute lane
  gather,
  reduce,
  waits,  ///< waits of the compute lane, pulled out so that they are seen
  copy,
  nvme,
  worker,   ///< the CPU optimizer of offloaded states
  gpu,      ///< one of the GPU's streams, the host's waits for it, or a lane that the run names: `gpu_lane`
  counter,  ///< a curve over time, of a rank or (without one) of all: `counter`
  param,    ///< header of a parameter that is followed: `param`
  status,   ///< where that parameter was on a rank over time
};

/// Curves that can be switched on. The first three are of each rank, the others of all ranks together.
enum class RowCounter : std::uint8_t { live_elements, memory, in_flight, loss, step_time };
inline constexpr int kRowCounters = 5;
[[nodiscard]] const char* word(RowCounter counter) noexcept;
[[nodiscard]] constexpr bool of_all_ranks(RowCounter counter) noexcept { return counter >= RowCounter::loss; }

struct TimelineRow {
  RowKind kind = RowKind::rank;
  std::uint32_t rank = 0;
  std::uint8_t depth = 0;
  float y = 0, height = kLaneHeight;   ///< from the top of all rows
  bool expanded = false;               ///< rank and node rows
  bool heat = false;                   ///< rank rows: too low for words
  bool numbered = false;               ///< heat rows: with those below it there is room for its number
  ev::StreamId gpu_lane{};             ///< gpu rows
  RowCounter counter{};                ///< counter rows
  std::uint32_t param = ev::kNoId;     ///< param and status rows
  std::string given_name{};            ///< that the run gave the lane, a node's host; empty: none
  std::vector<std::uint32_t> ranks{};  ///< node rows: its ranks, from top to bottom
  std::uint32_t left_out = 0;          ///< rank rows: rows of its lanes that are not shown
  /// Of a row that is no lane's, a lane of no rank.
  [[nodiscard]] store::LaneId lane() const noexcept;
  [[nodiscard]] bool is_lane() const noexcept { return kind < RowKind::counter && kind != RowKind::node; }
  /// "compute" on the first row of a lane, empty on the deeper ones.
  [[nodiscard]] const char* label() const noexcept;
};

/// `own`: as the user put them (own_order.h), within the groups that they stand in.
enum class RankOrder : std::uint8_t { number, computation, exposed, own };
/// How high a rank is whose lanes are hidden: `automatic` is low where otherwise most ranks would be out of
/// view.
enum class RankHeight : std::uint8_t { automatic, full, heat };

struct TimelineOptions {
  RankOrder order = RankOrder::number;
  RankHeight rank_height = RankHeight::automatic;
  ViewOptions view;                      ///< what is hidden, and the height of a lane: kept in the settings
  bool heat = false;                     ///< what `rank_height` comes to: resolve_height()
  std::string grouping = kByNode;        ///< a RankGrouping's name; empty: none
  std::vector<std::uint32_t> own_order;  ///< kept while another order is shown; empty: none was made
  bool own_ungrouped = false;            ///< the own order is in no groups: it began as one by a figure
  std::vector<RankGroup> groups;         ///< what that comes to: arrange_ranks(); empty: by host
  std::string filter;                    ///< as text: rank_filter.h
  bool focus_filter = false;             ///< the field of the filter wants the keyboard
  std::optional<std::set<std::uint32_t>> shown;  ///< what `filter` comes to; nothing: every rank
  std::set<std::string> closed_nodes;            ///< groups, by title, whose ranks are hidden
  std::set<std::uint32_t> expanded;              ///< ranks whose lanes are shown
  std::uint8_t compute_depths = kComputeDepths;  ///< fewer where ranks would be out of view
  std::uint8_t lane_depths = kLaneDepths;
  std::vector<std::uint32_t> ranks;   ///< from top to bottom; empty: all in order of their numbers
  std::set<RowCounter> counters;      ///< that are shown
  std::vector<std::uint32_t> params;  ///< parameters that are followed, in order of choosing
  bool automatic = true;              ///< ranks open while there is room, until the user opens or closes one
};

/// Shows the statuses of a parameter on every rank, or no longer.
void follow_param(TimelineOptions& options, std::uint32_t param);
void unfollow_param(TimelineOptions& options, std::uint32_t param);
[[nodiscard]] bool follows(const TimelineOptions& options, std::uint32_t param);
/// Shows a curve, or no longer.
void toggle(TimelineOptions& options, RowCounter counter);

struct TimelineRows {
  std::vector<TimelineRow> rows;
  float height = 0;
  /// The row at `y`, or null in a gap or below.
  [[nodiscard]] const TimelineRow* at(float y) const noexcept;
  /// Rows that meet [top, bottom): first and one past the last.
  [[nodiscard]] std::pair<std::size_t, std::size_t> between(float top, float bottom) const noexcept;
};

/// Whether ranks are drawn as heat rows, in a room so high.
void resolve_height(const store::Store& store, TimelineOptions& options, float height);

/// Expands the first rank, and further ones in order while all rows fit into `height`. Closes none. Where not
/// even the first fits, it has fewer rows of its lanes, the deepest are left out: as many as it takes to see
/// every rank, or, where that cannot be, its own lanes.
void expand_while_room(const store::Store& store, TimelineOptions& options, float height);

[[nodiscard]] TimelineRows layout_rows(const store::Store& store, const TimelineOptions& options);
/// All ranks in the groups and the order that the rows have; one group without a title where they stand in
/// none.
[[nodiscard]] std::vector<RankGroup> all_groups(const store::Store& store, const TimelineOptions& options);
/// Of these what the filter leaves.
[[nodiscard]] std::vector<RankGroup> shown_groups(const store::Store& store, const TimelineOptions& options);

/// The span at `at_ns` within `slack_ns`, the closest to it; nothing when none is that close.
[[nodiscard]] std::optional<store::Span> span_at(const store::Store& store, store::LaneId lane,
                                                 std::uint8_t depth, std::int64_t at_ns,
                                                 std::int64_t slack_ns);

}  // namespace shardscope::gui
