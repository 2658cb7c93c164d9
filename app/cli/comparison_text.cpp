#include "app/cli/comparison_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "app/analysis/foreign_json.h"
#include "app/analysis/quantity_text.h"
#include "app/cli/say.h"

namespace shardscope::cli {
namespace {

std::string change_of(const analysis::Difference& d) {
  const auto change = d.change();
  return change ? fmt::format("{:+.1f} {}", change->value, change->points ? "pts" : "%") : "—";
}

}  // namespace

std::string comparison_text(const analysis::Comparison& comparison) {
  std::string text = plain_format("{}\n\n", comparison.verdict);
  for (const std::string& missing : comparison.missing_a) text += plain_format("missing in A  {}\n", missing);
  for (const std::string& missing : comparison.missing_b) text += plain_format("missing in B  {}\n", missing);
  if (!comparison.missing_a.empty() || !comparison.missing_b.empty()) text += "\n";
  std::size_t names = 26;
  for (const analysis::Difference& d : comparison.metrics) names = std::max(names, d.metric.size());
  text += fmt::format("{:<{}} {:>20} {:>20} {:>9} {:>20}  {}\n", "median over steps", names,
                      comparison.simulated_a ? "A (simulated)" : "A",
                      comparison.simulated_b ? "B (simulated)" : "B", "change", "95 % of B - A", "unit");
  for (const analysis::Difference& d : comparison.metrics) {
    const std::string interval = d.interval
                                     ? fmt::format("{:+.3g} to {:+.3g}", d.interval->low, d.interval->high)
                                 : d.of_run ? "one value a run"
                                            : "—";
    text += fmt::format("{:<{}} {:>20} {:>20} {:>9} {:>20}  {}\n", d.metric, names,
                        analysis::with_spread(d.a, d.spread_a), analysis::with_spread(d.b, d.spread_b),
                        change_of(d), interval, d.unit);
  }
  text +=
      "± is half the interquartile range over steps: how they scatter, no measure of a difference. pts: "
      "percentage points.\n";
  if (!comparison.method.empty()) text += comparison.method + "\n";
  if (!comparison.config_changes.empty()) {
    text += "\nChanged configuration keys (A -> B):\n";
    for (const std::string& change : comparison.config_changes) text += plain_format("  {}\n", change);
  } else {
    text += "\n" + comparison.no_config_changes + "\n";
  }
  return text;
}

std::string comparison_json(const analysis::Comparison& comparison, const analysis::VerdictBasis& basis) {
  const auto maybe = [](const std::optional<double>& number) {
    return number ? nlohmann::json(*number) : nlohmann::json(nullptr);
  };
  nlohmann::json out = {{"verdict", comparison.verdict},
                        {"config_changes", comparison.config_changes},
                        {"no_config_changes", comparison.no_config_changes}};
  out["bears_verdict"] = !comparison.method.empty();
  out["method"] = comparison.method;
  out["unlike"] = comparison.unlike;
  out["measured_steps"] = {{"a", basis.steps_a}, {"b", basis.steps_b}};
  out["simulated"] = {{"a", comparison.simulated_a}, {"b", comparison.simulated_b}};
  out["missing"] = {{"a", comparison.missing_a}, {"b", comparison.missing_b}};
  out["metrics"] = nlohmann::json::array();
  for (const analysis::Difference& d : comparison.metrics) {
    out["metrics"].push_back(
        {{"metric", d.metric},
         {"unit", d.unit},
         {"a", maybe(d.a)},
         {"b", maybe(d.b)},
         {"spread_a", d.spread_a},
         {"spread_b", d.spread_b},
         {"low", d.interval ? nlohmann::json(d.interval->low) : nlohmann::json(nullptr)},
         {"high", d.interval ? nlohmann::json(d.interval->high) : nlohmann::json(nullptr)},
         {"of_run", d.of_run},
         {"differs", d.differs()},
         {"lower_is_better", d.lower_is_better}});
  }
  return analysis::to_text(out, 2) + "\n";
}

std::string compared_rows_text(const analysis::ComparedRows& rows) {
  constexpr std::size_t kShown = 30;
  std::string text = fmt::format("\n{}\n{:<44} {:<20} {:>12} {:>12} {:>12}  {}\n", rows.note, "", "", "A",
                                 "B", "B - A", rows.confidence > 0 ? "interval" : "");
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.4g}", *value) : std::string("—");
  };
  std::size_t shown = 0;
  for (const analysis::ComparedRow& row : rows.rows) {
    if (++shown > kShown) break;
    const std::string name = row.name.size() <= 44 ? row.name : "..." + row.name.substr(row.name.size() - 41);
    const std::string interval = row.interval
                                     ? fmt::format("{:+.3g} to {:+.3g}{}", row.interval->low,
                                                   row.interval->high, row.differs() ? "" : ": no difference")
                                     : std::string();
    text += plain_format("{:<44} {:<20} {:>12} {:>12} {:>+12.4g}  {}\n", name,
                         row.unit.empty() ? row.figure : row.figure + ", " + row.unit, number(row.a),
                         number(row.b), row.change(), interval);
  }
  if (rows.rows.size() > kShown) text += fmt::format("{} more: --json has all.\n", rows.rows.size() - kShown);
  if (rows.confidence > 0 && rows.confidence < 1 && !rows.rows.empty()) {
    // Two digits of the difference to 100 %: with thousands of rows it is small, but never 0.
    const double missing = 100 * (1 - rows.confidence);
    const int decimals = std::max(0, 1 - static_cast<int>(std::floor(std::log10(missing))));
    text += fmt::format("Each interval is of {:.{}f} %, so that with 95 % all of them hold.\n", 100 - missing,
                        decimals);
  }
  return text;
}

std::string with_rows(const std::string& comparison_json, const analysis::ComparedRows& rows) {
  nlohmann::json out = nlohmann::json::parse(comparison_json);
  const auto maybe = [](const std::optional<double>& number) {
    return number ? nlohmann::json(*number) : nlohmann::json(nullptr);
  };
  out["by"] = {{"note", rows.note}, {"confidence", rows.confidence}, {"rows", nlohmann::json::array()}};
  for (const analysis::ComparedRow& row : rows.rows) {
    out["by"]["rows"].push_back(
        {{"name", row.name},
         {"figure", row.figure},
         {"unit", row.unit},
         {"a", maybe(row.a)},
         {"b", maybe(row.b)},
         {"low", row.interval ? nlohmann::json(row.interval->low) : nlohmann::json(nullptr)},
         {"high", row.interval ? nlohmann::json(row.interval->high) : nlohmann::json(nullptr)}});
  }
  return analysis::to_text(out, 2) + "\n";
}

}  // namespace shardscope::cli
