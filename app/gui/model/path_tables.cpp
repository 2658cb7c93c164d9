#include "app/gui/model/path_tables.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "app/gui/model/format.h"

namespace shardscope::gui {
namespace {

using analysis::PathPart;

std::optional<double> mean_of(const std::vector<std::pair<std::string, double>>& means, PathPart part) {
  const auto found =
      std::ranges::find(means, analysis::name_of(part), &std::pair<std::string, double>::first);
  return found == means.end() ? std::nullopt : std::optional(found->second);
}

Cell part_cell(PathPart part) { return {analysis::label_of(part), {}, Tone::normal, meaning_of(part), ""}; }

}  // namespace

Meaning meaning_of(PathPart part) noexcept {
  switch (part) {
    case PathPart::forward:
    case PathPart::backward:
    case PathPart::compute:
      return Meaning::compute;
    case PathPart::optimizer:
    case PathPart::cpu_optimizer:
      return Meaning::optimizer;
    case PathPart::transfer:
      return kExposedComm;
    case PathPart::copy:
      return kExposedCopy;
    case PathPart::data:
      return Meaning::trouble;
    case PathPart::checkpoint:
      return Meaning::copy;
    case PathPart::idle:
    case PathPart::unrecorded:
    case PathPart::paused:
      break;
  }
  return Meaning::neutral;
}

std::vector<PathRow> path_rows(const analysis::Summary& summary) {
  std::vector<PathRow> out;
  if (!summary.critical_path) return out;
  double whole = 0;
  for (const auto& [part, mean_ms] : summary.critical_path->ms_per_step) whole += mean_ms;
  for (std::size_t number = 0; number < analysis::kPathParts; ++number) {
    const auto part = static_cast<PathPart>(number);
    const auto mean_ms = mean_of(summary.critical_path->ms_per_step, part);
    if (!mean_ms) continue;
    out.push_back({part, *mean_ms, whole > 0 ? 100 * *mean_ms / whole : 0,
                   mean_of(summary.critical_path->gain_ms_per_step, part)});
  }
  std::ranges::stable_sort(out, std::greater{}, &PathRow::ms);
  return out;
}

Table path_table(std::span<const LabelledRun> runs) {
  Table table;
  table.columns = {{"part", 1.4F, false,
                    "What the step waits for in this part: nothing on the path could have started earlier"},
                   {"per step", 0.8F, true,
                    "Mean over the measured steps whose path is known and that could be replayed; if none "
                    "could be replayed, over those whose path is known. The parts sum to the step"},
                   {"share", 0.6F, true, "Of the step"},
                   {"gain", 0.8F, true,
                    "How much shorter a step would be if the part took no time on any rank: the replayed "
                    "step - the step replayed without the part. The next bottleneck limits it. For a part "
                    "below 1 % of a step: its own time, without a replay (metrics 2.12)"}};
  add_letter(table, runs);
  std::vector<std::vector<PathRow>> of_runs;
  std::vector<PathPart> order;
  for (const LabelledRun& run : runs) {
    of_runs.push_back(path_rows(run.run->summary()));
    for (const PathRow& row : of_runs.back()) {
      if (std::ranges::find(order, row.part) == order.end()) order.push_back(row.part);
    }
  }
  for (const PathPart part : order) {
    for (std::size_t run = 0; run < runs.size(); ++run) {
      const auto row = std::ranges::find(of_runs[run], part, &PathRow::part);
      if (row == of_runs[run].end()) continue;
      table.add({part_cell(part), number_cell(row->ms, milliseconds(row->ms).text()),
                 number_cell(row->share_pct, percent(row->share_pct).text()),
                 row->gain_ms ? number_cell(*row->gain_ms, milliseconds(*row->gain_ms).text())
                              : number_cell(std::nullopt, ""),
                 letter_cell(runs, run)});
    }
  }
  return table;
}

namespace {

/// The analysis's summary has the same pieces in the same order.
std::string label_at(const std::shared_ptr<const Analysis>& of, std::size_t index) {
  const auto& path = of->summary.critical_path;
  return path && index < path->longest.size() ? path->longest[index].label : std::string();
}

}  // namespace

PieceTable piece_table(std::span<const LabelledRun> runs) {
  PieceTable out;
  out.table.columns = {{"length", 0.7F, true},
                       {"part", 1.2F},
                       {"what", 1.6F, false, "The shortest span that covers at least half of it"},
                       {"rank", 0.4F, true, "The rank that the path follows there"},
                       {"step", 0.4F, true, "All steps, including those before the measured ones"},
                       {"time", 0.9F, true, "Since the run's first event"}};
  add_letter(out.table, runs);
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const auto of_run = runs[run].run->analysis();
    std::size_t index = 0;
    for (const analysis::Digest::LongPiece& one : of_run->longest_pieces) {
      const analysis::PathPiece& piece = one.piece;
      out.table.add({number_cell(static_cast<double>(one.ns), duration(one.ns).text()),
                     part_cell(piece.part),
                     {label_at(of_run, index++), {}, Tone::normal, {}, ""},
                     number_cell(piece.rank, std::to_string(piece.rank)),
                     number_cell(one.step, std::to_string(one.step)),
                     number_cell(static_cast<double>(piece.at.begin), timestamp(piece.at.begin, 100'000)),
                     letter_cell(runs, run)});
      out.places.push_back({piece.rank, piece.at.begin, piece.at.end, run});
    }
  }
  return out;
}

}  // namespace shardscope::gui
