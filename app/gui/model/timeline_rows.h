// Rows of the timeline: rank and stream of each, its height, and hit testing.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/gui/model/lane_crops.h"
#include "app/gui/model/rank_groups.h"
#include "app/gui/model/view_options.h"
#include "app/store/store.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

inline constexpr float kLaneHeight = 18;
inline constexpr float kRankHeaderHeight = 22;
inline constexpr float kHeatHeight = 4;  ///< of a rank with hidden lanes, where ranks are many
inline constexpr float kHeatGap = 1;
inline constexpr float kBandHeight = 10;    ///< status band of a parameter on one rank
inline constexpr float kLowBandHeight = 4;  ///< the same with many ranks
inline constexpr float kLaneGap = 2;
inline constexpr float kRankGap = 8;
/// Maximum number of rows of the compute lane, and of other lanes: deeper spans of a program are not drawn.
inline constexpr std::uint8_t kComputeDepths = 32, kLaneDepths = 32;

enum class RowKind : std::uint8_t {
  node,     ///< header of a group of ranks, such as a host; shows their mean when closed
  rank,     ///< header of a rank; shows the rank's overview when collapsed
  host,     ///< steps, micro-steps, pauses: depth `depth` of the host lane
  compute,  ///< depth `depth` of the compute lane
  gather,
  reduce,
  waits,  ///< waits of the compute lane, on a row of their own so that they are visible
  copy,
  nvme,
  worker,   ///< the CPU optimizer of offloaded states
  gpu,      ///< a GPU stream, the host's waits for it, or a lane named by the run: `gpu_lane`
  counter,  ///< a curve over time, of a rank or (without a rank) of all: `counter` or `sampled`
  param,    ///< header of a followed parameter: `param`
  status,   ///< the parameter's status on a rank over time
};

/// Curves of the timeline. Those before the loss exist per rank, the others for all ranks together.
enum class RowCounter : std::uint8_t {
  live_elements,
  memory,
  in_flight,
  outside,  ///< device memory outside of the runtime
  loss,
  step_time,
  throughput,
  gradient_norm,
  learning_rate,
  loss_scale,
};
inline constexpr int kRowCounters = 10;
[[nodiscard]] const char* word(RowCounter counter) noexcept;
[[nodiscard]] constexpr bool of_all_ranks(RowCounter counter) noexcept { return counter >= RowCounter::loss; }

struct TimelineRow {
  RowKind kind = RowKind::rank;
  std::uint32_t rank = 0;
  std::uint8_t depth = 0;
  float y = 0, height = kLaneHeight;   ///< from the top of all rows
  bool expanded = false;               ///< rank and node rows
  bool heat = false;                   ///< rank rows: too low for text
  bool numbered = false;               ///< heat rows: this and the rows below have room for its number
  ev::StreamId gpu_lane{};             ///< gpu rows
  RowCounter counter{};                ///< counter rows
  std::string sampled{};               ///< counter rows: a sampled counter's name; empty: `counter`
  std::uint32_t param = ev::kNoId;     ///< param and status rows
  std::string given_name{};            ///< lane name given by the run, or host of a node; empty: none
  std::vector<std::uint32_t> ranks{};  ///< node rows: its ranks, from top to bottom
  std::uint32_t left_out = 0;  ///< rank rows: number of its lane rows that are hidden for lack of room
  std::uint8_t cropped = 0;    ///< first row of a lane: number of deeper levels hidden by the user
  /// The lane of the row; counter, param and status rows return a lane without a rank.
  [[nodiscard]] store::LaneId lane() const noexcept;
  [[nodiscard]] bool is_lane() const noexcept { return kind < RowKind::counter && kind != RowKind::node; }
  /// "compute" on the first row of a lane, empty on the deeper ones.
  [[nodiscard]] const char* label() const noexcept;
};

/// `own`: the user's order (own_order.h), within the groups.
enum class RankOrder : std::uint8_t { number, computation, exposed, own };
/// Height of ranks with hidden lanes: `automatic` is low where most ranks would otherwise be out of
/// view.
enum class RankHeight : std::uint8_t { automatic, full, heat };

/// What the user has chosen to see of any run: kept for the next one, and saved between sessions.
struct RowChoices {
  RankOrder order = RankOrder::number;
  RankHeight rank_height = RankHeight::automatic;
  std::string grouping = kByNode;  ///< a RankGrouping's name; empty: none
  std::set<RowCounter> counters;   ///< the curves shown
  std::set<std::string> sampled;   ///< the sampled counters shown (analysis/counters.h), by name
  friend bool operator==(const RowChoices&, const RowChoices&) = default;
};
/// Serialization for the settings file; ignores unknown and invalid lines. An own order is that of one run:
/// it is not among them.
[[nodiscard]] std::vector<std::string> lines_of(const RowChoices& choices);
void take_line(RowChoices& choices, std::string_view line);

struct TimelineOptions : RowChoices {
  ViewOptions view;   ///< hidden classes and lane height: saved in the settings
  bool heat = false;  ///< the effective `rank_height`: resolve_height()
  LaneCrops crops;
  std::vector<std::uint32_t> own_order;          ///< kept while another order is shown; empty: none
  std::vector<RankGroup> groups;                 ///< in the effective order: arrange_ranks(); empty: by host
  std::string filter;                            ///< as text: rank_filter.h
  bool focus_filter = false;                     ///< move the keyboard focus to the filter
  std::optional<std::set<std::uint32_t>> shown;  ///< the ranks that pass `filter`; nullopt: all
  std::set<std::string> closed_nodes;            ///< titles of closed groups
  std::set<std::uint32_t> expanded;              ///< ranks with visible lanes
  std::uint8_t compute_depths = kComputeDepths;  ///< reduced where ranks would be out of view
  std::uint8_t lane_depths = kLaneDepths;
  std::vector<std::uint32_t> params;  ///< the followed parameters, in the order chosen
  bool automatic = true;              ///< ranks expand automatically until the user expands or collapses one
};

/// Adds the parameter's status on every rank to the timeline, or removes it.
void follow_param(TimelineOptions& options, std::uint32_t param);
void unfollow_param(TimelineOptions& options, std::uint32_t param);
[[nodiscard]] bool follows(const TimelineOptions& options, std::uint32_t param);
/// Shows or hides a curve.
void toggle(TimelineOptions& options, RowCounter counter);
void toggle_sampled(TimelineOptions& options, const std::string& name);

struct TimelineRows {
  std::vector<TimelineRow> rows;
  float height = 0;
  /// The row at `y`; null in a gap or below the last row.
  [[nodiscard]] const TimelineRow* at(float y) const noexcept;
  /// Rows that overlap [top, bottom): the first, and one past the last.
  [[nodiscard]] std::pair<std::size_t, std::size_t> between(float top, float bottom) const noexcept;
};

/// Sets TimelineOptions::heat for a view of this height.
void resolve_height(const store::Store& store, TimelineOptions& options, float height);

/// Expands the first rank, then further ones in order while all rows fit into `height`. Collapses none. If
/// the first does not fit, its deepest lane rows are omitted: enough to see every rank, or, where that is
/// impossible, its own lanes.
void expand_while_room(const store::Store& store, TimelineOptions& options, float height);

[[nodiscard]] TimelineRows layout_rows(const store::Store& store, const TimelineOptions& options);
/// All ranks in the groups and order of the rows; a single group without a title if they are not
/// grouped.
[[nodiscard]] std::vector<RankGroup> all_groups(const store::Store& store, const TimelineOptions& options);
/// all_groups() reduced to the ranks that pass the filter.
[[nodiscard]] std::vector<RankGroup> shown_groups(const store::Store& store, const TimelineOptions& options);

/// The span closest to `at_ns` within `slack_ns`; nullopt without one.
[[nodiscard]] std::optional<store::Span> span_at(const store::Store& store, store::LaneId lane,
                                                 std::uint8_t depth, std::int64_t at_ns,
                                                 std::int64_t slack_ns);

}  // namespace shardscope::gui
