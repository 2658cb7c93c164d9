#include "app/gui/model/hit_rows.h"

#include <algorithm>
#include <tuple>

#include "app/gui/model/new_hits.h"

namespace shardscope::gui {
namespace {

std::int64_t sorted_by(HitOrder order, store::LaneId lane, const SpanHit& hit) noexcept {
  switch (order) {
    case HitOrder::begin:
      return hit.begin_ns;
    case HitOrder::time:
      return hit.time_ns;
    case HitOrder::self:
      return hit.self_ns;
    case HitOrder::rank:
      return lane.rank;
    case HitOrder::step:
      return hit.step == ev::kNoId ? -1 : std::int64_t{hit.step};
  }
  return 0;
}

}  // namespace

bool HitRows::before(const Entry& a, const Entry& b) noexcept {
  return std::tie(a.key, a.ref.lane, a.ref.hit) < std::tie(b.key, b.ref.lane, b.ref.hit);
}

void HitRows::start(SpanFilter filter, HitOrder order, bool descending) {
  *this = {};
  filter_ = filter;
  order_ = order;
  descending_ = descending;
}

bool HitRows::advance(const SpanSearch& search, std::chrono::nanoseconds time) {
  const auto take = [&](std::size_t lane_index, const SpanSearch::Lane& lane, std::size_t index) {
    const SpanHit& hit = lane.hits[index];
    if (!filter_.accepts(lane.id, hit)) return;
    ++accepted_;
    const std::int64_t key = sorted_by(order_, lane.id, hit);
    const Entry entry{descending_ ? -key : key,
                      {static_cast<std::uint32_t>(lane_index), static_cast<std::uint32_t>(index)}};
    if (best_.size() == kMost) {
      if (!before(entry, best_.front())) return;
      std::ranges::pop_heap(best_, before);
      best_.pop_back();
    }
    best_.push_back(entry);
    std::ranges::push_heap(best_, before);
  };
  return for_each_new_hit(search, taken_, std::chrono::steady_clock::now() + time, take).any;
}

std::vector<HitRef> HitRows::rows() const {
  std::vector<Entry> sorted = best_;
  std::ranges::sort(sorted, before);
  std::vector<HitRef> out;
  out.reserve(sorted.size());
  for (const Entry& entry : sorted) out.push_back(entry.ref);
  return out;
}

std::optional<HitPlace> place_of(const SpanSearch& search, HitRef ref) {
  const auto lanes = search.lanes();
  if (ref.lane >= lanes.size() || ref.hit >= lanes[ref.lane].hits.size()) return std::nullopt;
  return HitPlace{lanes[ref.lane].hits[ref.hit].begin_ns, ref};
}

std::optional<HitPlace> next_hit(const SpanSearch& search, const SpanFilter& filter, const HitPlace& from,
                                 Toward toward) {
  const auto later = [](const HitPlace& a, const HitPlace& b) {
    return std::tie(a.begin_ns, a.ref.lane, a.ref.hit) < std::tie(b.begin_ns, b.ref.lane, b.ref.hit);
  };
  std::optional<HitPlace> best;
  const auto lanes = search.lanes();
  for (std::uint32_t i = 0; i < lanes.size(); ++i) {
    const std::vector<SpanHit>& hits = lanes[i].hits;
    const auto place = [&](std::size_t at) {
      return HitPlace{hits[at].begin_ns, {i, static_cast<std::uint32_t>(at)}};
    };
    auto at = static_cast<std::size_t>(std::ranges::lower_bound(hits, from.begin_ns, {}, &SpanHit::begin_ns) -
                                       hits.begin());
    if (toward == Toward::later) {
      while (at < hits.size() && (!later(from, place(at)) || !filter.accepts(lanes[i].id, hits[at]))) ++at;
      if (at < hits.size() && (!best || later(place(at), *best))) best = place(at);
    } else {
      while (at < hits.size() && later(place(at), from)) ++at;
      while (at > 0 && !filter.accepts(lanes[i].id, hits[at - 1])) --at;
      if (at > 0 && (!best || later(*best, place(at - 1)))) best = place(at - 1);
    }
  }
  return best;
}

}  // namespace shardscope::gui
