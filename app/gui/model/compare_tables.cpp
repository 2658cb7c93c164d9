#include "app/gui/model/compare_tables.h"

#include <cmath>
#include <utility>

#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {
namespace {

std::string signed_text(double value, int digits) {
  const std::string text = decimal(std::fabs(value), digits);
  return (value > 0 ? "+" : value < 0 ? "\u2212" : "") + text;
}

int digits_of(double value) { return std::fabs(value) < 10 ? 1 : 0; }

Cell change_cell(double a, double b) {
  if (!(a > 0)) return number_cell(std::nullopt, "");
  const double change = 100 * (b - a) / a;
  // "+291684 %" says less than "2918 times as much".
  constexpr double kTimes = 10;
  if (b / a >= kTimes) return number_cell(change, "\u00d7 " + decimal(b / a, 0));
  return number_cell(change, signed_text(change, digits_of(change)) + " %");
}

/// Colour of a collective operation by its name.
std::optional<Meaning> meaning_of_operation(const std::string& name) {
  for (std::uint8_t op = 0; op < ev::kValueCount<ev::CollectiveOp>; ++op)
    if (word(static_cast<ev::CollectiveOp>(op)) == name)
      return meaning_of(ev::EventKind::collective_begin, op);
  return std::nullopt;
}

/// "+1.2 ms": B minus A.
std::string signed_value(double value, const std::string& unit) {
  return (value > 0 ? "+" : value < 0 ? "\u2212" : "") + value_text(std::fabs(value), unit);
}

/// The medians behind an interval: of blocks of neighbouring steps.
std::string blocks_text(std::size_t blocks) {
  return "by the medians of " + std::to_string(blocks) + " blocks of neighbouring steps";
}

constexpr const char* kIntervalHead = "95 % interval";
constexpr const char* kIntervalTip =
    "95 % confidence interval of B \u2212 A, of pairs of steps with the same number: Student's t over the "
    "medians of blocks of neighbouring steps. Each row on its own: of 20 rows without a difference about one "
    "excludes zero. Muted: contains zero, no significant difference";

}  // namespace

std::string interval_text(const analysis::ConfidenceInterval& interval, const std::string& unit) {
  std::string low = signed_value(interval.low, unit);
  const std::string high = signed_value(interval.high, unit);
  const std::size_t space = low.find(' '), space_of_high = high.find(' ');
  // One unit for both, where it is the same.
  if (space != std::string::npos && space_of_high != std::string::npos &&
      low.substr(space) == high.substr(space_of_high))
    low.resize(space);
  return low + " to " + high;
}

Cell interval_cell(const std::optional<analysis::ConfidenceInterval>& interval, const std::string& unit,
                   const std::string& from, const std::string& why_none) {
  if (!interval) {
    Cell none = number_cell(std::nullopt, "");
    none.tip = why_none;
    return none;
  }
  const std::string text = interval_text(*interval, unit);
  Cell out = number_cell(interval->low, text);
  // The difference of two medians is not quite the middle of the interval.
  out.tip = "95 % confidence interval: " + text + " around " + signed_value(interval->middle, unit) +
            (from.empty() ? "" : ", " + from) + ". ";
  if (interval->excludes_zero()) {
    out.tip += interval->low > 0 ? "All of it is above zero." : "All of it is below zero.";
  } else {
    out.tip += "Contains zero: no significant difference.";
    out.tone = Tone::muted;
  }
  return out;
}

std::optional<Change> change_of(const analysis::Difference& row) {
  const auto shown = row.change();
  if (!shown) return std::nullopt;
  return Change{signed_text(shown->value, digits_of(shown->value)) + (shown->points ? " points" : " %"),
                shown->value, !row.differs(), shown->better};
}

std::string value_text(const std::optional<double>& value, const std::string& unit) {
  if (!value || !std::isfinite(*value)) return kMissing;
  if (unit == "ms") return milliseconds(value).text();
  if (unit == "MiB") return bytes(static_cast<std::int64_t>(*value * 1024 * 1024)).text();
  if (unit == "bytes" || unit == "B") return bytes(static_cast<std::int64_t>(*value)).text();
  if (unit == "%") return percent(value).text();
  if (unit == "GB/s") return bandwidth(value).text();
  return count(*value, unit.c_str()).text();
}

std::string with_spread(const std::string& value, const std::string& spread) {
  const std::size_t space = value.find(' ');
  const bool same = space != std::string::npos && spread.ends_with(value.substr(space)) &&
                    spread.find(' ') + value.size() - space == spread.size();
  return (same ? value.substr(0, space) : value) + " ±" + spread;
}

Table metric_table(const analysis::Comparison& comparison) {
  Table table;
  table.columns = {
      {"metric", 1.4F, false, "Median over the measured steps, ± half the interquartile range", false, 118},
      {comparison.simulated_a ? "A, simulated" : "A", 1.1F, true},
      {comparison.simulated_b ? "B, simulated" : "B", 1.1F, true},
      {"B against A", 1.3F, true,
       "Of shares in points, of all else in percent of A. Muted: no significant difference", false, 170},
      {kIntervalHead, 1.2F, true,
       "95 % confidence interval of B \u2212 A, of pairs of steps with the same number. Muted: contains "
       "zero"}};
  for (const analysis::Difference& row : comparison.metrics) {
    const auto cell = [&](const std::optional<double>& value, double spread) {
      std::string text = value_text(value, row.unit);
      if (value && spread > 0) text = with_spread(text, value_text(spread, row.unit));
      return number_cell(value, std::move(text));
    };
    const auto change = change_of(row);
    Cell last = number_cell(change ? std::optional(change->value) : std::nullopt, change ? change->text : "");
    if (change) {
      last.tone = change->in_spread ? Tone::muted : change->better ? Tone::good : Tone::bad;
      last.tip = change->in_spread
                     ? "No significant difference: the 95 % interval contains zero, or there is none"
                 : change->better ? "Better than A"
                                  : "Worse than A";
    }
    const std::string why_none = !row.a || !row.b ? std::string(row.a   ? "B"
                                                                : row.b ? "A"
                                                                        : "Neither run") +
                                                        " has no value"
                                 : row.of_run ? "One value per run, which does not vary between steps"
                                              : "One value per run, or fewer than " +
                                                    std::to_string(analysis::kFewestForInterval) +
                                                    " measured steps with the same number in both";
    table.add({{row.metric, {}, Tone::normal, {}, ""},
               cell(row.a, row.spread_a),
               cell(row.b, row.spread_b),
               last,
               interval_cell(row.interval, row.unit, row.interval ? blocks_text(row.interval->blocks) : "",
                             why_none)});
  }
  return table;
}

std::string why_no_interval(const ComparedSeries& row) {
  if (row.pairs.interval) return {};
  if (row.a.empty() || row.b.empty())
    return std::string("Only in ") + (row.a.empty() ? "B" : "A") + ": no pairs of steps";
  return std::to_string(row.pairs.pairs) +
         " measured steps with the same number in both runs; an interval takes " +
         std::to_string(analysis::kFewestForInterval);
}

std::string title_of(const ComparedSeries& row, const NameCells& names) {
  const std::string name(names.without_model(row.name));
  if (row.figure.empty()) return name;
  // A pass continues the name of its module.
  return name + (row.of == SeriesOf::module ? " " : ", ") + row.figure;
}

Table series_table(const ComparedSteps& steps, SeriesOf of, const NameCells& names) {
  Table table;
  if (steps.rows.empty()) return table;
  const std::string each =
      "Median over " + steps_text(steps) +
      (of == SeriesOf::collective ? "; times are means over the ranks" : "; of one rank, without pauses");
  if (of == SeriesOf::phase)
    table.columns = {{"phase", 1.4F, false, "Of the compute stream, in order of execution"}};
  else if (of == SeriesOf::module)
    table.columns = {{"module", 2.0F, false, "By path; inclusive of child modules", false, 120},
                     {"pass", 0.7F}};
  else if (of == SeriesOf::wait)
    table.columns = {{"wait", 2.0F, false, "For parameters by module, others by kind", false, 120},
                     {"figure", 0.7F}};
  else if (of == SeriesOf::kernel)
    table.columns = {
        {"kernel", 2.0F, false, "Of GPU streams, if any were recorded, else of the host", false, 120},
        {"figure", 0.7F}};
  else if (of == SeriesOf::parameter)
    table.columns = {
        {"parameter", 2.0F, false, "How long it was whole on the rank, and how often gathered", false, 120},
        {"figure", 1.0F}};
  else
    table.columns = {{"operation", 1.2F, false, "Collectives of each run's lowest rank"}, {"figure", 1.3F}};
  table.columns.insert(table.columns.end(), {{"A", 0.8F, true, each},
                                             {"B", 0.8F, true, each},
                                             {"B \u2212 A", 0.8F, true, "Difference of the medians"},
                                             {kIntervalHead, 1.3F, true, kIntervalTip},
                                             {"change", 0.7F, true, "(B \u2212 A) / A"}});
  for (const ComparedSeries& row : steps.rows) {
    const auto a = row.median_a(), b = row.median_b();
    const bool path = of == SeriesOf::module || of == SeriesOf::parameter;
    Cell name = path ? names.cell(row.name) : Cell{row.name, {}, Tone::normal, {}, ""};
    if (of == SeriesOf::collective) name.swatch = meaning_of_operation(row.name);
    if (of == SeriesOf::wait) name.swatch = Meaning::trouble;
    std::vector<Cell> cells{std::move(name)};
    if (of != SeriesOf::phase) cells.push_back({row.figure, {}, Tone::muted, {}, ""});
    cells.push_back(number_cell(a, value_text(a, row.unit)));
    cells.push_back(number_cell(b, value_text(b, row.unit)));
    cells.push_back(number_cell(row.change(), signed_value(row.change(), row.unit)));
    std::string from;
    if (row.pairs.interval)
      from = "of " + std::to_string(row.pairs.pairs) + " pairs of steps, " +
             blocks_text(row.pairs.interval->blocks);
    cells.push_back(interval_cell(row.pairs.interval, row.unit, from, why_no_interval(row)));
    cells.push_back(a && b ? change_cell(*a, *b) : number_cell(std::nullopt, ""));
    table.add(std::move(cells));
  }
  return table;
}

Table memory_table(const Session& a, const Session& b) {
  const auto of = [](const Session& run) { return analysis::Run{&run.store(), &run.summary(), nullptr}; };
  const analysis::ComparedRows compared = analysis::compare_by(of(a), of(b), analysis::CompareBy::memory);
  Table table;
  if (compared.rows.empty()) return table;
  const char* const each = "Of the rank that held most, at its peak";
  table.columns = {{.name = "memory", .weight = 2, .smallest = 120},
                   {"figure", 1.0F},
                   {"A", 0.8F, true, each},
                   {"B", 0.8F, true, each},
                   {"B \u2212 A", 0.8F, true}};
  for (const analysis::ComparedRow& row : compared.rows)
    table.add({{row.name, {}, Tone::normal, {}, ""},
               {row.figure, {}, Tone::muted, {}, ""},
               number_cell(row.a, value_text(row.a, row.unit)),
               number_cell(row.b, value_text(row.b, row.unit)),
               number_cell(row.change(), signed_value(row.change(), row.unit))});
  return table;
}

Table setting_table(const std::vector<std::string>& changes) {
  Table table;
  table.columns = {{"setting", 1.6F}, {"A", 1.0F}, {"B", 1.0F}};
  for (const std::string& change : changes) {
    const std::size_t colon = change.find(": ");
    const std::size_t arrow = change.find(" -> ", colon == std::string::npos ? 0 : colon);
    if (colon == std::string::npos || arrow == std::string::npos) {
      table.add({{change, {}, Tone::normal, {}, ""}});
      continue;
    }
    table.add({{change.substr(0, colon), {}, Tone::normal, {}, ""},
               {change.substr(colon + 2, arrow - colon - 2), {}, Tone::normal, {}, ""},
               {change.substr(arrow + 4), {}, Tone::normal, {}, ""}});
  }
  return table;
}

std::string_view panel_of_metric(std::string_view metric) {
  const auto has = [&](std::string_view word) { return metric.find(word) != std::string_view::npos; };
  if (has("memory")) return "memory";
  if (has("flush")) return "buckets";
  if (has("unrecorded")) return "trace_info";
  if (metric == "step time" || has("tokens") || has("loss")) return "overview";
  if (metric == "idle") return "timeline";
  return "communication";
}

std::string_view panel_of_setting(std::string_view key) {
  struct Seen {
    std::string_view part, panel;
  };
  // The first that is part of the key.
  static constexpr Seen kSeen[] = {{"reduce_bucket", "buckets"},   {"allgather_bucket", "communication"},
                                   {"prefetch", "stepper"},        {"max_live", "stepper"},
                                   {"max_reuse", "stepper"},       {"persistence", "partition"},
                                   {"offload", "memory"},          {"activation", "memory"},
                                   {"overlap", "timeline"},        {"accumulation", "timeline"},
                                   {"batch", "timeline"},          {"hpz", "communication"},
                                   {"quantized", "communication"}, {"mics", "communication"},
                                   {"stage", "partition"},         {"fp16", "overview"},
                                   {"bf16", "overview"},           {"optimizer", "overview"},
                                   {"scheduler", "overview"}};
  for (const Seen& seen : kSeen)
    if (key.find(seen.part) != std::string_view::npos) return seen.panel;
  return "trace_info";
}

}  // namespace shardscope::gui
