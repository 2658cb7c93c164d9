#include "app/gui/model/app_state.h"

#include <algorithm>
#include <utility>

#include "app/gui/model/step_of.h"
#include "app/store/gather_contents.h"
#include "app/store/retention.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {
namespace {

/// Number of steps in the initial range of a run.
constexpr std::size_t kFirstSteps = 2;

}  // namespace

std::int64_t AppState::now_ns() const {
  if (cursor_ns) return *cursor_ns;
  const std::span<const store::StepRow> steps = store().steps();
  if (run->link() != collector::Viewer::Link::ended || steps.empty()) return store().end_ns();
  return std::min(steps.back().end_ns, store().end_ns());
}

void AppState::place_once() {
  const store::Store& data = store();
  if (!ranks_placed && !data.ranks().empty()) {
    memory_rank = data.ranks().front().rank;
    stepper_rank = memory_rank;
    ranks_placed = true;
  }
  if (time_placed || data.end_ns() <= 0) return;
  const std::span<const store::StepRow> steps = data.steps();
  if (run->live()) {
    if (steps.empty() || steps.front().end_ns == store::kOpen) {
      time.fit(data.end_ns());
      return;
    }
    time.set({steps.front().begin_ns,
              steps.front().begin_ns + (steps.front().end_ns - steps.front().begin_ns) * 2},
             data.end_ns());
    time_placed = true;
    return;
  }
  follow = false;
  if (steps.empty()) {
    time.fit(data.end_ns());
  } else {
    // The last completed steps: a recording is opened to look at how it ran, not how it started.
    const std::size_t shown = std::min(kFirstSteps, steps.size());
    const store::StepRow& first = steps[steps.size() - shown];
    const std::int64_t end = steps.back().end_ns == store::kOpen ? data.end_ns() : steps.back().end_ns;
    const std::int64_t margin = (end - first.begin_ns) / 40;
    time.set({first.begin_ns - margin, end + margin}, data.end_ns());
  }
  time_placed = true;
}

void AppState::advance() {
  if (!run->live() || !follow || !time_placed) return;
  const std::optional<std::int64_t> length =
      own_length ? std::nullopt : newest_steps_ns(store().steps(), timeline.view.followed_steps);
  if (length)
    time.follow(store().end_ns(), *length);
  else
    time.follow(store().end_ns());
  if (memory_time_of == run->number() && !memory_by_hand) memory_time.follow(store().end_ns());
}

void AppState::toggle_follow() {
  follow = !follow;
  own_length = memory_by_hand = false;
  if (follow) cursor_ns.reset();
}

void AppState::follow_newest(std::uint32_t steps) {
  timeline.view.followed_steps = std::min(steps, ViewOptions::kMostFollowedSteps);
  follow = true;
  own_length = memory_by_hand = false;
  cursor_ns.reset();
}

void AppState::zoom(double factor, std::int64_t anchor_ns) {
  own_length = follow;
  time.zoom(factor, follow ? store().end_ns() : anchor_ns, store().end_ns());
}

void AppState::zoom_by_key(double factor) {
  own_length = follow;
  // While following the newest event stays where it is.
  const TimeRange& range = time.goal();
  const double edge = static_cast<double>(store().end_ns() - range.begin_ns) /
                      static_cast<double>(std::max<std::int64_t>(range.length(), 1));
  time.go_zoom(factor, follow ? edge : 0.5, store().end_ns());
}

void AppState::select_span(store::LaneId lane, const store::Span& span) {
  Selection next;
  next.rank = lane.rank;
  next.lane = lane;
  next.span = span;
  next.kind = SelectionKind::span;
  switch (span.kind) {
    case ev::EventKind::module_begin:
      next.kind = SelectionKind::module;
      next.module = ev::as<ev::EventKind::module_begin>(span).module;
      break;
    case ev::EventKind::collective_begin:
      next.kind = SelectionKind::collective;
      next.collective = ev::as<ev::EventKind::collective_begin>(span).sequence;
      if (const Fetch* fetch = run->index().fetch_of(lane.rank, span);
          fetch != nullptr && lane.stream == ev::StreamId::gather) {
        next.gather = fetch->gather;
        // The module it gathers, not the one at which it was issued.
        const std::vector<std::uint32_t> owners = store::owners_of(store(), fetch->params);
        next.module = owners.empty() ? fetch->module : owners.front();
      }
      break;
    case ev::EventKind::fetch_wait_begin:
      next.kind = SelectionKind::wait;
      next.module = ev::as<ev::EventKind::fetch_wait_begin>(span).module;
      next.gather = ev::as<ev::EventKind::fetch_wait_begin>(span).gather;
      break;
    case ev::EventKind::reduce_wait_begin:
    case ev::EventKind::deferred_wait_begin:
    case ev::EventKind::data_wait_begin:
      next.kind = SelectionKind::wait;
      break;
    case ev::EventKind::step_begin:
      next.kind = SelectionKind::step;
      next.step = ev::as<ev::EventKind::step_begin>(span).step;
      break;
    default:
      break;
  }
  selection = next;
}

void AppState::select_param(std::uint32_t param, std::uint32_t rank) {
  selection = {};
  selection.kind = SelectionKind::param;
  selection.param = param;
  selection.rank = rank;
  if (store().has_tables() && param < store().tables().params.size()) {
    const auto& modules = store().tables().params[param].modules;
    if (!modules.empty()) selection.module = modules.front();
  }
}

void AppState::select_module(std::uint32_t module, std::uint32_t rank) {
  selection = {};
  selection.kind = SelectionKind::module;
  selection.module = module;
  selection.rank = rank;
}

void AppState::select_rank(std::uint32_t rank) {
  selection = {};
  selection.kind = SelectionKind::rank;
  selection.rank = rank;
  memory_rank = rank;
  stepper_rank = rank;
}

void AppState::select_step(std::uint32_t step) {
  selection = {};
  selection.kind = SelectionKind::step;
  selection.step = step;
}

bool AppState::selected(std::uint32_t param) const {
  switch (selection.kind) {
    case SelectionKind::param:
      return selection.param == param;
    case SelectionKind::module: {
      if (!store().has_tables() || param >= store().tables().params.size()) return false;
      const auto& modules = store().tables().params[param].modules;
      return std::ranges::find(modules, selection.module) != modules.end();
    }
    case SelectionKind::collective:
    case SelectionKind::wait: {
      if (selection.gather != ev::kNoId) {
        const Fetch* fetch = run->index().fetch_by_id(selection.rank, selection.gather);
        return fetch != nullptr && std::ranges::find(fetch->params, param) != fetch->params.end();
      }
      const auto parts = run->index().parts(selection.rank, selection.collective);
      return std::ranges::find(parts, param) != parts.end();
    }
    default:
      return false;
  }
}

bool AppState::selected_module(std::uint32_t module) const {
  return selection.module != ev::kNoId && selection.module == module;
}

bool AppState::selected_span(store::LaneId lane, const store::Span& span) const {
  if (selection.kind == SelectionKind::none) return false;
  if (selection.span && selection.lane == lane && selection.span->begin_ns == span.begin_ns &&
      selection.span->kind == span.kind && ev::same_first_field(*selection.span, span)) {
    return true;
  }
  switch (span.kind) {
    case ev::EventKind::module_begin:
      return (selection.kind == SelectionKind::module || selection.kind == SelectionKind::param) &&
             selected_module(ev::as<ev::EventKind::module_begin>(span).module);
    case ev::EventKind::collective_begin:
      if (selection.kind == SelectionKind::collective) {
        return selection.lane.stream == lane.stream &&
               selection.collective == ev::as<ev::EventKind::collective_begin>(span).sequence;
      }
      if (selection.kind == SelectionKind::param && lane.stream == ev::StreamId::gather) {
        const Fetch* fetch = run->index().fetch_of(lane.rank, span);
        return fetch != nullptr && std::ranges::find(fetch->params, selection.param) != fetch->params.end();
      }
      return false;
    case ev::EventKind::step_begin:
      return selection.kind == SelectionKind::step &&
             selection.step == ev::as<ev::EventKind::step_begin>(span).step;
    default:
      return false;
  }
}

void AppState::show_rank(std::uint32_t rank) {
  timeline.expanded.insert(rank);
  timeline.automatic = false;
  for (const store::RankRow& row : store().ranks())
    if (row.rank == rank) timeline.closed_nodes.erase(row.host);
  for (const RankGroup& group : timeline.groups)
    if (std::ranges::find(group.ranks, rank) != group.ranks.end()) timeline.closed_nodes.erase(group.title);
  // Resets a filter that hides the rank.
  if (timeline.shown && !timeline.shown->contains(rank)) {
    timeline.filter.clear();
    timeline.shown.reset();
  }
  rank_to_show = rank;
}

void AppState::show_finding(const analysis::Finding& finding) {
  if (finding.rank != ev::kNoId) {
    select_rank(finding.rank);
    show_rank(finding.rank);
    memory_rank = stepper_rank = finding.rank;
  }
  if (finding.placed()) {
    jump_to(finding.at_ns);
    if (finding.until_ns > finding.at_ns) time.reveal({finding.at_ns, finding.until_ns}, store().end_ns());
  } else if (finding.rank == ev::kNoId) {
    fit();
  }
}

void AppState::set_layout(const std::string& name) {
  if (std::ranges::find(own_layouts, name) == own_layouts.end())
    (void)preset_layout(name);  // throws for an unknown name
  layout_name = name;
}

bool AppState::go_to_step(std::uint32_t wanted) {
  for (const store::StepRow& row : store().steps()) {
    if (row.step != wanted) continue;
    go_into({row.begin_ns, row.end_ns == store::kOpen ? store().end_ns() : row.end_ns});
    return true;
  }
  return false;
}

void AppState::go_into(TimeRange part) {
  const std::int64_t margin = std::max<std::int64_t>(part.length() / 40, 1);
  time.go({part.begin_ns - margin, part.end_ns + margin}, store().end_ns());
  time_placed = true;
  follow = false;
  cursor_ns = part.begin_ns + part.length() * 2 / 5;
}

void AppState::fit() {
  time.fit(store().end_ns());
  memory_time.fit(store().end_ns());
  time_placed = true;
  follow = memory_by_hand = false;
}

void AppState::jump_to(std::int64_t at_ns) {
  follow = false;
  cursor_ns = at_ns;
  time.reveal({at_ns, at_ns + 1}, store().end_ns());
}

void AppState::set_now(std::int64_t at_ns) {
  cursor_ns = std::clamp<std::int64_t>(at_ns, 0, store().end_ns());
  follow = false;  // the live edge would move the cursor
}

void AppState::pause() {
  if (!run->live()) return;
  collector::Command command;
  command.kind = collector::Command::Kind::pause;
  run->viewer()->send(command);
  breaks.sent_pause();
}

void AppState::keep_moment() {
  if (!run->live()) return;
  run->viewer()->keep(store::kRequested, cursor_ns ? *cursor_ns + store().origin_ns() : std::int64_t{0}, "");
}

void AppState::resume() {
  if (!run->live()) {
    cursor_ns.reset();
    return;
  }
  go_on(breaks.rule(store()));
}

void AppState::go_on(const ev::StopRule& rule) {
  collector::Command command;
  command.kind = collector::Command::Kind::resume;
  command.rule = rule;
  run->viewer()->send(command);
  breaks.sent(rule, store(), run->control());
}

bool AppState::tick(double seconds) {
  const Turn held = turn();
  return breaks.tick(*this, seconds, std::chrono::milliseconds(2));
}

void AppState::step(StepUnit unit, Direction direction) {
  if (run->live() && direction == Direction::forward && !cursor_ns) {
    go_on(stop_rule(unit));
    return;
  }
  const auto next = gate_beside(store(), stepper_rank, now_ns(), unit, direction);
  if (next) jump_to(next->at_ns);
}

void AppState::run_to(RunTo target, Direction direction) {
  if (run->live() && direction == Direction::forward && !cursor_ns) {
    go_on(stop_rule(target));
    return;
  }
  const auto next = gate_run_to(store(), stepper_rank, now_ns(), target, direction);
  if (next) jump_to(next->at_ns);
}

bool AppState::paused() const { return run->live() && run->control().paused; }

}  // namespace shardscope::gui
