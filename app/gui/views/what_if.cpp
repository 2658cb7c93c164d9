// What if: simulates this run with other settings, ranks or links, by a cost model fitted to it; compares
// step time, exposed communication and memory, and opens the result beside the run.
#include "app/gui/model/what_if.h"

#include <imgui_internal.h>
#include <unistd.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
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
  void begin(const Session& run);
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

  std::uint64_t of_ = 0;  ///< Session::number() of the choices and results
  WhatIfChoice recorded_, choice_;
  WhatIfRefusals refused_;
  WhatIfRun run_;
  std::shared_ptr<const WhatIfRun::Outcome> shown_;
  Table table_, plan_;
  TableState state_, plan_state_;
  SettingSearchRun search_;
  std::shared_ptr<const SettingSearchRun::Ended> found_;  ///< of which found_table_ is made
  Table found_table_;
  TableState found_state_;
  bool playing_ = false, searching_ = false;
  bool show_search_ = false;  ///< show the search's results instead of the last simulation
  double memory_gib_ = 0, search_began_ = 0;
};

std::int32_t WhatIfView::stage() const {
  return choice_.values.empty() || choice_.values[0].empty() ? 0 : std::atoi(choice_.values[0].c_str());
}

bool WhatIfView::changed() const {
  return choice_.values != recorded_.values || choice_.ranks != recorded_.ranks ||
         choice_.ranks_per_node != recorded_.ranks_per_node || choice_.link_gb_per_s > 0 ||
         choice_.node_link_gb_per_s > 0 || !choice_.more.empty();
}

/// Resets choices and results for another run.
void WhatIfView::begin(const Session& run) {
  of_ = run.number();
  recorded_ = choice_ = as_recorded(run.store().tables());
  refused_ = what_if_refusals(run.store().tables());
  run_.forget();
  search_.forget();
  show_search_ = false;
}

/// A label and its control; a value that differs from the recording has a mark and shows the recorded
/// one.
void WhatIfView::setting(std::size_t which, const instrumentation::RunTables& tables) {
  const std::int32_t stage = this->stage();
  const WhatIfSetting& setting = what_if_settings()[which];
  const std::string& value = choice_.values[which];
  const std::string& refused = refused_.settings[which];
  const bool used = refused.empty() && stage >= setting.first_stage && stage <= setting.last_stage;
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::AlignTextToFramePadding();
  const bool other = value != recorded_.values[which];
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
               text_of(setting, recorded_.values[which], unset_tip(tables)).c_str());
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
      if (ImGui::Checkbox("##on", &on)) set(choice_, which, on ? "true" : "false");
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
            choose_stage(choice_, tables, choice);
          else
            set(choice_, which, choice);
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
        set(choice_, which, std::to_string(number));
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
  row("ranks", tip(refused_.ranks, "Ranks of the changed run").c_str());
  ImGui::BeginDisabled(!refused_.ranks.empty());
  int ranks = static_cast<int>(choice_.ranks);
  if (ImGui::InputInt("##ranks", &ranks))
    choice_.ranks = static_cast<std::uint32_t>(std::clamp(ranks, 1, 4096));
  explain(refused_.ranks);
  ImGui::EndDisabled();
  row("ranks per node", tip(refused_.ranks, "Ranks that share a node's links").c_str());
  ImGui::BeginDisabled(!refused_.ranks.empty());
  int per_node = static_cast<int>(choice_.ranks_per_node);
  if (ImGui::InputInt("##per node", &per_node))
    choice_.ranks_per_node = static_cast<std::uint32_t>(std::clamp(per_node, 1, 4096));
  explain(refused_.ranks);
  ImGui::EndDisabled();
  // Bandwidth and latency, with units in the fields.
  const auto link = [&](const char* id, double& gb_per_s, double& latency_us) {
    ImGui::PushID(id);
    const float half = (ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ItemSpacing.x) / 2;
    ImGui::SetNextItemWidth(half);
    if (ImGui::InputDouble("##bandwidth", &gb_per_s, 0, 0, gb_per_s > 0 ? "%.4g GB/s" : "as fitted"))
      gb_per_s = std::max(0.0, gb_per_s);
    explain(refused_.links);
    ImGui::SameLine();
    ImGui::SetNextItemWidth(half);
    if (ImGui::InputDouble("##latency", &latency_us, 0, 0, latency_us > 0 ? "%.4g \xc2\xb5s" : "as fitted"))
      latency_us = std::max(0.0, latency_us);
    explain(refused_.links);
    ImGui::PopID();
  };
  row("link in a node",
      tip(refused_.links, "Among the ranks of a node, as busbw; 0: as fitted to the recording").c_str());
  ImGui::BeginDisabled(!refused_.links.empty());
  link("in a node", choice_.link_gb_per_s, choice_.link_latency_us);
  ImGui::EndDisabled();
  row("link between nodes",
      tip(refused_.links, "Of a node's links to other nodes; 0: as fitted to the recording").c_str());
  ImGui::BeginDisabled(!refused_.links.empty());
  link("between nodes", choice_.node_link_gb_per_s, choice_.node_link_latency_us);
  ImGui::EndDisabled();
  row("other settings",
      tip(refused_.run, "KEY=VALUE, one per line, added to the recorded configuration").c_str());
  ImGui::BeginDisabled(!refused_.run.empty());
  (void)text_area("##more", choice_.more, {-FLT_MIN, kMoreHeight});
  ImGui::EndDisabled();
}

/// Chooses the recorded settings with the changes of a finding.
void WhatIfView::take(const AppState& app, const std::vector<analysis::Change>& changes) {
  choice_ = recorded_;
  change(choice_, app.store().tables(), changes);
}

void WhatIfView::buttons(Context& ctx) {
  AppState& app = ctx.app;
  ImGui::Dummy({0, 4});
  ImGui::BeginDisabled(playing_ || !changed() || !refused_.run.empty());
  const bool may_play = !playing_ && changed() && refused_.run.empty();
  const bool play = ctx.offered("Simulate", may_play, "Simulates this run with the chosen settings");
  if (ImGui::Button("Simulate") || play) {
    const std::string out = refused_.open_beside.empty() ? temporary_recording("what-if") : std::string();
    show_search_ = false;
    run_.start(what_if_arguments(shardscope_program(), app.run->source(), app.store().tables(), choice_, out),
               out);
    ctx.moving = true;  // the next frame shows the running state, also without input
  }
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::BeginDisabled(!playing_);
  if (ImGui::Button("Stop")) run_.cancel();
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::BeginDisabled(!changed());
  if (ImGui::Button("As recorded")) choice_ = recorded_;
  ImGui::EndDisabled();
  ImGui::SameLine();
  const bool result = shown_ && shown_->result && !shown_->result->recording.empty();
  ImGui::BeginDisabled(!result || playing_);
  const bool open = ctx.offered("Open beside the run", result && !playing_, "Opens the simulated run as B");
  if ((ImGui::Button("Open beside the run") || open) && result) {
    app.open_request = {
        .source = shown_->result->recording, .key_file = {}, .second = true, .temporary = true};
  }
  ImGui::EndDisabled();
  if (!refused_.open_beside.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
    padded_tip("%s", refused_.open_beside.c_str());
  search_line(ctx);
}

/// Controls of the search for the fastest settings.
void WhatIfView::search_line(Context& ctx) {
  ImGui::Dummy({0, 2});
  ImGui::BeginDisabled(searching_ || playing_ || !refused_.search.empty());
  const bool search = ctx.offered("Search", !searching_ && !playing_ && refused_.search.empty(),
                                  "Searches for the fastest settings");
  if (ImGui::Button("Search") || search) {
    search_.start(search_arguments(shardscope_program(), ctx.app.run->source(), memory_gib_));
    search_began_ = ctx.seconds;
    show_search_ = true;
    ctx.moving = true;
  }
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
    padded_tip("%s", refused_.search.empty()
                         ? "Simulates up to 150 common changes to the recorded settings and lists the fastest"
                         : ("Not possible for this run: " + refused_.search).c_str());
  ImGui::SameLine();
  ImGui::BeginDisabled(!searching_);
  if (ImGui::Button("Stop##search")) search_.cancel();
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::BeginDisabled(!refused_.search.empty());
  ImGui::SetNextItemWidth(-FLT_MIN);
  if (ImGui::InputDouble("##memory", &memory_gib_, 0, 0,
                         memory_gib_ > 0 ? "within %.4g GiB" : "no memory limit"))
    memory_gib_ = std::max(0.0, memory_gib_);
  item_tip("Limit on a rank's device memory, for the search; 0: no limit");
  ImGui::EndDisabled();
}

/// Results of the search; a click chooses a row's settings.
void WhatIfView::searched(Context& ctx, Rect room) {
  const Palette& c = ctx.colors();
  const auto ended = search_.ended();
  if (ended != found_) {
    found_ = ended;
    found_table_ = found_ && found_->outcome ? search_table(*found_->outcome) : Table{};
  }
  const auto paragraph = [&](const std::string& text, Rgb color) {
    if (text.empty() || room.h < 16) return;
    room.take_top(ctx.canvas.paragraph({room.x, room.y, room.w, room.h}, text, color, Font::small) + 6);
  };
  if (searching_) {
    ctx.empty(room, "Searching for the fastest settings: " + decimal(ctx.seconds - search_began_, 0) + " s",
              "Up to 150 settings are simulated; each takes as long as one what-if. Stop ends the search "
              "without a result.");
    return;
  }
  if (!found_) return;
  if (!found_->outcome) {
    ctx.canvas.text_in(room.take_top(24), "The search found nothing", c.of(Meaning::trouble), Font::strong);
    paragraph(found_->problem, c.text);
    return;
  }
  const SearchOutcome& outcome = *found_->outcome;
  ctx.section(room, "Fastest settings of " + std::to_string(outcome.played) + " simulated");
  paragraph(outcome.verdict, c.text);
  paragraph("Recorded: " + milliseconds(outcome.recorded_ms).text() + " per step, peak " +
                bytes(outcome.recorded_peak_bytes).text() + ". " + error_text(outcome) +
                " Click a row to choose its settings; Simulate compares them.",
            c.muted);
  const TableHit hit =
      draw_table(ctx, "##searched", room.take_top(std::min(room.h, table_height(found_table_))), found_table_,
                 found_state_);
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
  playing_ = run_.running();
  searching_ = search_.running();
  if (playing_ || searching_) ctx.moving = true;
  const auto outcome = run_.outcome();
  const bool has_result = outcome && outcome->result;
  ctx.app.what_if = {.values = choice_.values,
                     .playing = playing_,
                     .modelled_ms = has_result ? outcome->result->modelled_ms : 0,
                     .changed_ms = has_result ? outcome->result->changed_ms : 0};
  if (outcome == shown_) return;
  shown_ = outcome;
  const bool good = shown_ && shown_->result;
  table_ = good ? metric_table(shown_->result->comparison) : Table{};
  // Without intervals, as of an attached run, the figures have the room of their column.
  if (good)
    table_.columns.back().hidden = std::ranges::none_of(
        shown_->result->comparison.metrics, [](const auto& row) { return row.interval.has_value(); });
  plan_ = {};
  if (good && !shown_->result->counts.empty())
    plan_ = plan_difference(plan_counts(ctx.app.store(), ctx.app.run->summary()), shown_->result->counts);
}

void WhatIfView::result(Context& ctx, Rect room) {
  const Palette& c = ctx.colors();
  if (playing_) {
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
  if (!shown_ && !refused_.run.empty()) {
    ctx.empty(room, "What-if is not possible for this run of " + framework,
              refused_.run +
                  ". To compare two scripts of yours: shardscope ab --command-a '...' --command-b '...' "
                  "runs both in turns.");
    return;
  }
  if (!shown_ && !framework.empty()) {
    const bool on_gpu = analysis::has_times_of_host(ctx.app.store().tables());
    ctx.empty(room, "Change a setting, then click Simulate",
              std::string(on_gpu ? "Gathers, buckets and memory are computed with your changes. No times are "
                                   "predicted for a run on a GPU. "
                                 : "The recorded steps are simulated with your changes: the host's own times "
                                   "stay as recorded, gathers, waits and buckets are recomputed. ") +
                  "The tooltip of a grey control says why it is not possible for this run.");
    return;
  }
  if (!shown_) {
    ctx.empty(room, "Change a setting, then click Simulate",
              "The recorded run is simulated with your changes; step time, exposed communication and memory "
              "are compared with the recorded settings, simulated the same way.");
    return;
  }
  if (!shown_->result) {
    ctx.canvas.text_in(room.take_top(24), "The simulation failed", c.of(Meaning::trouble), Font::strong);
    paragraph(shown_->problem, c.text);
    return;
  }
  const WhatIfResult& result = *shown_->result;
  if (std::isfinite(result.predicted_ms)) {
    ctx.section(room, "Step time");
    draw_step_times(ctx, room, result);
    room.take_top(4);
  }
  paragraph(result.comparison.verdict, c.text);
  paragraph(result.warnings, c.warning);
  ctx.section(room, "Recorded settings (A) and changed settings (B), both simulated");
  draw_table(ctx, "##what if", room.take_top(std::min(room.h, table_height(table_))), table_, state_);
  for (const std::string& change : result.comparison.config_changes) paragraph(change, c.muted);
  if (plan_.rows.empty() || room.h < 80) return;
  room.take_top(4);
  ctx.section(room, "What the plan decides differently: recorded settings (A), changed settings (B)");
  draw_table(ctx, "##plan", room.take_top(std::min(room.h, table_height(plan_))), plan_, plan_state_);
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
  if (of_ != app.run->number()) begin(*app.run);
  if (app.what_if_changes) take(app, *std::exchange(app.what_if_changes, std::nullopt));
  follow(ctx);
  room = {room.x + 12, room.y + 4, room.w - 24, room.h - 12};
  if (room.w > 760) {
    settings(ctx, room.take_left(kSettings));
    room.take_left(24);
    show_search_ ? searched(ctx, room) : result(ctx, room);
    return;
  }
  settings(ctx, room.take_top(room.h * 0.55F));
  room.take_top(8);
  show_search_ ? searched(ctx, room) : result(ctx, room);
}

}  // namespace

std::unique_ptr<View> make_what_if_view() { return std::make_unique<WhatIfView>(); }

}  // namespace shardscope::gui
