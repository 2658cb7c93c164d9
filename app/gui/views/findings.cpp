// Findings: problems of the run with their cost, where to look, what to change, and the predicted
// gain.
#include <algorithm>

#include "app/gui/model/finding_detail.h"
#include "app/gui/model/finding_place.h"
#include "app/gui/model/format.h"
#include "app/gui/model/labelled_run.h"
#include "app/gui/views/imgui_text.h"
#include "app/gui/views/panels.h"
#include "app/gui/views/table_view.h"
#include "app/gui/views/theme.h"

namespace shardscope::gui {
namespace {

constexpr float kFindingRow = 42;

class FindingsView final : public View {
 public:
  std::string_view name() const override { return "findings"; }
  std::string_view title() const override { return "Findings"; }
  RunsOf runs() const override { return RunsOf::both; }
  bool analysed() const override { return true; }
  void draw(Context& ctx, Rect room) override;

 private:
  struct Row {
    const analysis::Finding* finding;
    LabelledRun of;
  };
  void build(const AppState& app);
  bool draw_cell(Context& ctx, std::size_t row, std::size_t column, const Rect& cell) const;
  void choose(std::size_t row);
  void detail(Context& ctx, const Rect& room, const Row& row) const;
  void figures(Context& ctx, const Row& row) const;
  [[nodiscard]] float height_of(Context& ctx, float width) const;
  [[nodiscard]] std::string gain_of(const Row& row) const;
  void go_to(Context& ctx, const Row& row) const;

  std::shared_ptr<const Analysis> of_shown_, of_other_;  ///< analyses of which the table is made
  Table table_;
  std::vector<Row> rows_;
  TableState state_;
  std::size_t chosen_ = 0;
  std::string chosen_id_;  ///< id of the chosen finding: its row may change with the list
  std::uint32_t chosen_rank_ = ev::kNoId;
  std::uint64_t chosen_run_ = 0;  ///< Session::number()
  FindingDetail detail_;          ///< of the chosen finding
};

Rgb color_of(const Palette& c, ev::Severity severity) {
  return severity == ev::Severity::error     ? c.of(Meaning::trouble)
         : severity == ev::Severity::warning ? c.warning
                                             : c.accent;
}

/// Shape as a second sign of the severity beside colour.
void severity_mark(Canvas& canvas, const Palette& c, ev::Severity severity, float x, float y) {
  const Rgb color = color_of(c, severity);
  if (severity == ev::Severity::info)
    canvas.disc(x, y, 4, color);
  else if (severity == ev::Severity::warning)
    canvas.triangle(x - 5, y + 4, x + 5, y + 4, x, y - 5, color);
  else
    canvas.fill({x - 4, y - 4, 8, 8}, color);
}

/// Sort order: cost per step, then single costs, then bytes.
Cell cost_cell(const analysis::Finding& finding) {
  if (finding.cost_ms) return number_cell(1e12 + *finding.cost_ms, milliseconds(finding.cost_ms).text());
  if (finding.cost_once_ms)
    return {milliseconds(finding.cost_once_ms).text() + " once", *finding.cost_once_ms, Tone::muted, {}, ""};
  if (finding.cost_bytes)
    return number_cell(1e-15 * static_cast<double>(*finding.cost_bytes), bytes(*finding.cost_bytes).text());
  return {};
}

void FindingsView::choose(std::size_t row) {
  chosen_ = row;
  const Row& chosen = rows_[row];
  chosen_id_ = chosen.finding->id;
  chosen_rank_ = chosen.finding->rank;
  chosen_run_ = chosen.of.run->number();
  detail_ = detail_of(chosen.of.run->store(), *chosen.finding);
}

void FindingsView::build(const AppState& app) {
  of_shown_ = app.run->analysis();
  of_other_ = app.other ? app.other->analysis() : nullptr;
  const std::vector<LabelledRun> runs = labelled_runs(app);
  table_ = {};
  table_.columns = {{.name = "", .weight = 0.001F, .smallest = 12},
                    {.name = "finding", .weight = 1, .smallest = 200}};
  table_.columns.push_back(
      {"cost", 0.05F, true, "Time per typical step; time once; or bytes, where it costs no time"});
  table_.columns.push_back({"rank", 0.05F, true});
  table_.columns.push_back({"step", 0.05F, true});
  table_.columns.push_back({"time", 0.05F, true, "Since the run's first event"});
  if (runs.size() > 1) table_.columns.push_back({"run", 0.08F});
  rows_.clear();
  for (const LabelledRun& of : runs) {
    for (const analysis::Finding& finding : of.run->findings()) {
      rows_.push_back({&finding, of});
      const auto step = step_of(of.run->store(), finding);
      const bool ranked = finding.rank != ev::kNoId;
      table_.add(
          {{severity_word(finding.severity), static_cast<double>(finding.severity), Tone::normal, {}, ""},
           {finding.title, {}, Tone::normal, {}, ""},
           cost_cell(finding),
           ranked ? number_cell(finding.rank, std::to_string(finding.rank))
                  : Cell{"all", -1.0, Tone::muted, {}, ""},
           step ? number_cell(*step, std::to_string(*step)) : Cell{"all", -1.0, Tone::muted, {}, ""},
           finding.placed()
               ? number_cell(static_cast<double>(finding.at_ns), timestamp(finding.at_ns, 1'000'000))
               : Cell{"whole run", -1.0, Tone::muted, {}, ""},
           {of.letter, {}, Tone::normal, {}, ""}});
    }
  }
  if (rows_.empty()) return;
  // Find the chosen finding again in the new list.
  const auto same = std::ranges::find_if(rows_, [&](const Row& row) {
    return row.of.run->number() == chosen_run_ && row.finding->id == chosen_id_ &&
           row.finding->rank == chosen_rank_;
  });
  choose(same != rows_.end() ? static_cast<std::size_t>(same - rows_.begin())
                             : std::min(chosen_, rows_.size() - 1));
}

bool FindingsView::draw_cell(Context& ctx, std::size_t row, std::size_t column, const Rect& cell) const {
  if (column > 1 && column < 6) return false;
  const Palette& c = ctx.colors();
  const analysis::Finding& finding = *rows_[row].finding;
  if (column == 0) {
    severity_mark(ctx.canvas, c, finding.severity, cell.x + 6, cell.y + 13);
  } else if (column == 6) {
    const Rect mark{cell.x, cell.y + (cell.h - 10) / 2, 10, 10};
    ctx.canvas.fill(mark, c.runs[index_of(rows_[row].of.letter)], 1, 2);
    ctx.canvas.text_in({mark.right() + 6, cell.y, cell.w, cell.h}, rows_[row].of.letter, c.text);
  } else {
    Rect room = cell;
    room.take_top(3);
    ctx.canvas.text_in(room.take_top(18), finding.title, c.text, Font::strong);
    ctx.canvas.text_in(room.take_top(16), finding.evidence, mix(c.muted, c.text, 0.5F), Font::small);
  }
  return true;
}

/// Details of a finding: cost, next step, settings to change and predicted gain.
void FindingsView::detail(Context& ctx, const Rect& room, const Row& row) const {
  const Palette& c = ctx.colors();
  const analysis::Finding& finding = *row.finding;
  ctx.canvas.horizontal(room.x, room.y, room.w, c.line);
  const FontScope small(ctx.canvas.fonts(), Font::small);
  ImGui::SetCursorScreenPos({room.x, room.y + 6});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {8, 4});
  if (ImGui::BeginChild("##finding", {room.w, room.h - 6}, ImGuiChildFlags_NavFlattened)) {
    ImGui::PushTextWrapPos(0);
    {
      const FontScope strong(ctx.canvas.fonts(), Font::strong);
      ImGui::TextUnformatted(finding.title.c_str());
    }
    ImGui::PushStyleColor(ImGuiCol_Text, ink(mix(c.muted, c.text, 0.6F)));
    ImGui::TextUnformatted(finding.evidence.c_str());
    ImGui::PopStyleColor();
    ImGui::PopTextWrapPos();
    figures(ctx, row);
  }
  ImGui::EndChild();
  ImGui::PopStyleVar();
}

void FindingsView::figures(Context& ctx, const Row& row) const {
  const analysis::Finding& finding = *row.finding;
  const FindingDetail& detail = detail_;
  if (!ImGui::BeginTable("##figures", 2)) return;
  ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthFixed, 64);
  ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch);
  const auto line = [&](const char* label) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextDisabled("%s", label);
    ImGui::TableNextColumn();
  };
  const auto text_line = [&](const char* label, const std::string& text) {
    if (text.empty()) return;
    line(label);
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(text.c_str());
    ImGui::PopTextWrapPos();
  };
  const auto copy = [&](const std::string& text, const char* tip) {
    // Beside the text if it fits, else below it.
    const ImGuiStyle& style = ImGui::GetStyle();
    const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
    const float needed = style.ItemSpacing.x + ImGui::CalcTextSize("Copy").x + 2 * style.FramePadding.x;
    if (ImGui::GetItemRectMax().x + needed <= right) ImGui::SameLine();
    if (ImGui::SmallButton("Copy")) {
      ImGui::SetClipboardText(text.c_str());
      ctx.ui.say("Copied: " + text);
    }
    item_tip("%s\n%s", tip, text.c_str());
  };
  text_line("Cost", detail.cost);
  text_line("Next", finding.next_step);
  for (std::size_t i = 0; i < detail.changes.size(); ++i) {
    const FindingDetail::Change& change = detail.changes[i];
    line(i == 0 ? "Change" : "");
    ImGui::PushID(static_cast<int>(i));
    {
      const FontScope mono(ctx.canvas.fonts(), Font::mono_small);
      ImGui::PushTextWrapPos(0);
      ImGui::TextUnformatted((change.key + ": " + change.now + " \u2192 " + change.then).c_str());
      ImGui::PopTextWrapPos();
    }
    copy("--set " + change.option, "Option for run and what-if:");
    ImGui::PopID();
  }
  text_line("Gain", gain_of(row));
  for (std::size_t i = 0; i < detail.explains.size(); ++i)
    text_line(i == 0 ? "Explains" : "", detail.explains[i]);
  if (!detail.page.empty()) {
    line("Page");
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(detail.page.c_str());
    ImGui::PopTextWrapPos();
    copy(detail.page, "What it means, how it is found and what was measured, in Shardscope's documentation:");
  }
  if (!detail.changes.empty()) {
    line("");
    AppState& app = ctx.app;
    const bool possible = row.of.run->recorded();
    ImGui::BeginDisabled(!possible);
    if (ImGui::Button("Try in What if")) {
      ctx.ui.show_panel = "whatif";
      app.show_run(*row.of.run);
      app.what_if_changes = finding.changes;
    }
    ImGui::EndDisabled();
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) {
      padded_tip("%s", possible ? "Opens the panel What if with these settings changed; click Simulate there"
                                : "What if needs a recording: record the run and open the recording");
    }
  }
  ImGui::EndTable();
}

/// The predicted gain of the changes, or why it is unknown.
std::string FindingsView::gain_of(const Row& row) const {
  if (row.finding->options.empty()) return detail_.gain;
  return advice_words(*row.of.run);
}

/// Height of the complete detail.
float FindingsView::height_of(Context& ctx, float width) const {
  constexpr float kChangeLine = 21;
  const analysis::Finding& finding = *rows_[chosen_].finding;
  const auto lines = [&](const std::string& text, float indent) {
    return text.empty() ? 0.0F : ctx.canvas.paragraph_height(width - indent, text, Font::small) + 4;
  };
  float height = 40 + lines(finding.evidence, 16) + lines(detail_.cost, 96) + lines(finding.next_step, 96) +
                 lines(gain_of(rows_[chosen_]), 96) + lines(detail_.page, 96);
  for (const std::string& follower : detail_.explains) height += lines(follower, 96);
  return height + kChangeLine * static_cast<float>(detail_.changes.size()) +
         (detail_.changes.empty() ? 0 : 28);
}

void FindingsView::go_to(Context& ctx, const Row& row) const {
  ctx.app.show_run(*row.of.run);
  ctx.app.show_finding(*row.finding);
  ctx.ui.show_panel = panel_of(*row.finding);
}

void FindingsView::draw(Context& ctx, Rect room) {
  AppState& app = ctx.app;
  // Pictures show what is known when they are taken.
  for (Session* run : {app.run.get(), app.other.get()}) {
    if (run != nullptr && run->in_window()) run->ask_what_if();
  }
  const auto other = app.other ? app.other->analysis() : nullptr;
  if (of_shown_ != app.run->analysis() || of_other_ != other) build(app);
  if (rows_.empty()) {
    const std::string partial = app.run->partial();
    const bool ended = app.run->recorded();
    ctx.empty(room,
              app.run->summary().steps == 0 ? (ended ? "No findings" : "No findings yet")
              : partial.empty()             ? "No problems found"
                                            : "No problems found so far; " + partial,
              app.run->summary().steps == 0
                  ? (ended ? "They are about completed steps, and this recording has none."
                           : "Findings appear after the first completed steps.")
                  : findings_looked_for(app.store().recorded_detail()));
    return;
  }
  room = {room.x + 12, room.y, room.w - 24, room.h - 6};
  Rect below;
  if (room.h > 150) {
    // Right below the table where that is short.
    const float detail_height = std::min(height_of(ctx, room.w), room.h * 0.55F);
    const Rect table =
        room.take_top(std::min(table_height(table_, kFindingRow) + 12, room.h - detail_height));
    below = room.take_top(detail_height);
    room = table;
  }
  TableOptions options;
  options.chosen = chosen_;
  options.row_height = kFindingRow;
  options.draw = [&](std::size_t row, std::size_t column, const Rect& cell) {
    return draw_cell(ctx, row, column, cell);
  };
  const TableHit hit = draw_table(ctx, "##findings", room, table_, state_, options);
  if (hit.clicked) {
    choose(*hit.clicked);
    go_to(ctx, rows_[chosen_]);
  }
  if (!below.empty()) detail(ctx, below, rows_[chosen_]);
}

}  // namespace

std::unique_ptr<View> make_findings_view() { return std::make_unique<FindingsView>(); }

}  // namespace shardscope::gui
