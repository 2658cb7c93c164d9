#include "app/gui/views/span_menu.h"

#include <imgui.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/model/find_spans.h"
#include "app/gui/model/names.h"
#include "app/gui/model/own_order.h"
#include "app/gui/model/rank_order.h"
#include "app/gui/views/plot_menu.h"
#include "app/store/span_time.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {
namespace {

void copy(UiState& ui, const std::string& text) {
  ImGui::SetClipboardText(text.c_str());
  ui.say("Copied: " + text);
}

void find_selected(AppState& app, UiState& ui) {
  if (find_selection(app)) ui.show_panel = "find";
}

/// Parameters moved by a collective; empty for other spans.
std::vector<std::uint32_t> params_of(const AppState& app, store::LaneId lane, const store::Span& span) {
  if (span.kind != ev::EventKind::collective_begin) return {};
  if (lane.stream == ev::StreamId::gather) {
    const Fetch* const fetch = app.run->index().fetch_of(lane.rank, span);
    return fetch == nullptr ? std::vector<std::uint32_t>() : fetch->params;
  }
  const auto parts =
      app.run->index().parts(lane.rank, ev::as<ev::EventKind::collective_begin>(span).sequence);
  return {parts.begin(), parts.end()};
}

}  // namespace

void zoom_to_span(AppState& app, store::LaneId lane, const store::Span& span) {
  const std::int64_t end = store::time_of(app.store(), lane.rank, span).until_ns;
  const std::int64_t margin = (end - span.begin_ns) / 10 + 1;
  app.time.go({span.begin_ns - margin, end + margin}, app.store().end_ns());
  app.follow = false;
}

void open_span_menu(Context& ctx, store::LaneId lane, const store::Span& span, std::optional<Rect> anchor) {
  AppState& app = ctx.app;
  UiState& ui = ctx.ui;
  app.select_span(lane, span);
  const std::string name = shared_name(app.store(), lane.rank, span);
  const TimeRange range{span.begin_ns, store::time_of(app.store(), lane.rank, span).until_ns};
  std::vector<OverlayItem> items;
  items.push_back({"Find all like it", "Ctrl+Shift+F", true, false, [&app, &ui] { find_selected(app, ui); }});
  items.push_back({"Zoom to it", "Z", true, false, [&app, lane, span] { zoom_to_span(app, lane, span); }});
  items.push_back({"Measure it", "", range.length() > 0, false, [&app, range] { app.measured = range; }});
  items.push_back({"Note on it...", "B", true, false, [&ui, range, rank = lane.rank] {
                     ui.note = {};
                     ui.note.begin_ns = range.begin_ns;
                     ui.note.end_ns = range.end_ns;
                     ui.note.rank = rank;
                     ui.open(Dialog::note);
                   }});
  items.push_back({"Copy its name", name, true, false, [&ui, name] { copy(ui, name); }});
  items.push_back({"Hide deeper levels of this lane", "", app.store().depth_count(lane) > span.depth + 1,
                   false, [&app, lane, levels = static_cast<std::uint8_t>(span.depth + 1)] {
                     crop(app.timeline.crops, app.store(), lane, levels);
                   }});
  const std::uint32_t module = module_of(span);
  bool line = true;
  if (module != ev::kNoId) {
    items.push_back({"Go to " + module_name(app.store(), module), "", true, false,
                     [&app, module, rank = lane.rank] { app.select_module(module, rank); },
                     std::exchange(line, false)});
    items.push_back(
        {"Stop at " + module_name(app.store(), module), "breakpoint", true, false, [&app, &ui, module] {
           app.breaks.add(app.store(), {BreakKind::module, module});
           ui.show_panel = "stepper";
         }});
  }
  const std::vector<std::uint32_t> params = params_of(app, lane, span);
  constexpr std::size_t kMostParams = 6;
  for (std::size_t i = 0; i < std::min(params.size(), kMostParams); ++i) {
    items.push_back({"Go to " + param_name(app.store(), params[i]), "", true, false,
                     [&app, param = params[i], rank = lane.rank] { app.select_param(param, rank); },
                     std::exchange(line, false)});
  }
  if (!params.empty())
    items.push_back({"Stop at " + param_name(app.store(), params.front()), "breakpoint", true, false,
                     [&app, &ui, param = params.front()] {
                       app.breaks.add(app.store(), {BreakKind::param, param});
                       ui.show_panel = "stepper";
                     }});
  ctx.menu(anchor.value_or(at_pointer(ctx)), std::move(items));
}

void open_rank_menu(Context& ctx, std::uint32_t rank, std::optional<Rect> anchor) {
  AppState& app = ctx.app;
  UiState& ui = ctx.ui;
  app.select_rank(rank);
  const bool open = app.timeline.expanded.contains(rank);
  std::vector<OverlayItem> items;
  items.push_back({"Find its spans", "Ctrl+Shift+F", true, false, [&app, &ui] { find_selected(app, ui); }});
  items.push_back({open ? "Hide its lanes" : "Show its lanes", "", true, false, [&app, rank, open] {
                     app.timeline.automatic = false;
                     if (open)
                       app.timeline.expanded.erase(rank);
                     else
                       app.timeline.expanded.insert(rank);
                   }});
  items.push_back({"Hide the lanes of all others", "", app.store().ranks().size() > 1, false, [&app, rank] {
                     app.timeline.automatic = false;
                     app.timeline.expanded = {rank};
                   }});
  const bool several = app.store().ranks().size() > 1;
  const auto move = [&app, &ui, rank](int places) {
    if (const std::string stays = move_rank(app, rank, places); !stays.empty()) ui.say(stays);
  };
  items.push_back({"Move up", "Alt+Up", several, false, [move] { move(-1); }, true});
  items.push_back({"Move down", "Alt+Down", several, false, [move] { move(1); }});
  items.push_back({"Ranks by number", "", app.timeline.order != RankOrder::number, false,
                   [&app] { order_ranks(app, RankOrder::number); }});
  items.push_back({"Its memory", "", true, false,
                   [&app, &ui, rank] {
                     app.memory_rank = rank;
                     ui.show_panel = "memory";
                   },
                   true});
  items.push_back({"Use in Stepper", "", app.store().has_gates(rank), false, [&app, &ui, rank] {
                     app.stepper_rank = rank;
                     ui.show_panel = "stepper";
                   }});
  items.push_back(
      {"Copy its name", "", true, false, [&ui, rank] { copy(ui, "rank " + std::to_string(rank)); }});
  ctx.menu(anchor.value_or(at_pointer(ctx)), std::move(items));
}

}  // namespace shardscope::gui
