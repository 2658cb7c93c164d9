// Figures of a rank in the measured range: computation, exposed communication, waits. Steps inside the range
// are taken from the analysis; for steps that it cuts the spans are read once each, so that dragging an end
// stays cheap.
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
  std::int64_t waits_ns = 0;     ///< computation waiting for fetches, reductions, updates and data
  bool about = false;            ///< the waits are estimated from levels of detail
  std::int64_t left_out_ns = 0;  ///< time in steps with too many spans to read in a frame, or not read yet
};

/// "rank 0: compute 120 us, exposed 31 us, waits 20 us"; names the time left out.
[[nodiscard]] std::string text_of(const RangeFigures& figures);

/// The rank of the selection, or else the lowest.
[[nodiscard]] std::optional<std::uint32_t> rank_of_figures(const AppState& app);

class MeasuredFigures {
 public:
  /// Upper bound on the spans of a step and rank that are read.
  static constexpr std::uint64_t kMostSpans = 20'000;
  /// Reads at most one new step per call: left_out_ns is then not 0 and the next call continues.
  [[nodiscard]] std::optional<RangeFigures> of(const AppState& app, const TimeRange& range);
  /// The last call left out steps that the next one reads.
  [[nodiscard]] bool incomplete() const noexcept { return incomplete_; }

 private:
  struct Read {
    std::uint32_t rank = 0;
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint64_t revision = 0;
    analysis::RankActivity activity;
  };
  /// Null: too many spans, or this call has already read another step.
  const analysis::RankActivity* activity(const AppState& app, std::uint32_t rank, std::int64_t begin_ns,
                                         std::int64_t end_ns);
  /// Key of figures_.
  struct Made {
    TimeRange range;
    std::uint32_t rank = 0;
    std::uint64_t revision = 0;
    std::shared_ptr<const Analysis> analysis;
    friend bool operator==(const Made&, const Made&) = default;
  };
  std::list<Read> read_;  ///< most recently used first
  bool may_read_ = true, incomplete_ = false;
  std::optional<Made> made_;
  RangeFigures figures_;
};

}  // namespace shardscope::gui
