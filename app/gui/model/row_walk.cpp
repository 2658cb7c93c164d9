#include "app/gui/model/row_walk.h"

#include <algorithm>
#include <span>

#include "app/gui/model/app_state.h"
#include "app/gui/model/view_options.h"
#include "app/store/lane.h"

namespace shardscope::gui {
namespace {

bool same_row(const TimelineRow& a, const TimelineRow& b) {
  return a.kind == b.kind && a.rank == b.rank && a.depth == b.depth && a.gpu_lane == b.gpu_lane &&
         a.counter == b.counter && a.param == b.param && a.given_name == b.given_name;
}

bool is_on(const TimelineRow& row, store::LaneId lane, const store::Span& span) {
  if (!row.is_lane() || row.kind == RowKind::rank || row.lane() != lane) return false;
  return row.kind == RowKind::waits ? store::is_wait(span.kind) : row.depth == span.depth;
}

/// Of spans in order of begin.
template <typename Spans>
std::optional<store::Span> beside(const AppState& app, const Spans& spans, std::int64_t at_ns,
                                  Toward toward) {
  std::optional<store::Span> best;
  for (const store::Span& span : spans) {
    if (hides(app.timeline.view, span.kind)) continue;
    if (toward == Toward::later ? span.begin_ns <= at_ns : span.begin_ns >= at_ns) continue;
    best = span;
    if (toward == Toward::later) break;
  }
  return best;
}

}  // namespace

std::optional<std::size_t> index_of(const TimelineRows& rows, const TimelineRow& row) {
  const auto found =
      std::ranges::find_if(rows.rows, [&](const TimelineRow& other) { return same_row(other, row); });
  if (found == rows.rows.end()) return std::nullopt;
  return static_cast<std::size_t>(found - rows.rows.begin());
}

std::size_t row_of_selection(const AppState& app, const TimelineRows& rows) {
  const Selection& s = app.selection;
  std::size_t of_rank = 0;
  for (std::size_t i = rows.rows.size(); i-- > 0;) {
    const TimelineRow& row = rows.rows[i];
    if (s.span && is_on(row, s.lane, *s.span)) return i;
    if (row.kind == RowKind::rank && row.rank == s.rank) of_rank = i;
  }
  return of_rank;
}

SpanBeside span_beside(const AppState& app, const TimelineRow& row, std::int64_t at_ns, Toward toward) {
  const store::Store& store = app.store();
  if (row.kind == RowKind::waits) {
    const std::span<const store::Span> waits = app.run->index().waits(row.rank);
    return {beside(app, waits, at_ns, toward), true};
  }
  const std::int64_t limit = store.end_ns() + 1;
  // Pieces that double: a far span is found with few reads, a near one reads little.
  std::int64_t length = std::max<std::int64_t>(1'000, app.time.range().length() / 8);
  std::int64_t edge = at_ns;
  while (toward == Toward::later ? edge < limit : edge > 0) {
    const std::int64_t to =
        toward == Toward::later ? std::min(limit, edge + length) : std::max<std::int64_t>(0, edge - length);
    const std::int64_t begin = std::min(edge, to), end = std::max(edge, to);
    if (!store.ready(row.lane(), begin, end) && store.becomes_ready(row.lane(), begin, end))
      return {std::nullopt, false};
    if (const auto found = beside(app, store.spans(row.lane(), row.depth, begin, end), at_ns, toward))
      return {found, true};
    edge = to;
    length *= 2;
  }
  return {};
}

SpanBeside next_on_row(const AppState& app, const TimelineRow& row, Toward toward) {
  const Selection& s = app.selection;
  if (s.span && is_on(row, s.lane, *s.span)) return span_beside(app, row, s.span->begin_ns, toward);
  const TimeRange shown = app.time.range();
  const std::int64_t now = app.cursor_ns && shown.contains(*app.cursor_ns) ? *app.cursor_ns : shown.begin_ns;
  // The span at this time begins before it.
  const SpanBeside here = span_beside(app, row, now + 1, Toward::earlier);
  if (!here.read || (here.span && here.span->end_ns > now)) return here;
  return toward == Toward::earlier ? here : span_beside(app, row, now, toward);
}

void set_expanded(TimelineOptions& options, const TimelineRow& row, bool expanded) {
  if (row.kind == RowKind::node) {
    if (expanded)
      options.closed_nodes.erase(row.given_name);
    else
      options.closed_nodes.insert(row.given_name);
  } else if (row.kind == RowKind::rank) {
    options.automatic = false;
    if (expanded)
      options.expanded.insert(row.rank);
    else
      options.expanded.erase(row.rank);
  }
}

}  // namespace shardscope::gui
