#include "app/gui/views/compared_tables.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/gui/model/compare_tables.h"
#include "app/gui/views/compared_row.h"

namespace shardscope::gui {
namespace {

/// Enough steps for twelve blocks of an interval.
constexpr std::size_t kSeriesSteps = 96;
/// For parameters, waits and kernels: enough steps for intervals, few enough to read in a frame.
constexpr std::size_t kFewerSteps = 32;

/// The series of times per step that a table shows; nullopt: the table has none.
std::optional<SeriesOf> series_of(ComparedTables::Shown shown) noexcept {
  switch (shown) {
    case ComparedTables::Shown::phases:
      return SeriesOf::phase;
    case ComparedTables::Shown::modules:
      return SeriesOf::module;
    case ComparedTables::Shown::collectives:
      return SeriesOf::collective;
    case ComparedTables::Shown::waits:
      return SeriesOf::wait;
    case ComparedTables::Shown::kernels:
      return SeriesOf::kernel;
    case ComparedTables::Shown::parameters:
      return SeriesOf::parameter;
    default:
      return std::nullopt;
  }
}

std::size_t most_steps(SeriesOf of) noexcept {
  return of == SeriesOf::wait || of == SeriesOf::kernel || of == SeriesOf::parameter ? kFewerSteps
                                                                                     : kSeriesSteps;
}

}  // namespace

Choice ComparedTables::choice() {
  return {
      "table",
      {"figures", "phases", "modules", "waits", "kernels", "parameters", "collectives", "memory", "settings"},
      static_cast<int>(shown_),
      [this](AppState&, int to) { shown_ = static_cast<Shown>(to); }};
}

void ComparedTables::look_at(std::optional<std::uint32_t> rank, bool measured,
                             const std::optional<analysis::StepBounds>& within) {
  measured_ = measured;
  if (rank_ == rank && within_ == within) return;
  rank_ = rank;
  within_ = within;
  for (std::size_t i = 0; i < kTables; ++i)
    if (series_of(static_cast<Shown>(i))) made_[i] = false;
}

/// The change is a bar from the middle: left for less, right for more.
void ComparedTables::figures(Context& ctx, const Rect& room, const analysis::Comparison& comparison) {
  const Palette& c = ctx.colors();
  TableOptions options;
  options.row_height = 26;
  options.draw = [&](std::size_t row, std::size_t column, const Rect& cell) {
    const auto change = change_of(comparison.metrics[row]);
    if (column != 3 || !change) return false;
    const Rgb color = change->in_spread || change->value == 0 ? c.muted
                      : change->better                        ? c.good
                                                              : c.of(Meaning::trouble);
    const float half = std::max(0.0F, (cell.w - 92) / 2);
    const float middle = cell.x + half;
    const auto length = static_cast<float>(std::clamp(change->value / 100, -1.0, 1.0)) * half;
    ctx.canvas.vertical(middle, cell.y + 5, cell.h - 10, c.line);
    const Rect fill{std::min(middle, middle + length), cell.y + 8, std::fabs(length), cell.h - 16};
    ctx.canvas.fill(fill, color, 0.9F);
    if (!change->better && !change->in_spread) ctx.canvas.hatch(fill, c.panel, 0.4F, 5);
    ctx.canvas.text_in({cell.right() - 92, cell.y, 92, cell.h}, change->text,
                       change->in_spread ? c.muted : c.text, Font::mono_small, Align::right);
    if (ctx.hovered(cell)) ctx.tip(tables_[0].rows[row][3].tip);
    return true;
  };
  const TableHit hit = draw_table(ctx, "##compared figures", room, tables_[0], states_[0], options);
  if (hit.clicked) ctx.ui.show_panel = std::string(panel_of_metric(comparison.metrics[*hit.clicked].metric));
}

void ComparedTables::prepare(const AppState& app, const analysis::Comparison& comparison,
                             const ComparedDigests& digests) {
  const auto which = static_cast<std::size_t>(shown_);
  if (made_[which]) return;
  made_[which] = true;
  if (const auto of = series_of(shown_)) {
    series_[which] = compared_series(app.run_a(), *app.run_b(), *of, most_steps(*of), digests, rank_,
                                     within_.value_or(analysis::StepBounds{}));
    tables_[which] = series_table(series_[which], *of, NameCells(app.store()));
    return;
  }
  tables_[which] = shown_ == Shown::figures  ? metric_table(comparison)
                   : shown_ == Shown::memory ? memory_table(app.run_a(), *app.run_b())
                                             : setting_table(comparison.config_changes);
}

const ComparedSeries* ComparedTables::chosen_row() const {
  const auto which = static_cast<std::size_t>(shown_);
  if (!chosen_[which] || !made_[which]) return nullptr;
  for (const ComparedSeries& row : series_[which].rows)
    if (row.name == chosen_[which]->first && row.figure == chosen_[which]->second) return &row;
  return nullptr;
}

void ComparedTables::clicked(Context& ctx, std::size_t row) {
  const auto which = static_cast<std::size_t>(shown_);
  if (const auto of = series_of(shown_)) {
    const ComparedSeries& series = series_[which].rows[row];
    const std::pair<std::string, std::string> key{series.name, series.figure};
    if (chosen_[which] == key) {
      chosen_[which].reset();
      return;
    }
    chosen_[which] = key;
    go_to_compared(ctx, *of, series, rank_);
  } else if (shown_ == Shown::memory) {
    ctx.ui.show_panel = "memory";
  } else if (shown_ == Shown::settings) {
    ctx.ui.show_panel = std::string(panel_of_setting(tables_[which].rows[row].front().text));
  }
}

void ComparedTables::draw(Context& ctx, Rect room, const analysis::Comparison& comparison) {
  const auto which = static_cast<std::size_t>(shown_);
  // Each of these is one value of a whole run, or of all its steps.
  if (measured_ && !series_of(shown_) && shown_ != Shown::settings)
    ctx.canvas.text_in(room.take_top(18),
                       "Of the whole runs: phases, modules, waits, kernels, parameters and collectives can "
                       "be of the measured steps.",
                       ctx.colors().muted, Font::small);
  if (shown_ == Shown::figures) {
    figures(ctx, room, comparison);
    return;
  }
  if (tables_[which].rows.empty()) {
    ctx.canvas.text_in(
        room.take_top(22),
        shown_ == Shown::settings  ? comparison.no_config_changes.c_str()
        : shown_ == Shown::phases  ? "Phases were not recorded in either run."
        : shown_ == Shown::modules ? "Modules were not recorded in either run."
        : shown_ == Shown::waits   ? "Computation waited in neither run."
        : shown_ == Shown::kernels
            ? "Kernels were recorded in neither run: it takes detail kernels, or the records of a GPU."
        : shown_ == Shown::parameters
            ? "No status of a parameter was recorded in either run: it takes stage 3 and detail params."
        : shown_ == Shown::memory ? "Memory was not recorded in both runs."
                                  : "Neither run communicated.",
        ctx.colors().muted, Font::small);
    return;
  }
  constexpr std::array kIds{
      "##figures",          "##compared phases",     "##compared modules",     "##compared waits",
      "##compared kernels", "##compared parameters", "##compared collectives", "##compared memory",
      "##compared settings"};
  TableOptions options;
  if (series_of(shown_)) {
    const std::string of_rank =
        rank_ && shown_ != Shown::collectives ? ", rank " + std::to_string(*rank_) : std::string();
    const std::string steps = within_ ? ", steps " + std::to_string(within_->first) + " to " +
                                            std::to_string(within_->last) + " of the measured range"
                              : measured_ ? ": the measured range has no whole step"
                                          : std::string();
    ctx.canvas.text_in(room.take_top(18), "Median over " + steps_text(series_[which]) + steps + of_rank,
                       ctx.colors().muted, Font::small);
    if (const ComparedSeries* row = chosen_row())
      options.chosen = static_cast<std::size_t>(row - series_[which].rows.data());
  }
  const TableHit hit = draw_table(ctx, kIds[which], room, tables_[which], states_[which], options);
  if (hit.clicked) clicked(ctx, *hit.clicked);
}

}  // namespace shardscope::gui
