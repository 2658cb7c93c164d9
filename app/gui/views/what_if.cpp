// What if: simulates this run with other settings, ranks or links, by a cost model fitted to it; compares
// step time, exposed communication and memory, and opens the result beside the run.
#include "app/gui/model/what_if.h"

#include <imgui_internal.h>
#include <unistd.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "app/analysis/framework.h"
#include "app/gui/model/compare_tables.h"
#include "app/gui/model/format.h"
#include "app/gui/model/plan_counts.h"
#include "app/gui/model/setting_search_run.h"
#include "app/gui/views/imgui_text.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/plots.h"
#include "app/gui/views/table_view.h"
#include "app/gui/views/what_if_bars.h"

namespace shardscope::gui {
namespace {

constexpr float kSettings = 420;
/// Number of rows in links() before the field of other settings, and the height of that field.
constexpr std::size_t kLinkRows = 4;
constexpr float kMoreHeight = 44;

class WhatIfView final : public View {
 public:
  std::string_view name() const override { return "whatif"; }
  std::string_view title() const override { return "What if"; }
  void draw(Context& ctx, Rect room) override;

 private:
  void begin(const AppState& app);
  void settings(Context& ctx, const Rect& room);
  void setting(std::size_t which, const instrumentation::RunTables& tables);
  void links();
  void buttons(Context& ctx);
  void take(const AppState& app, const std::vector<analysis::Change>& changes);
  void search_line(Context& ctx);
  void searched(Context& ctx, Rect room);
  void follow(Context& ctx);
  void result(Context& ctx, Rect room);
  [[nodiscard]] std::int32_t stage() const;
  [[nodiscard]] bool changed() const;

  /// Choices and results of one run. Both runs of a comparison keep theirs.
  struct Kept {
    WhatIfChoice recorded, choice;
    WhatIfRefusals refused;
    WhatIfRun run;
    std::shared_ptr<const WhatIfRun::Outcome> shown;
    SettingSearchRun search;
    std::shared_ptr<const SettingSearchRun::Ended> found;  ///< of which found_table is made
    Table table, plan, found_table;
    TableState state, plan_state, found_state;
    bool playing = false, searching = false;
    bool show_search = false;  ///< show the search's results instead of the last simulation
    double memory_gib = 0, search_began = 0;
  };
  std::map<std::uint64_t, Kept> runs_;  ///< by Session::number()
  Kept* of_ = nullptr;                  ///< of the run that is drawn
  std::uint64_t of_number_ = 0;         ///< its Session::number()
};

std::int32_t WhatIfView::stage() const {
  return of_->choice.values.empty() || of_->choice.values[0].empty()
             ? 0
             : std::atoi(of_->choice.values[0].c_str());
}

bool WhatIfView::changed() const {
  return of_->choice.values != of_->recorded.values || of_->choice.ranks != of_->recorded.ranks ||
         of_->choice.ranks_per_node != of_->recorded.ranks_per_node || of_->choice.link_gb_per_s > 0 ||
         of_->choice.node_link_gb_per_s > 0 || !of_->choice.more.empty();
}

/// From now on of the run that is shown. A closed run's commands are cancelled; its files are kept, as the
/// window may be showing one.
void WhatIfView::begin(const AppState& app) {
  for (auto& [number, kept] : runs_) {
    if (number == app.run->number() || (app.other && number == app.other->number())) continue;
    kept.run.forget();
    kept.search.forget();
    kept.shown.reset();
    kept.found.reset();
    kept.table = kept.plan = kept.found_table = {};
  }
  const auto [kept, added] = runs_.try_emplace(app.run->number());
  of_ = &kept->second;
  of_number_ = app.run->number();
  if (!added) return;
  const instrumentation::RunTables& tables = app.store().tables();
  of_->recorded = of_->choice = as_recorded(tables);
  of_->refused = what_if_refusals(tables);
}

/// A label and its control; a value that differs from the recording has a mark and shows the recorded
/// one.
void WhatIfView::setting(std::size_t which, const instrumentation::RunTables& tables) {
  const std::int32_t stage = this->stage();
  const WhatIfSetting& setting = what_if_settings()[which];
  const std::string& value = of_->choice.values[which];
  const std::string& refused = of_->refused.settings[which];
  const bool used = refused.empty() && stage >= setting.first_stage && stage <= setting.last_stage;
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::AlignTextToFramePadding();
  const bool other = value != of_->recorded.values[which];
  if (other)
    ImGui::TextUnformatted(setting.label);
  else
    ImGui::TextDisabled("%s", setting.label);
  const auto explain = [&] {
    if (!ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) return;
    padded_tip("%s\n%s%s\nrecorded: %s", setting.key, setting.tip,
               used              ? ""
               : refused.empty() ? "\nwithout effect at this stage"
                                 : ("\nnot possible for this run: " + refused).c_str(),
               text_of(setting, of_->recorded.values[which], unset_tip(tables)).c_str());
  };
  explain();
  ImGui::TableNextColumn();
  ImGui::BeginDisabled(!used);
  ImGui::PushID(static_cast<int>(which));
  ImGui::SetNextItemWidth(-FLT_MIN);
  switch (setting.kind) {
    case WhatIfSetting::Kind::on_off: {
      bool on = value == "true";
      ImGui::PushItemFlag(ImGuiItemFlags_MixedValue,
                          used && value != "true" && value != "false");  // neither on nor off is known
      if (ImGui::Checkbox("##on", &on)) set(of_->choice, which, on ? "true" : "false");
      ImGui::PopItemFlag();
      if (!value.empty() && value != "true" && value != "false") {
        ImGui::SameLine();
        ImGui::TextDisabled("differs between groups");
      }
      break;
    }
    case WhatIfSetting::Kind::choice:
      if (ImGui::BeginCombo("##choice", value.c_str())) {
        for (const std::string& choice : setting.choices) {
          if (!ImGui::Selectable(choice.c_str(), choice == value)) continue;
          if (which == 0)
            choose_stage(of_->choice, tables, choice);
          else
            set(of_->choice, which, choice);
        }
        ImGui::EndCombo();
      }
      break;
    case WhatIfSetting::Kind::count: {
      std::int64_t number = std::atoll(value.c_str());
      // Text without conversions as format: ImGui displays it, and edits the number.
      if (ImGui::SliderScalar("##count", ImGuiDataType_S64, &number, &setting.least, &setting.most,
                              as_format(text_of(setting, value, unset_text(tables))).c_str(),
                              ImGuiSliderFlags_Logarithmic | ImGuiSliderFlags_AlwaysClamp))
        set(of_->choice, which, std::to_string(number));
      break;
    }
  }
  explain();
  ImGui::PopID();
  ImGui::EndDisabled();
}

void WhatIfView::links() {
  const auto row = [](const char* label, const char* tip) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::AlignTextToFramePadding();
    ImGui::TextDisabled("%s", label);
    if (ImGui::IsItemHovered()) padded_tip("%s", tip);
    ImGui::TableNextColumn();
    ImGui::SetNextItemWidth(-FLT_MIN);
  };
  const auto tip = [](const std::string& refused, const char* otherwise) {
    return refused.empty() ? std::string(otherwise) : "Not possible for this run: " + refused;
  };
  // A grey control says why it is, as its label does.
  const auto explain = [&](const std::string& refused) {
    if (!refused.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      padded_tip("%s", tip(refused, "").c_str());
  };
  row("ranks", tip(of_->refused.ranks, "Ranks of the changed run").c_str());
  ImGui::BeginDisabled(!of_->refused.ranks.empty());
  int ranks = static_cast<int>(of_->choice.ranks);
  if (ImGui::InputInt("##ranks", &ranks))
    of_->choice.ranks = static_cast<std::uint32_t>(std::clamp(ranks, 1, 4096));
  explain(of_->refused.ranks);
  ImGui::EndDisabled();
  row("ranks per node", tip(of_->refused.ranks, "Ranks that share a node's links").c_str());
  ImGui::BeginDisabled(!of_->refused.ranks.empty());
  int per_node = static_cast<int>(of_->choice.ranks_per_node);
  if (ImGui::InputInt("##per node", &per_node))
    of_->choice.ranks_per_node = static_cast<std::uint32_t>(std::clamp(per_node, 1, 4096));
  explain(of_->refused.ranks);
  ImGui::EndDisabled();
  // Bandwidth and latency, with units in the fields.
  const auto link = [&](const char* id, double& gb_per_s, double& latency_us) {
    ImGui::PushID(id);
    const float half = (ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ItemSpacing.x) / 2;
    ImGui::SetNextItemWidth(half);
    if (ImGui::InputDouble("##bandwidth", &gb_per_s, 0, 0, gb_per_s > 0 ? "%.4g GB/s" : "as fitted"))
      gb_per_s = std::max(0.0, gb_per_s);
    explain(of_->refused.links);
    ImGui::SameLine();
    ImGui::SetNextItemWidth(half);
    if (ImGui::InputDouble("##latency", &latency_us, 0, 0, latency_us > 0 ? "%.4g \xc2\xb5s" : "as fitted"))
      latency_us = std::max(0.0, latency_us);
    explain(of_->refused.links);
    ImGui::PopID();
  };
  row("link in a node",
      tip(of_->refused.links, "Among the ranks of a node, as busbw; 0: as fitted to the recording").c_str());
  ImGui::BeginDisabled(!of_->refused.links.empty());
  link("in a node", of_->choice.link_gb_per_s, of_->choice.link_latency_us);
  ImGui::EndDisabled();
  row("link between nodes",
      tip(of_->refused.links, "Of a node's links to other nodes; 0: as fitted to the recording").c_str());
  ImGui::BeginDisabled(!of_->refused.links.empty());
  link("between nodes", of_->choice.node_link_gb_per_s, of_->choice.node_link_latency_us);
  ImGui::EndDisabled();
  row("other settings",
      tip(of_->refused.run, "KEY=VALUE, one per line, added to the recorded configuration").c_str());
  ImGui::BeginDisabled(!of_->refused.run.empty());
  (void)text_area("##more", of_->choice.more, {-FLT_MIN, kMoreHeight});
  ImGui::EndDisabled();
}

/// Chooses the recorded settings with the changes of a finding.
void WhatIfView::take(const AppState& app, const std::vector<analysis::Change>& changes) {
  of_->choice = of_->recorded;
  change(of_->choice, app.store().tables(), changes);
}

void WhatIfView::buttons(Context& ctx) {
  AppState& app = ctx.app;
  ImGui::Dummy({0, 4});
  ImGui::BeginDisabled(of_->playing || !changed() || !of_->refused.run.empty());
  const bool may_play = !of_->playing && changed() && of_->refused.run.empty();
  const bool play = ctx.offered("Simulate", may_play, "Simulates this run with the chosen settings");
  if (ImGui::Button("Simulate") || play) {
    const std::string out = of_->refused.open_beside.empty() ? temporary_recording("what-if") : std::string();
    of_->show_search = false;
    of_->run.start(
        what_if_arguments(shardscope_program(), app.run->source(), app.store().tables(), of_->choice, out),
        out);
    ctx.moving = true;  // the next frame shows the running state, also without input
  }
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::BeginDisabled(!of_->playing);
  if (ImGui::Button("Stop")) of_->run.cancel();
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::BeginDisabled(!changed());
  if (ImGui::Button("As recorded")) of_->choice = of_->recorded;
  ImGui::EndDisabled();
  ImGui::SameLine();
  const bool result = of_->shown && of_->shown->result && !of_->shown->result->recording.empty();
  ImGui::BeginDisabled(!result || of_->playing);
  const bool open =
      ctx.offered("Open beside the run", result && !of_->playing, "Opens the simulated run as B");
  if ((ImGui::Button("Open beside the run") || open) && result) {
    app.open_request = {
        .source = of_->shown->result->recording, .key_file = {}, .second = true, .temporary = true};
  }
  ImGui::EndDisabled();
  if (!of_->refused.open_beside.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
    padded_tip("%s", of_->refused.open_beside.c_str());
  search_line(ctx);
}

/// Controls of the search for the fastest settings.
void WhatIfView::search_line(Context& ctx) {
  ImGui::Dummy({0, 2});
  ImGui::BeginDisabled(of_->searching || of_->playing || !of_->refused.search.empty());
  const bool search = ctx.offered("Search", !of_->searching && !of_->playing && of_->refused.search.empty(),
                                  "Searches for the fastest settings");
  if (ImGui::Button("Search") || search) {
    of_->search.start(search_arguments(shardscope_program(), ctx.app.run->source(), of_->memory_gib));
    of_->search_began = ctx.seconds;
    of_->show_search = true;
    ctx.moving = true;
  }
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
    padded_tip("%s", of_->refused.search.empty()
                         ? "Simulates up to 150 common changes to the recorded settings and lists the fastest"
                         : ("Not possible for this run: " + of_->refused.search).c_str());
  ImGui::SameLine();
  ImGui::BeginDisabled(!of_->searching);
  if (ImGui::Button("Stop##search")) of_->search.cancel();
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::BeginDisabled(!of_->refused.search.empty());
  ImGui::SetNextItemWidth(-FLT_MIN);
  if (ImGui::InputDouble("##memory", &of_->memory_gib, 0, 0,
                         of_->memory_gib > 0 ? "within %.4g GiB" : "no memory limit"))
    of_->memory_gib = std::max(0.0, of_->memory_gib);
  item_tip("Limit on a rank's device memory, for the search; 0: no limit");
  ImGui::EndDisabled();
}

/// Results of the search; a click chooses a row's settings.
void WhatIfView::searched(Context& ctx, Rect room) {
  const Palette& c = ctx.colors();
  const auto ended = of_->search.ended();
  if (ended != of_->found) {
    of_->found = ended;
    of_->found_table = of_->found && of_->found->outcome ? search_table(*of_->found->outcome) : Table{};
  }
  const auto paragraph = [&](const std::string& text, Rgb color) {
    if (text.empty() || room.h < 16) return;
    room.take_top(ctx.canvas.paragraph({room.x, room.y, room.w, room.h}, text, color, Font::small) + 6);
  };
  if (of_->searching) {
    ctx.empty(room,
              "Searching for the fastest settings: " + decimal(ctx.seconds - of_->search_began, 0) + " s",
              "Up to 150 settings are simulated; each takes as long as one what-if. Stop ends the search "
              "without a result.");
    return;
  }
  if (!of_->found) return;
  if (!of_->found->outcome) {
    ctx.canvas.text_in(room.take_top(24), "The search found nothing", c.of(Meaning::trouble), Font::strong);
    paragraph(of_->found->problem, c.text);
    return;
  }
  const SearchOutcome& outcome = *of_->found->outcome;
  ctx.section(room, "Fastest settings of " + std::to_string(outcome.played) + " simulated");
  paragraph(outcome.verdict, c.text);
  paragraph("Recorded: " + milliseconds(outcome.recorded_ms).text() + " per step, peak " +
                bytes(outcome.recorded_peak_bytes).text() + ". " + error_text(outcome) +
                " Click a row to choose its settings; Simulate compares them.",
            c.muted);
  const TableHit hit =
      draw_table(ctx, "##searched", room.take_top(std::min(room.h, table_height(of_->found_table))),
                 of_->found_table, of_->found_state);
  if (hit.clicked) take(ctx.app, outcome.best[*hit.clicked].changes);
}

void WhatIfView::settings(Context& ctx, const Rect& room) {
  ImGui::PushFont(ctx.canvas.fonts().of(Font::small), line_height(Font::small));
  ImGui::SetCursorScreenPos({room.x, room.y});
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {6, 3});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {6, 4});
  // The buttons are always visible, directly below the settings if all
  // fit.
  const float actions = 2 * (ImGui::GetFrameHeightWithSpacing() + 4) + 4;
  const float padding = 2 * ImGui::GetStyle().CellPadding.y;
  const auto& tables = ctx.app.store().tables();
  const auto offered = std::ranges::count_if(
      what_if_settings(), [&](const WhatIfSetting& one) { return is_offered(one, tables); });
  const auto rows = static_cast<float>(static_cast<std::size_t>(offered) + kLinkRows);
  const float all = rows * (ImGui::GetFrameHeight() + padding) + kMoreHeight + padding + 4;
  const float height = std::clamp(room.h - actions, 60.0F, std::max(60.0F, all));
  // Flattened: arrows and Tab move between settings and buttons.
  if (ImGui::BeginChild("##settings", {room.w, height}, ImGuiChildFlags_NavFlattened)) {
    if (ImGui::BeginTable("##controls", 2, ImGuiTableFlags_SizingStretchProp)) {
      ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch, 0.45F);
      ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch, 0.55F);
      for (std::size_t i = 0; i < what_if_settings().size(); ++i)
        if (is_offered(what_if_settings()[i], tables)) setting(i, tables);
      links();
      ImGui::EndTable();
    }
  }
  ImGui::EndChild();
  ImGui::SetCursorScreenPos({room.x, room.y + height});
  if (ImGui::BeginChild("##actions", {room.w, actions}, ImGuiChildFlags_NavFlattened)) buttons(ctx);
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  ImGui::PopFont();
}

/// Reads the state of both commands once per frame before drawing, so that buttons and figures are
/// consistent; nothing is redrawn after both have ended.
void WhatIfView::follow(Context& ctx) {
  of_->playing = of_->run.running();
  of_->searching = of_->search.running();
  if (of_->playing || of_->searching) ctx.moving = true;
  const auto outcome = of_->run.outcome();
  const bool has_result = outcome && outcome->result;
  ctx.app.what_if = {.values = of_->choice.values,
                     .playing = of_->playing,
                     .modelled_ms = has_result ? outcome->result->modelled_ms : 0,
                     .changed_ms = has_result ? outcome->result->changed_ms : 0};
  if (outcome == of_->shown) return;
  of_->shown = outcome;
  const bool good = of_->shown && of_->shown->result;
  of_->table = good ? metric_table(of_->shown->result->comparison) : Table{};
  // Without intervals, as of an attached run, the figures have the room of their column.
  if (good)
    of_->table.columns.back().hidden = std::ranges::none_of(
        of_->shown->result->comparison.metrics, [](const auto& row) { return row.interval.has_value(); });
  of_->plan = {};
  if (good && !of_->shown->result->counts.empty())
    of_->plan =
        plan_difference(plan_counts(ctx.app.store(), ctx.app.run->summary()), of_->shown->result->counts);
}

void WhatIfView::result(Context& ctx, Rect room) {
  const Palette& c = ctx.colors();
  if (of_->playing) {
    ctx.empty(
        room, "Simulating the run",
        "The model is fitted to the recording, then the recorded and the changed settings are simulated.");
    return;
  }
  const auto paragraph = [&](const std::string& text, Rgb color) {
    if (text.empty() || room.h < 16) return;
    room.take_top(ctx.canvas.paragraph({room.x, room.y, room.w, room.h}, text, color, Font::small) + 6);
  };
  const std::string& framework = ctx.app.store().tables().framework;
  if (!of_->shown && !of_->refused.run.empty()) {
    ctx.empty(room, "What-if is not possible for this run of " + framework,
              of_->refused.run +
                  ". To compare two scripts of yours: shardscope ab --command-a '...' --command-b '...' "
                  "runs both in turns.");
    return;
  }
  if (!of_->shown && !framework.empty()) {
    const bool on_gpu = analysis::has_times_of_host(ctx.app.store().tables());
    ctx.empty(room, "Change a setting, then click Simulate",
              std::string(on_gpu ? "Gathers, buckets and memory are computed with your changes. No times are "
                                   "predicted for a run on a GPU. "
                                 : "The recorded steps are simulated with your changes: the host's own times "
                                   "stay as recorded, gathers, waits and buckets are recomputed. ") +
                  "The tooltip of a grey control says why it is not possible for this run.");
    return;
  }
  if (!of_->shown) {
    ctx.empty(room, "Change a setting, then click Simulate",
              "The recorded run is simulated with your changes; step time, exposed communication and memory "
              "are compared with the recorded settings, simulated the same way.");
    return;
  }
  if (!of_->shown->result) {
    ctx.canvas.text_in(room.take_top(24), "The simulation failed", c.of(Meaning::trouble), Font::strong);
    paragraph(of_->shown->problem, c.text);
    return;
  }
  const WhatIfResult& result = *of_->shown->result;
  if (std::isfinite(result.predicted_ms)) {
    ctx.section(room, "Step time");
    draw_step_times(ctx, room, result);
    room.take_top(4);
  }
  paragraph(result.comparison.verdict, c.text);
  paragraph(result.warnings, c.warning);
  ctx.section(room, "Recorded settings (A) and changed settings (B), both simulated");
  draw_table(ctx, "##what if", room.take_top(std::min(room.h, table_height(of_->table))), of_->table,
             of_->state);
  for (const std::string& change : result.comparison.config_changes) paragraph(change, c.muted);
  if (of_->plan.rows.empty() || room.h < 80) return;
  room.take_top(4);
  ctx.section(room, "What the plan decides differently: recorded settings (A), changed settings (B)");
  draw_table(ctx, "##plan", room.take_top(std::min(room.h, table_height(of_->plan))), of_->plan,
             of_->plan_state);
}

void WhatIfView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  if (!app.run->recorded() || !app.store().has_tables()) {
    const bool no_file = !app.run->recorded();
    ctx.empty(room, no_file ? "What-if needs a recording" : "This recording has no description of its run",
              no_file ? "Record the run (shardscope record, or run --record), end it and open the recording."
                      : "Its tables are missing: there are no settings to change.");
    return;
  }
  if (of_number_ != app.run->number()) begin(app);
  if (app.what_if_changes) take(app, *std::exchange(app.what_if_changes, std::nullopt));
  follow(ctx);
  room = {room.x + 12, room.y + 4, room.w - 24, room.h - 12};
  if (room.w > 760) {
    settings(ctx, room.take_left(kSettings));
    room.take_left(24);
    of_->show_search ? searched(ctx, room) : result(ctx, room);
    return;
  }
  settings(ctx, room.take_top(room.h * 0.55F));
  room.take_top(8);
  of_->show_search ? searched(ctx, room) : result(ctx, room);
}

}  // namespace

std::unique_ptr<View> make_what_if_view() { return std::make_unique<WhatIfView>(); }

}  // namespace shardscope::gui
