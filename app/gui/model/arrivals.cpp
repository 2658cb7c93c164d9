#include "app/gui/model/arrivals.h"

#include <algorithm>
#include <string>
#include <utility>

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

std::string barrier_text(const std::vector<Arrival>& all, std::uint32_t rank) {
  const Arrival* const last = last_to_arrive(all);
  if (last == nullptr) return "barrier";
  return last->rank == rank ? "barrier, last to arrive"
                            : "barrier, waits for rank " + std::to_string(last->rank);
}

std::string BarrierTexts::of(std::uint64_t run, const store::Store& store, store::LaneId lane,
                             const store::Span& barrier) {
  if (run_ != run || texts_.size() >= kMost) texts_.clear();
  run_ = run;
  const auto key = std::tuple(lane.rank, lane.stream, barrier.begin_ns);
  if (const auto known = texts_.find(key); known != texts_.end()) return known->second;
  std::string text = barrier_text(arrivals(store, lane, barrier), lane.rank);
  // Until it has ended, more ranks may arrive.
  if (barrier.end_ns != store::kOpen) texts_[key] = text;
  return text;
}

const Arrival* last_to_arrive(const std::vector<Arrival>& all) {
  if (all.size() < 2) return nullptr;
  return &*std::ranges::max_element(all, {}, &Arrival::at_ns);
}

}  // namespace shardscope::gui
