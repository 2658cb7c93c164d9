#include "instrumentation/time_merge.h"

#include <algorithm>

#include "instrumentation/ring.h"

namespace shardscope::instrumentation {

namespace {
bool earlier(const Event& a, const Event& b) noexcept {
  return static_cast<std::int64_t>(a.ticks) < static_cast<std::int64_t>(b.ticks);
}
}  // namespace

void TimeMerge::add(std::vector<Event>& drained, const std::vector<std::size_t>& run_begins,
                    const TickClock& clock) {
  if (drained.empty()) return;
  for (Event& event : drained) {
    const auto kind = static_cast<std::uint16_t>(event.kind);
    if ((kind & kTimeIsNs) != 0) {
      event.kind = static_cast<EventKind>(kind & ~kTimeIsNs);
    } else {
      event.ticks = static_cast<std::uint64_t>(clock.to_ns(event.ticks));
    }
  }
  // What is held and each ring's run are nearly always sorted already; merge them one after another.
  const std::size_t base = held_.size();
  held_.insert(held_.end(), drained.begin(), drained.end());
  const auto at = [&](std::size_t index) { return held_.begin() + static_cast<std::ptrdiff_t>(index); };
  for (std::size_t run = 0; run < run_begins.size(); ++run) {
    const std::size_t begin = base + run_begins[run];
    const std::size_t end = run + 1 < run_begins.size() ? base + run_begins[run + 1] : held_.size();
    if (begin == end) continue;
    if (!std::is_sorted(at(begin), at(end), earlier)) std::stable_sort(at(begin), at(end), earlier);
    if (begin != 0 && earlier(held_[begin], held_[begin - 1]))
      std::inplace_merge(at(0), at(begin), at(end), earlier);
  }
}

std::vector<Event> TimeMerge::take(std::int64_t until_ns) {
  const auto cut = std::upper_bound(
      held_.begin(), held_.end(), until_ns,
      [](std::int64_t ns, const Event& event) { return ns < static_cast<std::int64_t>(event.ticks); });
  std::vector<Event> ready;
  if (cut == held_.end()) {
    ready.swap(held_);
    return ready;
  }
  ready.assign(held_.begin(), cut);
  held_.erase(held_.begin(), cut);
  return ready;
}

}  // namespace shardscope::instrumentation
