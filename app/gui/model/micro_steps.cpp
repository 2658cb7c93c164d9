#include "app/gui/model/micro_steps.h"

#include <algorithm>

#include "app/gui/model/app_state.h"
#include "app/gui/model/step_of.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

namespace {

TimeRange range_of(const store::Store& store, const store::StepRow& step) {
  return {step.begin_ns, step.end_ns == store::kOpen ? store.end_ns() : step.end_ns};
}

StepFrame whole(const store::Store& store, const store::StepRow& step) {
  return {.step = step.step, .range = range_of(store, step)};
}

/// Micro-steps, or the step if it has one.
std::vector<StepFrame> frames_of(const store::Store& store, const store::StepRow& step) {
  const std::vector<MicroStep> all = micro_steps_of(store, step);
  std::vector<StepFrame> out;
  for (const MicroStep& one : all)
    out.push_back({step.step, out.size(), all.size(), one.number, {one.begin_ns, one.end_ns}});
  if (out.empty()) out.push_back(whole(store, step));
  return out;
}

}  // namespace

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

bool has_micro_steps(const store::Store& store) {
  constexpr std::size_t kFirst = 3;  // the first may have been recorded in part
  const auto steps = store.steps();
  for (const store::StepRow& step : steps.first(std::min(kFirst, steps.size())))
    if (!micro_steps_of(store, step).empty()) return true;
  return false;
}

std::vector<StepFrame> frames_in(const store::Store& store, TimeRange range, std::int64_t narrowest_ns,
                                 std::size_t most_steps) {
  const auto steps = store.steps();
  const auto first = step_of(steps, range.begin_ns).value_or(0);
  const auto after =
      std::partition_point(steps.begin() + static_cast<std::ptrdiff_t>(first), steps.end(),
                           [&](const store::StepRow& step) { return step.begin_ns < range.end_ns; });
  const auto end = static_cast<std::size_t>(after - steps.begin());
  std::vector<StepFrame> out;
  // Whole steps would be too narrow as well: none of a million is looked at.
  if (end > first + 2 && range.length() / static_cast<std::int64_t>(end - first - 2) < narrowest_ns)
    return out;
  const auto wide = [&] {
    const auto count = static_cast<std::int64_t>(std::max<std::size_t>(1, out.size()));
    return range.length() / count >= narrowest_ns;
  };
  if (end - first <= most_steps) {
    for (std::size_t i = first; i < end; ++i) {
      for (const StepFrame& frame : frames_of(store, steps[i]))
        if (frame.range.begin_ns < range.end_ns && frame.range.end_ns > range.begin_ns) out.push_back(frame);
    }
    if (wide()) return out;
    out.clear();
  }
  for (std::size_t i = first; i < end; ++i)
    if (const StepFrame frame = whole(store, steps[i]); frame.range.end_ns > range.begin_ns)
      out.push_back(frame);
  if (!wide()) out.clear();
  return out;
}

std::vector<std::string> labels_of(const StepFrame& frame) {
  const std::string step = "step " + std::to_string(frame.step);
  if (frame.of == 1) return {step, std::to_string(frame.step)};
  const std::string of = std::to_string(frame.place + 1) + " of " + std::to_string(frame.of);
  const std::string number = "micro-step " + std::to_string(frame.number) + ", " + of;
  return {step + ", " + number, number, of};
}

bool go_to_micro_step(AppState& app, int by) {
  const store::Store& store = app.store();
  const auto steps = store.steps();
  const auto at = step_of(steps, app.now_ns());
  if (!at && by < 0) return false;
  if (steps.empty()) return false;
  // Before the first step: to its first micro-step.
  std::size_t step = at.value_or(0);
  std::vector<StepFrame> frames = frames_of(store, steps[step]);
  std::ptrdiff_t index = -1;
  if (at) {
    const auto after = std::ranges::upper_bound(frames, app.now_ns(), {},
                                                [](const StepFrame& frame) { return frame.range.begin_ns; });
    index = after - frames.begin() - 1;
  }
  index += by;
  if (index < 0 || index >= std::ssize(frames)) {
    if (by < 0 ? step == 0 : step + 1 >= steps.size()) return false;
    step = by < 0 ? step - 1 : step + 1;
    frames = frames_of(store, steps[step]);
    index = by < 0 ? std::ssize(frames) - 1 : 0;
  }
  app.go_into(frames[static_cast<std::size_t>(index)].range);
  return true;
}

}  // namespace shardscope::gui
