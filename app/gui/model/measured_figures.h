// What a rank did in a range that was measured: computation, communication that no computation hides, waits.
// Steps that lie within the range are taken from the analysis; of those that it cuts the spans are read, once
// for each, so that dragging an end costs little.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "app/analysis/rank_activity.h"
#include "app/gui/model/analyst.h"
#include "app/gui/model/time_axis.h"

namespace shardscope::gui {

struct AppState;

struct RangeFigures {
  std::uint32_t rank = 0;
  analysis::TimePartition time;  ///< metrics.md 2.2, summed
  std::int64_t waits_ns = 0;     ///< of computation, for fetches, reductions, updates and data
  bool about = false;            ///< the waits are read from levels of detail
  std::int64_t left_out_ns = 0;  ///< of steps with too many spans to read in a frame, or not read yet
};

/// "rank 0: compute 120 us, exposed 31 us, waits 20 us"; says where a part is left out.
[[nodiscard]] std::string text_of(const RangeFigures& figures);

/// The rank of the selection, else the lowest.
[[nodiscard]] std::optional<std::uint32_t> rank_of_figures(const AppState& app);

class MeasuredFigures {
 public:
  /// Spans of a step on one rank that are read at most.
  static constexpr std::uint64_t kMostSpans = 20'000;
  /// Reads at most one step that was not read before: then left_out_ns is not 0 and the next call goes on.
  [[nodiscard]] std::optional<RangeFigures> of(const AppState& app, const TimeRange& range);
  /// The last call left out something that the next one reads.
  [[nodiscard]] bool goes_on() const noexcept { return goes_on_; }

 private:
  struct Read {
    std::uint32_t rank = 0;
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint64_t revision = 0;
    analysis::RankActivity activity;
  };
  /// Null: there are too many spans, or another step was read already.
  const analysis::RankActivity* activity(const AppState& app, std::uint32_t rank, std::int64_t begin_ns,
                                         std::int64_t end_ns);
  /// What the figures are of.
  struct Made {
    TimeRange range;
    std::uint32_t rank = 0;
    std::uint64_t revision = 0;
    std::shared_ptr<const Analysis> analysis;
    friend bool operator==(const Made&, const Made&) = default;
  };
  std::list<Read> read_;  ///< the newest first
  bool may_read_ = true, goes_on_ = false;
  std::optional<Made> made_;
  RangeFigures figures_;
};

}  // namespace shardscope::gui
