#include "app/store/span_totals.h"

#include <algorithm>

namespace shardscope::store {

void SpanTotals::add(LaneId lane, const Span& span, const Pauses& pauses) {
  const auto [total, first] = totals_.row(kind_key(lane, span.kind, span.code));
  const std::int64_t paused = stretched_by_pauses(span.kind) ? pauses.within(span.begin_ns, span.end_ns) : 0;
  const std::int64_t ns = span.end_ns - span.begin_ns - paused;
  if (first) total = {.lane = lane, .kind = span.kind, .code = span.code, .min_ns = ns};
  ++total.count;
  total.total_ns += ns;
  total.min_ns = std::min(total.min_ns, ns);
  total.max_ns = std::max(total.max_ns, ns);
}

void SpanTotals::merge(std::span<const SpanTotal> rows) {
  for (const SpanTotal& row : rows) {
    const auto [total, first] = totals_.row(kind_key(row.lane, row.kind, row.code));
    if (first) {
      total = row;
      continue;
    }
    total.count += row.count;
    total.total_ns += row.total_ns;
    total.min_ns = std::min(total.min_ns, row.min_ns);
    total.max_ns = std::max(total.max_ns, row.max_ns);
  }
}

std::vector<SpanTotal> SpanTotals::rows() const {
  std::vector<SpanTotal> out;
  for (const auto& [key, total] : totals_.sorted()) out.push_back(total);
  return out;
}

}  // namespace shardscope::store
