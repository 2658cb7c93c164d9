#include "app/gui/model/hit_marks.h"

#include <algorithm>

#include "app/gui/model/new_hits.h"

namespace shardscope::gui {

void HitMarks::start(SpanFilter filter) {
  *this = {};
  filter_ = filter;
}

bool HitMarks::advance(const SpanSearch& search, std::chrono::nanoseconds time) {
  lanes_.resize(std::max(lanes_.size(), search.lanes().size()));
  const auto take = [&](std::size_t at, const SpanSearch::Lane& lane, std::size_t index) {
    const SpanHit& hit = lane.hits[index];
    if (!filter_.accepts(lane.id, hit)) return;
    std::vector<List>& lists = lanes_[at];
    auto found = std::ranges::find_if(
        lists, [&](const List& list) { return list.depth == hit.depth && list.wait == hit.wait; });
    if (found == lists.end()) found = lists.insert(lists.end(), {hit.depth, hit.wait, {}});
    found->hits.push_back(static_cast<std::uint32_t>(index));
  };
  return for_each_new_hit(search, taken_, std::chrono::steady_clock::now() + time, take).any;
}

std::span<const HitMarks::List> HitMarks::lists(std::size_t lane) const {
  return lane < lanes_.size() ? std::span<const List>(lanes_[lane]) : std::span<const List>();
}

std::vector<HitMark> marks_of(const SpanSearch::Lane& lane, const HitMarks::List& list,
                              const TimeScale& scale, float least) {
  std::vector<HitMark> out;
  const auto begin_of = [&](std::uint32_t hit) { return lane.hits[hit].begin_ns; };
  const auto end_of = [&](std::uint32_t hit) { return lane.hits[hit].begin_ns + lane.hits[hit].time_ns; };
  const auto end = list.hits.end();
  auto at = std::ranges::lower_bound(list.hits, scale.range.begin_ns, {}, begin_of);
  // The previous hit may extend into the range.
  if (at != list.hits.begin() && end_of(*(at - 1)) > scale.range.begin_ns) --at;
  while (at != end && begin_of(*at) < scale.range.end_ns) {
    const float x0 = std::max(scale.left, scale.x_of(begin_of(*at)));
    const float x1 = std::min(scale.left + scale.width, std::max(x0 + least, scale.x_of(end_of(*at))));
    out.push_back({x0, x1});
    const auto next = std::ranges::lower_bound(at + 1, end, scale.time_of(x0 + least), {}, begin_of);
    // Hits in between are under the mark; the last of them may extend beyond it.
    const bool longer = next - at > 1 && scale.x_of(end_of(*(next - 1))) > x1;
    at = longer ? next - 1 : next;
  }
  return out;
}

}  // namespace shardscope::gui
