#include "app/gui/model/clock_bound.h"

#include <algorithm>

namespace shardscope::gui {

ClockBound clock_bound(const AppState& app, std::uint32_t rank) {
  const TimeRange& shown = app.time.range();
  const store::Store& store = app.store();
  return {.in_view_ns = store.largest_clock_residual(rank, shown.begin_ns, shown.end_ns),
          .in_run_ns = store.largest_clock_residual(rank, store::Store::kBegin, store::Store::kEnd)};
}

ClockBound clock_bound(const AppState& app) {
  ClockBound out;
  for (const store::RankRow& rank : app.store().ranks()) {
    const ClockBound own = clock_bound(app, rank.rank);
    out.in_view_ns = std::max(out.in_view_ns, own.in_view_ns);
    out.in_run_ns = std::max(out.in_run_ns, own.in_run_ns);
  }
  return out;
}

}  // namespace shardscope::gui
