#include <algorithm>

#include "app/arrow/table.h"
#include "instrumentation/event_fields.h"

namespace shardscope::arrow {
namespace {

using store::Store;

/// Appends [begin, end) of the step on this rank; nothing where the rank did not record it.
void add_step(const Store& store, std::uint32_t rank, const store::StepRow& row,
              std::vector<ReadInterval>& out) {
  namespace ev = shardscope::instrumentation;
  const store::LaneId host{rank, ev::StreamId::host};
  const std::int64_t end = row.end_ns == store::kOpen ? Store::kEnd : row.end_ns + 1;
  for (std::uint8_t depth = 0; depth < store.depth_count(host); ++depth) {
    store.for_each_span(host, depth, row.begin_ns, end, [&](const store::Span& found) {
      if (found.kind == ev::EventKind::step_begin &&
          ev::as<ev::EventKind::step_begin>(found).step == row.step)
        out.push_back({found.begin_ns, found.end_ns == store::kOpen ? Store::kEnd : found.end_ns});
    });
  }
}

}  // namespace

std::vector<std::uint32_t> ranks_of(const Store& store, const Filter& filter) {
  std::vector<std::uint32_t> all;
  for (const store::RankRow& row : store.ranks()) all.push_back(row.rank);
  if (filter.ranks.empty()) return all;
  for (const std::uint32_t rank : filter.ranks) {
    if (std::find(all.begin(), all.end(), rank) == all.end()) {
      throw BadFilter("rank " + std::to_string(rank) + ": not in the recording, which has " +
                      std::to_string(all.size()) + (all.size() == 1 ? " rank" : " ranks") +
                      "; the table `ranks` lists them");
    }
  }
  std::vector<std::uint32_t> ranks = filter.ranks;
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::vector<ReadInterval> wanted(const Store& store, std::uint32_t rank, const Filter& filter) {
  std::vector<ReadInterval> out;
  if (filter.steps.empty()) {
    out.push_back({Store::kBegin, Store::kEnd});
  } else {
    for (const std::uint32_t step : filter.steps) {
      const auto rows = store.steps();
      const auto row = std::find_if(rows.begin(), rows.end(),
                                    [&](const store::StepRow& candidate) { return candidate.step == step; });
      if (row == rows.end()) {
        throw BadFilter("step " + std::to_string(step) + ": not in the recording, which has " +
                        (rows.empty() ? std::string("none")
                                      : "steps " + std::to_string(rows.front().step) + " to " +
                                            std::to_string(rows.back().step)) +
                        "; the table `steps` lists them");
      }
      add_step(store, rank, *row, out);
    }
    std::sort(out.begin(), out.end(),
              [](const ReadInterval& a, const ReadInterval& b) { return a.begin_ns < b.begin_ns; });
    // A step that the filter lists twice is read once.
    out.erase(
        std::unique(out.begin(), out.end(),
                    [](const ReadInterval& a, const ReadInterval& b) { return a.begin_ns == b.begin_ns; }),
        out.end());
  }
  for (ReadInterval& interval : out) {
    interval.begin_ns = std::max(interval.begin_ns, filter.begin_ns);
    interval.end_ns = std::min(interval.end_ns, filter.end_ns);
  }
  std::erase_if(out, [](const ReadInterval& interval) { return interval.begin_ns >= interval.end_ns; });
  return out;
}

std::vector<ReadInterval> parts(const Store& store, store::LaneId lane, const Filter& filter) {
  const std::vector<std::int64_t> cuts = store.cuts(lane);
  std::vector<ReadInterval> out;
  for (const ReadInterval& interval : wanted(store, lane.rank, filter)) {
    std::int64_t from = interval.begin_ns;
    for (auto cut = std::upper_bound(cuts.begin(), cuts.end(), from);
         cut != cuts.end() && *cut < interval.end_ns; ++cut) {
      out.push_back({from, *cut});
      from = *cut;
    }
    out.push_back({from, interval.end_ns});
  }
  return out;
}

}  // namespace shardscope::arrow
