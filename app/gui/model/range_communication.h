// Communication of a range of time, with the figures that the summary has of the measured steps: operations,
// each rank's hidden and exposed part, waits, prefetches. Collectives and waits belong to the range in which
// they begin; times are cut at its ends. Read step by step between frames.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "app/analysis/communication.h"
#include "app/gui/model/time_axis.h"

namespace shardscope::gui {

struct AppState;

class RangeCommunication {
 public:
  struct Figures {
    TimeRange range;
    /// `ops`, `ranks` (`time`, `fetch_wait_ns`) and `prefetch`; the rest is empty.
    analysis::Summary summary;
    std::vector<analysis::Wait> longest_waits;
  };
  /// Call once per frame: reads for about `time`. True while there is more to do.
  bool advance(const AppState& app, const TimeRange& range, std::chrono::nanoseconds time);
  /// The last complete figures, of a previous range while the next one is read; null: none yet.
  [[nodiscard]] const Figures* figures() const noexcept { return shown_ ? &*shown_ : nullptr; }
  /// Progress of the reading, 0 to 1; 1 when there is none.
  [[nodiscard]] double progress() const noexcept;
  /// Incremented whenever figures() changes.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }

 private:
  struct Query {
    std::uint64_t run = 0;  ///< Session::number()
    TimeRange range;
    std::uint64_t revision = 0;
    friend bool operator==(const Query&, const Query&) = default;
  };
  /// A step, or the time before the first one, and the part of it in the range.
  struct Piece {
    std::optional<std::uint32_t> step;
    std::int64_t begin_ns = 0, end_ns = 0;
    std::int64_t from_ns = 0, to_ns = 0;
    [[nodiscard]] bool whole() const noexcept { return from_ns == begin_ns && to_ns == end_ns; }
  };
  struct Reading {
    Query of;
    std::vector<Piece> pieces;
    std::size_t piece = 0, rank = 0;  ///< the next one to read
    int calls = 0;
    bool waits_recorded = false, prefetches_recorded = false;
    Figures figures;
    analysis::CollectiveTimes times;  ///< of `piece`
    std::map<instrumentation::CollectiveOp, analysis::OpTotals> ops;
    analysis::LongestWaits longest;
  };
  void start(const AppState& app, const Query& wanted);
  void read_next(const AppState& app);
  void complete();
  std::optional<Reading> reading_;
  std::optional<Figures> shown_;
  Query shown_of_;
  std::uint64_t version_ = 0;
};

}  // namespace shardscope::gui
