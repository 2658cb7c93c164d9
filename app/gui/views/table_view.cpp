#include "app/gui/views/table_view.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "app/gui/views/imgui_text.h"

namespace shardscope::gui {
namespace {

constexpr float kHead = 24;

Rgb ink_of(const Palette& c, Tone tone) {
  switch (tone) {
    case Tone::normal:
      return c.text;
    case Tone::muted:
      return c.muted;
    case Tone::good:
      return c.good;
    case Tone::bad:
      return c.of(Meaning::trouble);
    case Tone::warning:
      return c.warning;
    case Tone::accent:
      return c.accent;
  }
  return c.text;
}

void copy(const Table& table, const std::vector<std::size_t>& order, const std::set<std::size_t>& rows) {
  std::vector<std::size_t> chosen;
  for (const std::size_t row : order) {
    if (rows.contains(row)) chosen.push_back(row);
  }
  ImGui::SetClipboardText(tab_separated(table, chosen).c_str());
}

void mark(TableState& state, const std::vector<std::size_t>& order, std::size_t row) {
  const ImGuiIO& io = ImGui::GetIO();
  if (io.KeyShift && !state.marked.empty()) {
    const auto a = std::ranges::find(order, state.last);
    const auto b = std::ranges::find(order, row);
    for (auto at = std::min(a, b); at != order.end() && at <= std::max(a, b); ++at) state.marked.insert(*at);
    return;
  }
  if (io.KeyCtrl) {
    if (!state.marked.erase(row)) state.marked.insert(row);
  } else {
    state.marked = {row};
  }
  state.last = row;
}

/// Column headers with their tooltips; those of numbers are right-aligned.
void heads(Context& ctx, const Table& table) {
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers, kHead);
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (!ImGui::TableSetColumnIndex(static_cast<int>(i))) continue;
    const Column& column = table.columns[i];
    const ImVec2 at = ImGui::GetCursorScreenPos();
    Rect room{at.x, at.y, ImGui::GetContentRegionAvail().x, kHead};
    // ImGui would left-align it, and reserve room for an absent sort arrow.
    ImGui::TableHeader(("##" + column.name).c_str());
    const bool over = ImGui::IsItemHovered();
    if (ImGui::IsItemFocused() && menu_key_pressed()) ImGui::TableOpenContextMenu(static_cast<int>(i));
    if ((ImGui::TableGetColumnFlags(static_cast<int>(i)) & ImGuiTableColumnFlags_IsSorted) != 0) room.w -= 12;
    const bool cut = ctx.canvas.text_in(room, column.name, ctx.colors().muted, Font::small,
                                        column.number ? Align::right : Align::left);
    if (over && (cut || !column.tip.empty())) ctx.tip(column.tip.empty() ? column.name : column.tip);
  }
}

void draw_cell(Context& ctx, const Rect& place, const Column& column, const Cell& cell, bool over) {
  const Palette& c = ctx.colors();
  Rect room = place;
  if (cell.swatch) {
    ctx.canvas.fill({room.x, room.y + (room.h - 10) / 2, 10, 10}, c.of(*cell.swatch), 1, 2);
    room.take_left(16);
  }
  const bool cut = ctx.canvas.text_in(room, cell.text, ink_of(c, cell.tone),
                                      column.number ? Font::mono_small : Font::small,
                                      column.number ? Align::right : Align::left);
  if (!over || !place.contains(ctx.pointer.x, ctx.pointer.y)) return;
  if (!cell.tip.empty())
    ctx.tip(cell.tip);
  else if (cut)
    ctx.tip(cell.text);
}

/// Text columns and custom drawing get the spare width; numbers do not need it.
bool stretches(const Column& column) { return !column.number || column.smallest > 0; }

/// Column widths in points. Headers and numbers are complete; the rest is distributed to texts by weight. If
/// numbers do not fit, the last columns are hidden.
std::vector<float> fitted_widths(Context& ctx, const Table& table, float room) {
  constexpr float kPadding = 12;
  constexpr std::size_t kMeasured = 48;  // rows: the others are about as wide
  const std::size_t count = table.columns.size();
  std::vector<float> widths(count, 0);
  float needed = kPadding;
  float weights = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Column& column = table.columns[i];
    if (column.hidden) continue;
    widths[i] = std::max(column.smallest, ctx.canvas.width(column.name, Font::small) + 4);
    for (std::size_t row = 0; column.number && row < std::min(kMeasured, table.rows.size()); ++row)
      widths[i] = std::max(widths[i], ctx.canvas.width(table.rows[row][i].text, Font::mono_small) + 2);
    widths[i] += kPadding;
    needed += widths[i];
    if (stretches(column)) weights += column.weight;
  }
  for (std::size_t i = count; needed > room && i-- > 1;) {
    if (!table.columns[i].number || widths[i] == 0) continue;
    needed -= std::exchange(widths[i], 0.0F);
    if (stretches(table.columns[i])) weights -= table.columns[i].weight;
  }
  for (std::size_t i = 0; needed < room && i < count; ++i) {
    if (widths[i] > 0 && stretches(table.columns[i]))
      widths[i] += (room - needed) * table.columns[i].weight / weights;
  }
  return widths;
}

/// Applies `widths` until the user has changed a width.
void set_up_columns(const Table& table, const std::vector<float>& widths) {
  ImGuiTable& shown = *ImGui::GetCurrentTable();
  bool as_fitted = true;
  for (int i = 0; i < shown.ColumnsCount; ++i)
    as_fitted &= shown.Columns[i].StretchWeight == shown.Columns[i].InitStretchWeightOrWidth;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    const bool fits = column.hidden || widths[i] > 0;
    const float weight = widths[i] > 0 ? widths[i] : 60;
    ImGui::TableSetupColumn(column.name.c_str(),
                            (column.hidden ? ImGuiTableColumnFlags_DefaultHide : 0) |
                                (fits ? 0 : ImGuiTableColumnFlags_Disabled) |
                                (column.number ? ImGuiTableColumnFlags_PreferSortDescending : 0),
                            weight);
    if (as_fitted) shown.Columns[static_cast<int>(i)].StretchWeight = weight;
  }
}

/// Of a row that has the keyboard: all cells, and the tips of single ones.
void tip_of_row(Context& ctx, const Table& table, std::size_t row) {
  Details details;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const Cell& cell = table.rows[row][i];
    if (details.title.empty() && !cell.text.empty())
      details.title = cell.text;
    else if (!cell.text.empty())
      details.fields.push_back({table.columns[i].name, cell.text, "", ""});
    if (!cell.tip.empty() && details.reason.find(cell.tip) == std::string::npos)
      details.reason += (details.reason.empty() ? "" : "\n") + cell.tip;
  }
  ctx.tip(details);
}

}  // namespace

float table_height(const Table& table, float row_height) {
  return kHead + row_height * static_cast<float>(table.rows.size()) + 2;
}

TableHit draw_table(Context& ctx, const char* id, const Rect& room, const Table& table, TableState& state,
                    const TableOptions& options) {
  TableHit hit;
  if (room.w < 40 || room.h < kHead || table.columns.empty()) return hit;
  ImDrawList* const outside = ctx.canvas.list();
  const bool was_over = ctx.over_window;
  std::erase_if(state.marked, [&](std::size_t row) { return row >= table.rows.size(); });
  ImGui::PushFont(ctx.canvas.fonts().of(Font::small), line_height(Font::small));
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, {6, 0});
  ImGui::SetCursorScreenPos({room.x, room.y});
  constexpr ImGuiTableFlags kFlags =
      ImGuiTableFlags_Resizable | ImGuiTableFlags_Reorderable | ImGuiTableFlags_Hideable |
      ImGuiTableFlags_Sortable | ImGuiTableFlags_SortTristate | ImGuiTableFlags_ScrollY |
      ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_NoBordersInBodyUntilResize |
      ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_PadOuterX;
  bool enter = arrow_enters(id);
  if (ImGui::BeginTable(id, static_cast<int>(table.columns.size()), kFlags, {room.w, room.h})) {
    ctx.enter_window();
    set_up_columns(table, fitted_widths(ctx, table, room.w));
    ImGui::TableSetupScrollFreeze(0, 1);
    heads(ctx, table);
    const ImGuiTableSortSpecs* const sort = ImGui::TableGetSortSpecs();
    const bool sorted = sort != nullptr && sort->SpecsCount > 0;
    state.sorted_column =
        sorted ? std::optional(static_cast<std::size_t>(sort->Specs[0].ColumnIndex)) : std::nullopt;
    state.descending = sorted && sort->Specs[0].SortDirection == ImGuiSortDirection_Descending;
    state.order = sorted_rows(table, state.sorted_column.value_or(SIZE_MAX), state.descending);
    const std::vector<std::size_t>& order = state.order;
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(order.size()), options.row_height);
    if (state.scroll_to) {
      const auto found = std::ranges::find(order, *state.scroll_to);
      if (found != order.end()) {
        const auto at = static_cast<float>(found - order.begin());
        ImGui::SetScrollY(std::max(0.0F, (at - 2) * options.row_height));
      }
      state.scroll_to.reset();
    }
    bool copy_all = false;
    bool copy_marked = false;
    while (clipper.Step()) {
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
        const std::size_t row = order[static_cast<std::size_t>(i)];
        ImGui::TableNextRow(ImGuiTableRowFlags_None, options.row_height);
        ImGui::PushID(static_cast<int>(row));
        bool first = true;
        bool over = false;
        bool by_keyboard = false;
        for (std::size_t column = 0; column < table.columns.size(); ++column) {
          if (!ImGui::TableSetColumnIndex(static_cast<int>(column))) continue;
          const ImVec2 at = ImGui::GetCursorScreenPos();
          const Rect cell{at.x, at.y, ImGui::GetContentRegionAvail().x, options.row_height};
          if (first) {
            first = false;
            if (std::exchange(enter, false)) ImGui::SetKeyboardFocusHere();
            // Selectables extend over half of the spacing on either side.
            ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {ImGui::GetStyle().ItemSpacing.x, 0});
            const bool pressed =
                ImGui::Selectable("##row", options.chosen == row || state.marked.contains(row),
                                  ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap,
                                  {0, options.row_height});
            ImGui::PopStyleVar();
            if (pressed) {
              mark(state, order, row);
              if (!ImGui::GetIO().KeyCtrl && !ImGui::GetIO().KeyShift) hit.clicked = row;
            }
            over = ImGui::IsItemHovered();
            if (over) hit.hovered = row;
            if (ImGui::IsItemFocused() && ImGui::GetCurrentContext()->NavCursorVisible) {
              ctx.ui.keyboard_at = "row " + std::to_string(i);
              by_keyboard = ctx.ui.key_tip.shown();
              if (menu_key_pressed()) ImGui::OpenPopup("##of row");
            }
            if (ImGui::BeginPopupContextItem("##of row")) {
              if (ImGui::MenuItem("Copy row")) {
                if (!state.marked.contains(row)) state.marked = {row};
                copy_marked = true;
              }
              copy_all = ImGui::MenuItem("Copy all rows");
              if (ImGui::MenuItem("Save all rows (CSV)...")) {
                ctx.ui.table_rows = comma_separated(table, order);
                ctx.ui.open(Dialog::save_table);
              }
              ImGui::EndPopup();
            }
          }
          if (options.draw && options.draw(row, column, cell)) continue;
          draw_cell(ctx, cell, table.columns[column], table.rows[row][column], over);
        }
        if (by_keyboard) tip_of_row(ctx, table, row);
        ImGui::PopID();
      }
    }
    copy_marked |= !state.marked.empty() && ImGui::IsWindowFocused() &&
                   ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_C);
    if (copy_marked) copy(table, order, state.marked);
    if (copy_all) copy(table, order, {order.begin(), order.end()});
    ImGui::EndTable();
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
  ctx.canvas.draw_on(outside);
  ctx.over_window = was_over;
  return hit;
}

}  // namespace shardscope::gui
