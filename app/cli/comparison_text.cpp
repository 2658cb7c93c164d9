#include "app/cli/comparison_text.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/analysis/foreign_json.h"
#include "app/analysis/quantity_text.h"
#include "app/cli/say.h"

namespace shardscope::cli {
std::string comparison_text(const analysis::Comparison& comparison) {
  std::string text = plain_format("{}\n\n", comparison.verdict);
  for (const std::string& missing : comparison.missing_a) text += plain_format("missing in A  {}\n", missing);
  for (const std::string& missing : comparison.missing_b) text += plain_format("missing in B  {}\n", missing);
  if (!comparison.missing_a.empty() || !comparison.missing_b.empty()) text += "\n";
  text += fmt::format("{:<26} {:>20} {:>20} {:>9}  {}\n", "median over steps",
                      comparison.simulated_a ? "A (simulated)" : "A",
                      comparison.simulated_b ? "B (simulated)" : "B", "change", "unit");
  for (const analysis::Difference& d : comparison.metrics) {
    std::string change = "—";
    if (d.a && d.b && *d.a != 0) change = fmt::format("{:+.1f} %", 100 * (*d.b - *d.a) / *d.a);
    text += fmt::format("{:<26} {:>20} {:>20} {:>9}  {}\n", d.metric, analysis::with_spread(d.a, d.spread_a),
                        analysis::with_spread(d.b, d.spread_b), change, d.unit);
  }
  text += "± is half the interquartile range over steps.\n";
  if (!comparison.config_changes.empty()) {
    text += "\nChanged configuration keys (A -> B):\n";
    for (const std::string& change : comparison.config_changes) text += plain_format("  {}\n", change);
  } else {
    text += "\nThe two configurations are the same.\n";
  }
  return text;
}

std::string comparison_json(const analysis::Comparison& comparison, const analysis::VerdictBasis& basis) {
  const auto maybe = [](const std::optional<double>& number) {
    return number ? nlohmann::json(*number) : nlohmann::json(nullptr);
  };
  nlohmann::json out = {{"verdict", comparison.verdict}, {"config_changes", comparison.config_changes}};
  out["bears_verdict"] = basis.enough();
  out["measured_steps"] = {{"a", basis.steps_a}, {"b", basis.steps_b}};
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
