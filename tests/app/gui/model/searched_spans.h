// Searches of a store's spans, beside what is found by looking at every one.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "app/analysis/statistics.h"
#include "app/gui/model/find_names.h"
#include "app/gui/model/find_spans.h"
#include "app/gui/model/names.h"
#include "app/gui/model/span_family.h"
#include "app/store/span_time.h"
#include "tests/app/store/own_spans.h"

namespace shardscope::gui {

inline constexpr auto kAll = std::chrono::hours(1);

/// A span as it is found by looking at every one.
struct Walked {
  store::LaneId lane;
  store::Span span;
  std::int64_t time_ns = 0, self_ns = 0;
};

inline std::vector<Walked> walk(const store::Store& store) {
  std::vector<Walked> out;
  for (const store::LaneId& lane : store.lanes()) {
    for (std::uint8_t depth = 0; depth < store.depth_count(lane); ++depth) {
      for (const store::Span& span : store.spans(lane, depth)) {
        Walked one{lane, span, store::time_of(store, lane.rank, span).running_ns, 0};
        one.self_ns = one.time_ns;
        for (const store::Span& child : store.spans(lane, static_cast<std::uint8_t>(depth + 1))) {
          if (child.begin_ns >= span.begin_ns && child.begin_ns < span.end_ns)
            one.self_ns -= store::time_of(store, lane.rank, child).running_ns;
        }
        out.push_back(one);
      }
    }
  }
  return out;
}

inline SpanSearch searched(const store::Store& store, SpanQuery query) {
  SpanSearch search;
  search.start(std::move(query));
  while (search.advance(store, kAll)) {
  }
  return search;
}

inline SpanStatistics counted(const SpanSearch& search, GroupBy by, const SpanFilter& filter = {}) {
  SpanStatistics statistics;
  statistics.start(by, filter);
  while (statistics.advance(search, kAll)) {
  }
  return statistics;
}

/// Rank, stream, begin, depth, time and self time of each, in order.
using Line = std::tuple<std::uint32_t, int, std::int64_t, int, std::int64_t, std::int64_t>;

inline std::vector<Line> lines(const SpanSearch& search) {
  std::vector<Line> out;
  for (const SpanSearch::Lane& lane : search.lanes()) {
    for (const SpanHit& hit : lane.hits)
      out.emplace_back(lane.id.rank, static_cast<int>(lane.id.stream), hit.begin_ns, hit.depth, hit.time_ns,
                       hit.self_ns);
  }
  return out;
}

inline std::vector<Line> lines(const std::vector<Walked>& walked) {
  std::vector<Line> out;
  for (const Walked& one : walked)
    out.emplace_back(one.lane.rank, static_cast<int>(one.lane.stream), one.span.begin_ns, one.span.depth,
                     one.time_ns, one.self_ns);
  std::ranges::sort(out);
  return out;
}

}  // namespace shardscope::gui
