// The rows of the timeline: which rank and stream each is, how high, and what lies under the pointer.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/gui/model/view_options.h"
#include "app/store/store.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

inline constexpr float kLaneHeight = 18;
inline constexpr float kRankHeaderHeight = 22;
inline constexpr float kHeatHeight = 4;  ///< of a rank whose lanes are hidden, where there are very many
inline constexpr float kHeatGap = 1;
inline constexpr float kLaneGap = 2;
inline constexpr float kRankGap = 8;

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
  worker,  ///< the CPU optimizer of offloaded states
  gpu,     ///< one of the GPU's streams, the host's waits for it, or a lane that the run names: `gpu_lane`
};

struct TimelineRow {
  RowKind kind = RowKind::rank;
  std::uint32_t rank = 0;
  std::uint8_t depth = 0;
  float y = 0, height = kLaneHeight;   ///< from the top of all rows
  bool expanded = false;               ///< rank and node rows
  bool heat = false;                   ///< rank rows: too low for words
  bool numbered = false;               ///< heat rows: with those below it there is room for its number
  ev::StreamId gpu_lane{};             ///< gpu rows
  std::string given_name{};            ///< that the run gave the lane, a node's host; empty: none
  std::vector<std::uint32_t> ranks{};  ///< node rows: its ranks, from top to bottom
  [[nodiscard]] store::LaneId lane() const noexcept;
  /// "compute" on the first row of a lane, empty on the deeper ones.
  [[nodiscard]] const char* label() const noexcept;
};

enum class RankOrder : std::uint8_t { number, computation, exposed };
/// How high a rank is whose lanes are hidden: `automatic` is low where otherwise most ranks would be out of
/// view.
enum class RankHeight : std::uint8_t { automatic, full, heat };

struct TimelineOptions {
  RankOrder order = RankOrder::number;
  RankHeight rank_height = RankHeight::automatic;
  ViewOptions view;                    ///< what is hidden, and the height of a lane
  bool heat = false;                   ///< what `rank_height` comes to: resolve_height()
  std::set<std::string> closed_nodes;  ///< hosts whose ranks are hidden
  std::set<std::uint32_t> expanded;    ///< ranks whose lanes are shown
  std::uint8_t compute_depths = 10;    ///< rows of the compute lane at most
  std::vector<std::uint32_t> ranks;    ///< from top to bottom; empty: all in order of their numbers
  bool automatic = true;               ///< ranks open while there is room, until the user opens or closes one
};

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

/// Expands the first rank, and further ones in order while all rows fit into `height`. Closes none.
void expand_while_room(const store::Store& store, TimelineOptions& options, float height);

[[nodiscard]] TimelineRows layout_rows(const store::Store& store, const TimelineOptions& options);

/// The span at `at_ns` within `slack_ns`, the closest to it; nothing when none is that close.
[[nodiscard]] std::optional<store::Span> span_at(const store::Store& store, store::LaneId lane,
                                                 std::uint8_t depth, std::int64_t at_ns,
                                                 std::int64_t slack_ns);

}  // namespace shardscope::gui
