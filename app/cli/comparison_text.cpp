#include "app/cli/comparison_text.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/analysis/foreign_json.h"

namespace shardscope::cli {
namespace {

std::string value(const std::optional<double>& number, double spread) {
  if (!number) return "—";
  return spread > 0 ? fmt::format("{:.4g} ± {:.2g}", *number, spread) : fmt::format("{:.4g}", *number);
}

}  // namespace

std::string comparison_text(const analysis::Comparison& comparison) {
  std::string text = comparison.verdict + "\n\n";
  for (const std::string& missing : comparison.missing_a) text += "missing in A  " + missing + "\n";
  for (const std::string& missing : comparison.missing_b) text += "missing in B  " + missing + "\n";
  if (!comparison.missing_a.empty() || !comparison.missing_b.empty()) text += "\n";
  text += fmt::format("{:<26} {:>20} {:>20} {:>9}  {}\n", "median over steps",
                      comparison.simulated_a ? "A (simulated)" : "A",
                      comparison.simulated_b ? "B (simulated)" : "B", "change", "unit");
  for (const analysis::Difference& d : comparison.metrics) {
    std::string change = "—";
    if (d.a && d.b && *d.a != 0) change = fmt::format("{:+.1f} %", 100 * (*d.b - *d.a) / *d.a);
    text += fmt::format("{:<26} {:>20} {:>20} {:>9}  {}\n", d.metric, value(d.a, d.spread_a),
                        value(d.b, d.spread_b), change, d.unit);
  }
  text += "± is half the interquartile range over steps.\n";
  if (!comparison.config_changes.empty()) {
    text += "\nChanged configuration keys (A -> B):\n";
    for (const std::string& change : comparison.config_changes) text += "  " + change + "\n";
  } else {
    text += "\nThe two configurations are the same.\n";
  }
  return text;
}

std::string comparison_json(const analysis::Comparison& comparison) {
  const auto maybe = [](const std::optional<double>& number) {
    return number ? nlohmann::json(*number) : nlohmann::json(nullptr);
  };
  nlohmann::json out = {{"verdict", comparison.verdict}, {"config_changes", comparison.config_changes}};
  out["simulated"] = {{"a", comparison.simulated_a}, {"b", comparison.simulated_b}};
  out["missing"] = {{"a", comparison.missing_a}, {"b", comparison.missing_b}};
  out["metrics"] = nlohmann::json::array();
  for (const analysis::Difference& d : comparison.metrics) {
    out["metrics"].push_back({{"metric", d.metric},
                              {"unit", d.unit},
                              {"a", maybe(d.a)},
                              {"b", maybe(d.b)},
                              {"spread_a", d.spread_a},
                              {"spread_b", d.spread_b},
                              {"lower_is_better", d.lower_is_better}});
  }
  return analysis::to_text(out, 2) + "\n";
}

}  // namespace shardscope::cli
