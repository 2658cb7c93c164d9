#include "app/gui/model/micro_steps.h"

#include <algorithm>

#include "instrumentation/event_fields.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

std::vector<MicroStep> micro_steps_of(const store::Store& store, const store::StepRow& step) {
  std::vector<MicroStep> out;
  const auto ranks = store.ranks();
  if (ranks.empty()) return out;
  const std::int64_t row_end = step.end_ns == store::kOpen ? store.end_ns() : step.end_ns;
  const store::LaneId lane{std::ranges::min(ranks, {}, &store::RankRow::rank).rank, ev::StreamId::host};
  const auto each = [&](std::int64_t from, std::int64_t to, auto&& visit) {
    for (std::uint8_t depth = 0; depth < store.depth_count(lane); ++depth)
      store.for_each_span(lane, depth, from, to, visit);
  };
  // The step on this rank: ranks are not in step, and the row is from the first begin to the last end.
  std::int64_t begin = step.begin_ns, end = row_end;
  each(step.begin_ns, row_end, [&](const store::Span& span) {
    if (span.kind != ev::EventKind::step_begin || ev::as<ev::EventKind::step_begin>(span).step != step.step)
      return;
    begin = span.begin_ns;
    if (span.end_ns != store::kOpen) end = span.end_ns;
  });
  each(begin, end, [&](const store::Span& span) {
    if (span.kind != ev::EventKind::micro_step_begin || span.begin_ns < begin || span.begin_ns >= end) return;
    out.push_back({ev::as<ev::EventKind::micro_step_begin>(span).micro_step, span.begin_ns,
                   span.end_ns == store::kOpen ? end : std::min(span.end_ns, end)});
  });
  std::ranges::sort(out, {}, &MicroStep::begin_ns);
  if (out.size() < 2) out.clear();
  return out;
}

}  // namespace shardscope::gui
