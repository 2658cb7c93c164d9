// Hits of a search by lane and depth, so that the marks on a timeline row are found by binary search for any
// number of visible hits.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "app/gui/model/span_statistics.h"
#include "app/gui/model/time_axis.h"

namespace shardscope::gui {

class HitMarks {
 public:
  /// Hits at one depth of a lane, waits in a list of their own: hits of a list do not overlap.
  struct List {
    std::uint8_t depth = 0;
    bool wait = false;
    std::vector<std::uint32_t> hits;  ///< indexes into SpanSearch::Lane::hits, in order of begin
  };
  void start(SpanFilter filter);
  /// Adds new hits of `search`, for about `time`. False when there was nothing to do.
  bool advance(const SpanSearch& search, std::chrono::nanoseconds time);
  /// Lists of the lane with this index in the search.
  [[nodiscard]] std::span<const List> lists(std::size_t lane) const;
  [[nodiscard]] const SpanFilter& filter() const noexcept { return filter_; }

 private:
  SpanFilter filter_;
  std::vector<std::vector<List>> lanes_;
  std::vector<std::size_t> taken_;
};

struct HitMark {
  float x0 = 0, x1 = 0;
};
/// Screen positions of a list's hits, left to right, at least `least` points wide. A hit that another mark
/// would cover has none: there are at most two marks per `least` points.
[[nodiscard]] std::vector<HitMark> marks_of(const SpanSearch::Lane& lane, const HitMarks::List& list,
                                            const TimeScale& scale, float least);

}  // namespace shardscope::gui
