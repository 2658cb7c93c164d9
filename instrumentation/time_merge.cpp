#include "instrumentation/time_merge.h"

#include <algorithm>

#include "instrumentation/ring.h"

namespace shardscope::instrumentation {

namespace {
bool earlier(const Event& a, const Event& b) noexcept {
  return static_cast<std::int64_t>(a.ticks) < static_cast<std::int64_t>(b.ticks);
}
}  // namespace

// Invariants: held_ ascends by time (signed nanoseconds). A run is the events of one ring in this drain; it
// is nearly ascending, since one thread wrote it, but a span emitted after its end has an earlier timestamp.
// The held events come first, then the runs in order of their rings, so events with equal timestamps keep the
// order of earlier drains.
void TimeMerge::add(std::vector<Event>& drained, const std::vector<std::size_t>& run_begins,
                    const TickClock& clock) {
  if (drained.empty()) return;
  runs_.clear();
  if (!held_.empty()) runs_.push_back({held_.data(), held_.data() + held_.size()});
  for (std::size_t run = 0; run < run_begins.size(); ++run) {
    Event* const begin = drained.data() + run_begins[run];
    Event* const end = drained.data() + (run + 1 < run_begins.size() ? run_begins[run + 1] : drained.size());
    if (begin == end) continue;
    bool sorted = true;
    for (Event* event = begin; event != end; ++event) {
      const auto kind = static_cast<std::uint16_t>(event->kind);
      if ((kind & kTimeIsNs) != 0) {
        event->kind = static_cast<EventKind>(kind & ~kTimeIsNs);
      } else {
        event->ticks = static_cast<std::uint64_t>(clock.to_ns(event->ticks));
      }
      if (event != begin && earlier(*event, event[-1])) sorted = false;
    }
    if (!sorted) std::stable_sort(begin, end, earlier);
    runs_.push_back({begin, end});
  }
  // Few runs, and events of one thread come in bursts: from the run with the earliest next event, all events
  // that are not later than the next event of any other run are moved at once.
  merged_.clear();
  merged_.reserve(held_.size() + drained.size());
  while (runs_.size() > 1) {
    std::size_t first = 0;
    for (std::size_t run = 1; run < runs_.size(); ++run) {
      if (earlier(*runs_[run].next, *runs_[first].next)) first = run;
    }
    const Event* other = nullptr;
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      if (run != first && (other == nullptr || earlier(*runs_[run].next, *other))) other = runs_[run].next;
    }
    Run& run = runs_[first];
    const Event* stop = run.next + 1;  // among equal timestamps the earlier run is first
    while (stop != run.end && earlier(*stop, *other)) ++stop;
    merged_.insert(merged_.end(), run.next, stop);
    run.next = stop;
    if (run.next == run.end) runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(first));
  }
  merged_.insert(merged_.end(), runs_.front().next, runs_.front().end);
  held_.swap(merged_);
}

std::vector<Event> TimeMerge::take(std::int64_t until_ns, std::vector<Event> buffer) {
  const auto cut = std::upper_bound(
      held_.begin(), held_.end(), until_ns,
      [](std::int64_t ns, const Event& event) { return ns < static_cast<std::int64_t>(event.ticks); });
  // Copies the few events that are kept, not the many that are returned.
  buffer.assign(cut, held_.end());
  held_.erase(cut, held_.end());
  held_.swap(buffer);
  return buffer;
}

}  // namespace shardscope::instrumentation
