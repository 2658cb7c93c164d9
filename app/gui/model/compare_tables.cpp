#include "app/gui/model/compare_tables.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>
#include <utility>

#include "app/analysis/statistics.h"
#include "app/gui/model/format.h"
#include "app/gui/model/name_cell.h"
#include "app/gui/model/names.h"
#include "app/gui/model/step_spans.h"
#include "app/store/span_time.h"
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
  return number_cell(change, signed_text(change, digits_of(change)) + " %");
}

/// Milliseconds of modules per step, by path and pass.
using ModuleTimes = std::map<std::pair<std::string, ev::Pass>, double>;

ModuleTimes module_times(const Session& run, std::size_t most_steps) {
  ModuleTimes out;
  const store::Store& store = run.store();
  if (store.ranks().empty() || !store.has_tables()) return out;
  const store::LaneId lane{store.ranks().front().rank, ev::StreamId::compute};
  std::size_t steps = 0;
  const auto rows = store.steps();
  for (auto step = rows.rbegin(); step != rows.rend() && steps < most_steps; ++step) {
    if (step->end_ns == store::kOpen) continue;
    ++steps;
    for_each_span_in_step(store, lane, *step, ev::EventKind::module_begin, [&](const store::Span& span) {
      const auto fields = ev::as<ev::EventKind::module_begin>(span);
      out[{module_name(store, fields.module), fields.pass}] +=
          static_cast<double>(store::time_of(store, lane.rank, span).running_ns) * 1e-6;
    });
  }
  for (auto& [key, ms] : out) ms /= static_cast<double>(std::max<std::size_t>(1, steps));
  return out;
}

/// "+1.2 ms": B minus A.
std::string signed_value(double value, const std::string& unit) {
  return (value > 0 ? "+" : value < 0 ? "\u2212" : "") + value_text(std::fabs(value), unit);
}

}  // namespace

std::optional<Change> change_of(const analysis::Difference& row) {
  if (!row.a || !row.b || !std::isfinite(*row.a) || !std::isfinite(*row.b)) return std::nullopt;
  Change out;
  const double difference = *row.b - *row.a;
  out.in_spread = !row.differs();
  out.better = row.lower_is_better ? difference < 0 : difference > 0;
  if (row.unit == "%") {
    out.value = difference;
    out.text = signed_text(difference, digits_of(difference)) + " points";
    return out;
  }
  if (*row.a == 0) return std::nullopt;
  out.value = 100 * difference / std::fabs(*row.a);
  out.text = signed_text(out.value, digits_of(out.value)) + " %";
  return out;
}

std::string value_text(const std::optional<double>& value, const std::string& unit) {
  if (!value || !std::isfinite(*value)) return kMissing;
  if (unit == "ms") return milliseconds(value).text();
  if (unit == "MiB") return bytes(static_cast<std::int64_t>(*value * 1024 * 1024)).text();
  if (unit == "bytes" || unit == "B") return bytes(static_cast<std::int64_t>(*value)).text();
  if (unit == "%") return percent(value).text();
  return count(*value, unit.c_str()).text();
}

Table metric_table(const analysis::Comparison& comparison) {
  Table table;
  table.columns = {
      {"metric", 1.4F, false, "Median over the measured steps, ± half the interquartile range"},
      {comparison.simulated_a ? "A, simulated" : "A", 1.1F, true},
      {comparison.simulated_b ? "B, simulated" : "B", 1.1F, true},
      {"B against A", 1.3F, true,
       "Of shares in points, of all else in percent of A. Muted: no significant difference", false, 170}};
  for (const analysis::Difference& row : comparison.metrics) {
    const auto cell = [&](const std::optional<double>& value, double spread) {
      std::string text = value_text(value, row.unit);
      if (value && spread > 0) text += " ±" + value_text(spread, row.unit);
      return number_cell(value, std::move(text));
    };
    const auto change = change_of(row);
    Cell last = number_cell(change ? std::optional(change->value) : std::nullopt, change ? change->text : "");
    if (change) {
      last.tone = change->in_spread ? Tone::muted : change->better ? Tone::good : Tone::bad;
      last.tip = change->in_spread
                     ? "No significant difference: its interval of 95 % holds zero, or they are too few"
                 : change->better ? "Better than A"
                                  : "Worse than A";
    }
    table.add(
        {{row.metric, {}, Tone::normal, {}, ""}, cell(row.a, row.spread_a), cell(row.b, row.spread_b), last});
  }
  return table;
}

std::optional<Interval> median_difference(std::span<const double> a, std::span<const double> b) {
  constexpr std::size_t kFewest = 3;
  constexpr int kResamples = 1000;
  if (a.size() < kFewest || b.size() < kFewest) return std::nullopt;
  // The standard specifies this generator, and its raw output is used: the same interval on every platform.
  std::mt19937 random(1);
  const auto resampled_median = [&](std::span<const double> values) {
    std::vector<double> drawn(values.size());
    for (double& value : drawn) value = values[random() % values.size()];
    return analysis::quantile(std::move(drawn), 0.5);
  };
  std::vector<double> differences;
  differences.reserve(kResamples);
  for (int i = 0; i < kResamples; ++i) {
    const double of_a = resampled_median(a);
    differences.push_back(resampled_median(b) - of_a);
  }
  return Interval{analysis::quantile(differences, 0.025), analysis::quantile(differences, 0.975)};
}

Table module_table(const Session& a, const Session& b, std::size_t most_steps) {
  Table table;
  table.columns = {{"module", 2.0F, false, "By path; its time holds what is inside it"},
                   {"pass", 0.7F},
                   {"A", 0.8F, true, "Per step, mean over the latest steps of the lowest rank"},
                   {"B", 0.8F, true, "Per step, mean over the latest steps of the lowest rank"},
                   {"B - A", 0.8F, true},
                   {"change", 0.7F, true}};
  const ModuleTimes of_a = module_times(a, most_steps);
  const ModuleTimes of_b = module_times(b, most_steps);
  ModuleTimes all = of_a;
  all.insert(of_b.begin(), of_b.end());
  for (const auto& [key, unused] : all) {
    const auto time = [&](const ModuleTimes& times) {
      const auto found = times.find(key);
      return found != times.end() ? std::optional(found->second) : std::nullopt;
    };
    const auto x = time(of_a);
    const auto y = time(of_b);
    const double difference = y.value_or(0) - x.value_or(0);
    table.add({{key.first, {}, Tone::normal, {}, ""},
               {word(key.second), {}, Tone::muted, {}, ""},
               number_cell(x, milliseconds(x).text()),
               number_cell(y, milliseconds(y).text()),
               number_cell(difference, signed_value(difference, "ms")),
               change_cell(x.value_or(0), y.value_or(0))});
  }
  std::ranges::stable_sort(table.rows, [](const std::vector<Cell>& left, const std::vector<Cell>& right) {
    return std::fabs(*left[4].value) > std::fabs(*right[4].value);
  });
  return table;
}

Table compared_table(const Session& a, const Session& b, analysis::CompareBy by, std::size_t most_steps) {
  const auto of = [](const Session& run) {
    return analysis::Run{&run.store(), &run.summary(), run.analysis()->digest.get()};
  };
  const analysis::ComparedRows compared =
      analysis::compare_by(of(a), of(b), by, most_steps, 1);  // one rank only: a frame has no time for all
  Table table;
  if (compared.rows.empty()) return table;
  const char* const each = by == analysis::CompareBy::memory
                               ? "Of the rank that held most, at its peak"
                               : "Median over the latest steps, of the lowest rank";
  table.columns = {
      {.name = by == analysis::CompareBy::memory ? "memory" : "parameter", .weight = 2, .smallest = 120},
      {"figure", 1.0F},
      {"A", 0.8F, true, each},
      {"B", 0.8F, true, each},
      {"B - A", 0.8F, true}};
  const bool intervals = by != analysis::CompareBy::memory;
  if (intervals)
    table.columns.push_back(
        {"interval", 1.0F, true,
         "Of the difference, by steps with the same number; all of the table hold together with "
         "95 %. Muted: it holds zero, no significant difference. None: too few steps"});
  const NameCells names(a.store());
  for (const analysis::ComparedRow& row : compared.rows) {
    const bool both = row.a && row.b;
    const double change = row.change();
    std::vector<Cell> cells{
        names.cell(row.name),
        {row.figure, {}, Tone::muted, {}, ""},
        number_cell(row.a, value_text(row.a, row.unit)),
        number_cell(row.b, value_text(row.b, row.unit)),
        both ? number_cell(change, signed_value(change, row.unit)) : number_cell(std::nullopt, "")};
    if (intervals) {
      Cell interval = number_cell(std::nullopt, "");
      if (row.interval)
        interval = number_cell(row.interval->low, signed_value(row.interval->low, row.unit) + " to " +
                                                      signed_value(row.interval->high, row.unit));
      if (!row.differs()) interval.tone = Tone::muted;
      cells.push_back(std::move(interval));
    }
    table.add(std::move(cells));
  }
  return table;
}

Table collective_differences(const Session& a, const Session& b) {
  Table table;
  table.columns = {
      {"operation", 1.2F}, {"figure", 1.1F}, {"A", 0.9F, true}, {"B", 0.9F, true}, {"change", 0.8F, true}};
  std::map<ev::CollectiveOp, std::pair<const analysis::OpRow*, const analysis::OpRow*>> ops;
  for (const analysis::OpRow& op : a.summary().ops) ops[op.op].first = &op;
  for (const analysis::OpRow& op : b.summary().ops) ops[op.op].second = &op;
  const auto steps = [](const Session& run) {
    return static_cast<double>(std::max<std::uint32_t>(1, run.summary().ops_steps));
  };
  for (const auto& [op, rows] : ops) {
    const auto& [x, y] = rows;
    const auto add = [&](const char* figure, std::optional<double> of_a, std::optional<double> of_b,
                         auto&& text) {
      if (!of_a && !of_b) return;
      table.add({{word(op),
                  {},
                  Tone::normal,
                  meaning_of(ev::EventKind::collective_begin, static_cast<std::uint8_t>(op)),
                  ""},
                 {figure, {}, Tone::muted, {}, ""},
                 number_cell(of_a, of_a ? text(*of_a) : ""),
                 number_cell(of_b, of_b ? text(*of_b) : ""),
                 of_a && of_b ? change_cell(*of_a, *of_b) : number_cell(std::nullopt, "")});
    };
    const auto value = [](const analysis::OpRow* row, auto&& get) {
      return row != nullptr ? std::optional<double>(get(*row)) : std::nullopt;
    };
    add("count per step", value(x, [&](const auto& r) { return static_cast<double>(r.count) / steps(a); }),
        value(y, [&](const auto& r) { return static_cast<double>(r.count) / steps(b); }),
        [](double v) { return count(v).text(); });
    add("bytes per step", value(x, [&](const auto& r) { return static_cast<double>(r.bytes) / steps(a); }),
        value(y, [&](const auto& r) { return static_cast<double>(r.bytes) / steps(b); }),
        [](double v) { return bytes(static_cast<std::int64_t>(v)).text(); });
    const auto gbs = [](double v) { return bandwidth(v).text(); };
    add("busbw, transfer alone", x != nullptr ? x->busbw_gbs : std::nullopt,
        y != nullptr ? y->busbw_gbs : std::nullopt, gbs);
    add("busbw, with waiting", x != nullptr ? x->busbw_waiting_gbs : std::nullopt,
        y != nullptr ? y->busbw_waiting_gbs : std::nullopt, gbs);
  }
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

}  // namespace shardscope::gui
