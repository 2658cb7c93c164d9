#include "app/gui/model/state_dump.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "app/analysis/foreign_json.h"
#include "app/gui/model/details.h"
#include "app/gui/model/names.h"
#include "app/gui/model/rank_order.h"
#include "app/gui/model/step_of.h"
#include "app/gui/model/what_if.h"

namespace shardscope::gui {
namespace {

const char* word(SelectionKind kind) {
  switch (kind) {
    case SelectionKind::none:
      return "none";
    case SelectionKind::param:
      return "param";
    case SelectionKind::module:
      return "module";
    case SelectionKind::collective:
      return "collective";
    case SelectionKind::wait:
      return "wait";
    case SelectionKind::span:
      return "span";
    case SelectionKind::step:
      return "step";
    case SelectionKind::rank:
      return "rank";
  }
  return "unknown";
}

const char* word(collector::Viewer::Link link) {
  switch (link) {
    case collector::Viewer::Link::connecting:
      return "connecting";
    case collector::Viewer::Link::catching_up:
      return "catching_up";
    case collector::Viewer::Link::live:
      return "live";
    case collector::Viewer::Link::lost:
      return "lost";
    case collector::Viewer::Link::ended:
      return "ended";
  }
  return "unknown";
}

nlohmann::json id(std::uint32_t value) {
  return value == ev::kNoId ? nlohmann::json(nullptr) : nlohmann::json(value);
}

}  // namespace

std::string state_json(const AppState& app, const std::vector<PlacedForDump>& panels, std::uint64_t frames) {
  const Selection& s = app.selection;
  nlohmann::json out;
  out["frames"] = frames;
  out["layout"] = app.layout_name;
  out["theme"] = name_of(app.theme);
  for (const PlacedForDump& panel : panels) {
    out["panels"][panel.name] = {panel.rect.x, panel.rect.y, panel.rect.w, panel.rect.h};
    out["shows"][panel.name] = panel.shows;
    if (panel.focused) out["focus"] = panel.name;
  }
  out["range_ns"] = {app.time.goal().begin_ns, app.time.goal().end_ns};
  out["follow"] = app.follow;
  out["cursor_ns"] = app.cursor_ns ? nlohmann::json(*app.cursor_ns) : nlohmann::json(nullptr);
  out["selection"] = {{"kind", word(s.kind)},          {"rank", id(s.rank)},     {"param", id(s.param)},
                      {"module", id(s.module)},        {"gather", id(s.gather)}, {"step", id(s.step)},
                      {"collective", id(s.collective)}};
  out["expanded_ranks"] = app.timeline.expanded;
  out["hover_ns"] = app.hover_ns ? nlohmann::json(*app.hover_ns) : nlohmann::json(nullptr);
  out["measured_ns"] =
      app.measured ? nlohmann::json({app.measured->begin_ns, app.measured->end_ns}) : nlohmann::json(nullptr);
  out["text_scale"] = app.text_scale;
  out["own_layouts"] = app.own_layouts;
  out["timeline_scroll"] = app.timeline_scroll;
  out["elements"] = {app.elements.begin, app.elements.end};
  if (!app.run) return analysis::to_text(out, 1);
  const store::Store& data = app.store();
  if (s.param != ev::kNoId)
    out["selection"]["name"] = param_name(data, s.param);
  else if (s.module != ev::kNoId)
    out["selection"]["name"] = module_name(data, s.module);
  out["source"] = app.run->source();
  out["live"] = app.run->live();
  out["hidden"] = hidden_text(app.timeline.view);
  out["link"] = word(app.run->link());
  const collector::ControlState control = app.run->control();
  out["control"] = {{"pausing", control.pausing},
                    {"paused", control.paused},
                    {"gate", control.gate},
                    {"lease_left_s", control.lease_left_s},
                    {"note", control.note}};
  out["store"] = {{"revision", data.revision()},     {"events", data.event_count()},
                  {"dropped", data.dropped_count()}, {"ranks", data.ranks().size()},
                  {"steps", data.steps().size()},    {"end_ns", data.end_ns()}};
  const StatusLists lists = status_lists(data, app.stepper_rank, app.now_ns());
  out["status"] = {{"known", lists.known},
                   {"not_available", lists.not_available.size()},
                   {"in_flight", lists.in_flight.size()},
                   {"available", lists.available.size()},
                   {"persistent", lists.persistent.size()}};
  out["hung"] = app.run->current_hang() == nullptr ? std::string() : app.run->current_hang()->headline;
  out["findings"] = app.run->findings().size();
  const Analysis& analysed = *app.run->analysis();
  out["analysis"] = {{"steps", analysed.steps}, {"partial", app.run->partial()}};
  for (const analysis::OpRow& op : analysed.summary.ops)
    out["analysis"]["collectives"][word(op.op)] = op.count;
  out["find"] = {{"words", app.find.words},
                 {"hits", app.find.search.hits()},
                 {"listed", app.find.rows.accepted()},
                 {"counted", app.find.statistics.whole().times.count()},
                 {"groups", app.find.statistics.groups().size()},
                 {"done", app.find.search.done() && app.find.statistics.ready()},
                 {"filtered", !app.find.filter.empty()}};
  out["rank_order"] = rank_order(app);
  out["ranks"] = {{"filter", app.timeline.filter},
                  {"grouping", app.timeline.grouping},
                  {"shown", app.timeline.shown.value_or(std::set<std::uint32_t>{})},
                  {"hides", app.timeline.shown.has_value()}};
  out["rows"] = {{"counters", nlohmann::json::array()}, {"params", nlohmann::json::array()}};
  for (const RowCounter counter : app.timeline.counters) out["rows"]["counters"].push_back(word(counter));
  out["rows"]["sampled"] = app.timeline.sampled;
  out["rows"]["crops"] = crops_line(app.timeline.crops);
  for (const std::uint32_t param : app.timeline.params)
    out["rows"]["params"].push_back(param_name(data, param));
  out["related"] = nlohmann::json::array();
  for (const RelatedRow& row : describe_selection(app).related) out["related"].push_back(row.text);
  out["notes"] = {{"problem", app.notes.problem()}, {"list", nlohmann::json::array()}};
  for (const Note& note : app.notes.notes())
    out["notes"]["list"].push_back({note.begin_ns, note.end_ns, note.text});
  if (app.what_if) {
    const AppState::WhatIfShown& shown = *app.what_if;
    out["what_if"] = {{"values", nlohmann::json::object()},
                      {"playing", shown.playing},
                      {"modelled_ms", shown.modelled_ms},
                      {"changed_ms", shown.changed_ms}};
    for (std::size_t i = 0; i < std::min(shown.values.size(), what_if_settings().size()); ++i)
      out["what_if"]["values"][what_if_settings()[i].key] = shown.values[i];
  }
  out["start_page"] = app.start_page;
  out["letter"] = app.letter_of(*app.run);
  out["other"] = app.other ? nlohmann::json(app.other->source()) : nlohmann::json(nullptr);
  out["gates"] = nlohmann::json::array();
  for (const store::RankRow& row : data.ranks())
    out["gates"].push_back({row.gate.holding, static_cast<int>(row.gate.kind), row.gate.id});
  out["breakpoints"] = {{"list", nlohmann::json::array()},
                        {"playing", app.breaks.playing()},
                        {"stopped", app.breaks.stopped() ? nlohmann::json(app.breaks.stopped()->which)
                                                         : nlohmann::json(nullptr)}};
  for (std::size_t i = 0; i < app.breaks.list().size(); ++i)
    out["breakpoints"]["list"].push_back({app.breaks.text(data, i), app.breaks.list()[i].enabled});
  const auto step = measured_step_of(data.steps(), app.now_ns());
  out["shown_step"] = step ? nlohmann::json(data.steps()[*step].step) : nlohmann::json(nullptr);
  return analysis::to_text(out, 1);
}

bool write_state(const std::string& path, const std::string& json) {
  const std::string beside = path + ".part";
  {
    std::ofstream file(beside, std::ios::trunc);
    file << json << '\n';
    if (!file) return false;
  }
  return std::rename(beside.c_str(), path.c_str()) == 0;
}

}  // namespace shardscope::gui
