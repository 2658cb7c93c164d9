// The hits of a search by lane and depth: from them the marks on a row of the timeline are found by halving,
// whatever number of hits is in view.
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
  /// Hits of one depth of a lane, waits apart: none overlaps another.
  struct List {
    std::uint8_t depth = 0;
    bool wait = false;
    std::vector<std::uint32_t> hits;  ///< in SpanSearch::Lane::hits, by begin
  };
  void start(SpanFilter filter);
  /// Takes in what `search` has found since, for about `time`. False when there was nothing to do.
  bool advance(const SpanSearch& search, std::chrono::nanoseconds time);
  /// Marks of the search's lane with this index.
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
/// Where the hits of a list are on the screen, from left to right, each `least` points wide at least. Hits
/// that would lie under another's mark have none: there are no more than two for `least` points of the scale.
[[nodiscard]] std::vector<HitMark> marks_of(const SpanSearch::Lane& lane, const HitMarks::List& list,
                                            const TimeScale& scale, float least);

}  // namespace shardscope::gui
