// Which run the window shows: opening one, and switching between the two of a comparison.
#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include "app/gui/model/app_state.h"
#include "app/gui/model/carried_place.h"
#include "app/gui/model/labelled_run.h"

namespace shardscope::gui {

std::vector<LabelledRun> labelled_runs(const AppState& app) {
  std::vector<LabelledRun> out{{&app.run_a(), app.letter_of(app.run_a())}};
  if (const Session* const b = app.run_b(); app.other != nullptr) out.push_back({b, app.letter_of(*b)});
  return out;
}

LabelledRun shown_run(const AppState& app) { return {app.run.get(), app.letter_of(*app.run)}; }

std::string AppState::title() const {
  constexpr const char* kProgram = "Shardscope";
  if (start_page || run == nullptr || run->source().empty()) return kProgram;
  const auto name = [](const Session& of) { return std::filesystem::path(of.source()).filename().string(); };
  return name(run_a()) + (run_b() != nullptr ? " and " + name(*run_b()) : "") + " - " + kProgram;
}

std::string AppState::open(const OpenRequest& request) {
  std::unique_ptr<Session> opened;
  try {
    opened = request.source.find("://") != std::string::npos
                 ? Session::connect(request.source, request.key_file)
                 : Session::open_file(request.source);
  } catch (const std::exception& failed) {
    return failed.what();
  }
  if (request.second) {
    if (shows_b) show_other_run();  // A stays A; B is replaced
    not_shown_ = {};
    other = std::move(opened);
    return {};
  }
  not_shown_ = {};
  shows_b = false;
  run = std::move(opened);
  other.reset();
  forget_run();
  time = {};
  follow = true;
  notes.forget();
  start_page = false;
  return {};
}

void AppState::swap_runs() {
  if (!other) return;
  not_shown_ = {};
  if (!std::exchange(shows_b, false)) std::swap(run, other);
  forget_run();
}

void AppState::show_other_run() {
  if (!other) return;
  NotShown here{selection, history, follow, timeline.order, timeline.own_order};
  const TimeRange range = time.range();
  const bool placed = time_placed;
  const auto measured_here = measured;
  const auto cursor_here = cursor_ns;
  const std::uint32_t rank_of_memory = memory_rank, rank_of_steps = stepper_rank;
  const TimelineOptions rows = timeline;
  const UnitRange map = elements;
  const float scroll = timeline_scroll;
  const std::string words = find.words;
  const FindScope scope = find.scope;

  std::swap(run, other);
  shows_b = !shows_b;
  forget_run();
  std::swap(not_shown_, here);

  const store::Store &from = other->store(), &to = run->store();
  const auto carried = [&](std::optional<std::int64_t> at) {
    return at ? std::optional(std::clamp<std::int64_t>(carried_time(from, to, *at), 0, to.end_ns()))
              : std::nullopt;
  };
  if (placed && !from.steps().empty() && !to.steps().empty()) {
    time.set(carried_range(from, to, range), to.end_ns());
    time_placed = true;
    cursor_ns = carried(cursor_here);
    if (measured_here) {
      const TimeRange there = carried_range(from, to, *measured_here);
      const TimeRange within{std::max<std::int64_t>(there.begin_ns, 0), std::min(there.end_ns, to.end_ns())};
      if (within.length() > 0) measured = within;
    }
  }
  follow = run->live() && here.follow && !cursor_ns;
  history = std::move(here.history);
  selection = here.selection;
  if (not_shown_.selection.kind != SelectionKind::none)
    selection = carried_selection(from, to, not_shown_.selection).value_or(selection);
  if (knows_rank(to, rank_of_memory) && knows_rank(to, rank_of_steps)) {
    memory_rank = rank_of_memory;
    stepper_rank = rank_of_steps;
    ranks_placed = true;
  }
  timeline.own_order = std::move(here.own_order);
  if (here.order == RankOrder::own) timeline.order = RankOrder::own;
  timeline.expanded = rows.expanded;
  timeline.automatic = rows.automatic;
  timeline.filter = rows.filter;
  timeline.closed_nodes = rows.closed_nodes;
  timeline.crops = rows.crops;
  for (const std::uint32_t param : rows.params)
    if (const std::uint32_t there = carried_param(from, to, param); there != ev::kNoId)
      follow_param(timeline, there);
  timeline_scroll = scroll;
  elements = map;
  find.words = words;
  if (scope != FindScope::shown) find.scope = scope;
}

void AppState::forget_run() {
  selection = {};
  family = {};
  relations = {};
  inside = {};
  module_in_step = {};
  what_if.reset();
  hovered_span.reset();
  rank_to_show.reset();
  what_if_changes.reset();
  time_placed = ranks_placed = false;
  cursor_ns.reset();
  measured.reset();
  history.clear();
  // Settings of the user are kept for the next run.
  const ViewOptions view = timeline.view;
  RowChoices rows = static_cast<const RowChoices&>(timeline);
  if (rows.order == RankOrder::own) rows.order = RankOrder::number;
  timeline = {};
  timeline.view = view;
  static_cast<RowChoices&>(timeline) = std::move(rows);
  timeline_scroll = 0;
  elements = {};
  find.forget();
  breaks.forget_run();
}

}  // namespace shardscope::gui
