#include "app/gui/model/arrivals.h"

#include <algorithm>

#include "instrumentation/event_fields.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

std::vector<Arrival> arrivals(const store::Store& store, store::LaneId lane, const store::Span& one) {
  std::vector<Arrival> all;
  if (one.kind != ev::EventKind::collective_begin) return all;
  const std::uint32_t sequence = ev::as<ev::EventKind::collective_begin>(one).sequence;
  const std::int64_t end = one.end_ns == store::kOpen ? store.end_ns() : one.end_ns;
  for (const store::RankRow& rank : store.ranks()) {
    const store::LaneId there{rank.rank, lane.stream};
    for (std::uint8_t depth = 0; depth < store.depth_count(there); ++depth) {
      const std::vector<store::Span> spans = store.spans(there, depth, one.begin_ns, end + 1);
      const auto found = std::ranges::find_if(spans, [&](const store::Span& span) {
        return span.kind == one.kind && ev::as<ev::EventKind::collective_begin>(span).sequence == sequence;
      });
      if (found == spans.end()) continue;
      all.push_back({rank.rank, found->begin_ns, 0});
      break;
    }
  }
  if (all.empty()) return all;
  const std::int64_t earliest = std::ranges::min(all, {}, &Arrival::at_ns).at_ns;
  for (Arrival& arrival : all) arrival.late_ns = arrival.at_ns - earliest;
  return all;
}

const Arrival* last_to_arrive(const std::vector<Arrival>& all) {
  if (all.size() < 2) return nullptr;
  return &*std::ranges::max_element(all, {}, &Arrival::at_ns);
}

}  // namespace shardscope::gui
