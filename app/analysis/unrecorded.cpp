#include "app/analysis/unrecorded.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace shardscope::analysis {
namespace {

using ev::Detail;

/// Begin of a level of detail.
struct Level {
  std::int64_t from_ns = 0;
  Detail detail{};
};
std::vector<Level> levels_of(const store::Store& store, std::uint32_t rank) {
  std::vector<Level> levels;
  for (const ev::Event& event : store.instants_of(rank, ev::EventKind::detail_changed)) {
    const auto change = ev::as<ev::EventKind::detail_changed>(event);
    if (levels.empty()) levels.push_back({store::Store::kBegin, change.before});
    levels.push_back({static_cast<std::int64_t>(event.ticks), change.detail});
  }
  return levels;
}

/// Calls visit(begin, end, detail) for the intervals of constant detail that overlap [begin, end).
template <typename Visitor>
void for_each_level(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns,
                    Visitor&& visit) {
  const std::vector<Level> levels = levels_of(store, rank);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const std::int64_t until = i + 1 < levels.size() ? levels[i + 1].from_ns : store::Store::kEnd;
    if (levels[i].from_ns < end_ns && until > begin_ns) visit(levels[i].from_ns, until, levels[i].detail);
  }
}

}  // namespace

IntervalSet unrecorded(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                       std::int64_t end_ns, Detail needed) {
  std::vector<Interval> missing;
  for (const store::Gap& gap : store.gaps()) {
    if (gap.rank == rank && gap.begin_ns < end_ns && gap.end_ns > begin_ns)
      missing.push_back({gap.begin_ns, gap.end_ns});
  }
  for_each_level(store, rank, begin_ns, end_ns, [&](std::int64_t from, std::int64_t until, Detail detail) {
    if (detail < needed) missing.push_back({from, until});
  });
  return IntervalSet(std::move(missing)).clip(begin_ns, end_ns);
}

Recorded recorded_in(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                     std::int64_t end_ns) {
  Recorded result;
  result.events_missing = std::ranges::any_of(store.gaps(), [&](const store::Gap& gap) {
    return gap.rank == rank && gap.begin_ns < end_ns && gap.end_ns >= begin_ns;
  });
  for_each_level(store, rank, begin_ns, end_ns, [&](std::int64_t, std::int64_t, Detail detail) {
    result.lowest = std::min(result.lowest.value_or(detail), detail);
  });
  return result;
}

Remainders remainders(const store::Store& store, std::uint32_t rank, const IntervalSet& missing,
                      std::int64_t begin_ns, std::int64_t end_ns) {
  Remainders out;
  const std::vector<Interval>& stretches = missing.intervals();
  if (stretches.empty()) return out;
  // A span begun before the first interval may have ended in the last one; a span that ended after the last
  // one may have begun in the first.
  std::vector<Interval> doubtful;
  if (stretches.size() > 1) doubtful.push_back({stretches.front().end, stretches.back().begin});
  store.for_each_end_without_begin(rank, begin_ns, end_ns, [&](const store::Store::EndWithoutBegin& end) {
    const auto after = std::ranges::find_if(stretches, [&](const Interval& s) { return s.end > end.at_ns; });
    if (after == stretches.begin()) return;  // nothing is missing before it
    const Interval& last = *std::prev(after);
    if (end.since_ns != store::Store::kBegin) {
      out.spans.push_back({end.stream, end.begin, {end.since_ns, end.at_ns}});
      return;
    }
    out.spans.push_back({end.stream, end.begin, {last.end, end.at_ns}});
  });
  out.doubtful = IntervalSet(std::move(doubtful)).subtract(missing);
  return out;
}

}  // namespace shardscope::analysis
