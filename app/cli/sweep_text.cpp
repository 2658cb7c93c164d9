#include "app/cli/sweep_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/analysis/foreign_json.h"
#include "app/analysis/quantity_text.h"
#include "app/cli/say.h"

namespace shardscope::cli {
namespace {

/// Verdict on a value against the first side's, by its interval.
const char* judged(const analysis::SweepFigure& figure, const analysis::SweepValue& value) {
  if (!value.interval) return "";
  if (!value.differs()) return "no difference";
  return (*value.change_pct < 0) == figure.lower_is_better ? "better" : "worse";
}

std::string figure_text(const analysis::SweepFigure& figure) {
  std::string text = fmt::format("{}, {}\n", figure.title, figure.unit);
  for (std::size_t side = 0; side < figure.values.size(); ++side) {
    const analysis::SweepValue& value = figure.values[side];
    std::string line = fmt::format("  {}  {:>14}", side_letter(side), analysis::with_spread(value.value, 0));
    if (value.change_pct) line += fmt::format("  {:>+8.1f} %", *value.change_pct);
    if (value.interval)
      line += fmt::format("  {:>22}  {}",
                          fmt::format("{:+.1f} to {:+.1f} %", value.interval->low, value.interval->high),
                          judged(figure, value));
    text += line + "\n";
  }
  return text;
}

std::string settings_text(const std::vector<analysis::SweepSetting>& settings) {
  if (settings.empty()) return "\nThe settings of all runs are the same.\n";
  std::string text = "\nSettings that differ:\n";
  for (const analysis::SweepSetting& setting : settings) {
    text += plain_format("  {}\n", setting.key);
    for (std::size_t side = 0; side < setting.values.size(); ++side) {
      const std::string& value = setting.values[side];
      text +=
          plain_format("    {}  {}\n", side_letter(side), value.empty() ? std::string("(absent)") : value);
    }
  }
  return text;
}

nlohmann::json number(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace

std::string side_letter(std::size_t side) { return {static_cast<char>('A' + side)}; }

std::string sweep_text(const analysis::Sweep& sweep) {
  std::string text = plain_format("{}\n\n", sweep.verdict);
  bool lacking = false;
  for (std::size_t side = 0; side < sweep.missing.size(); ++side) {
    for (const std::string& missing : sweep.missing[side]) {
      text += plain_format("missing in {}  {}\n", side_letter(side), missing);
      lacking = true;
    }
  }
  if (lacking) text += "\n";
  for (const analysis::SweepFigure& figure : sweep.figures) {
    if (std::ranges::any_of(figure.values, [](const auto& value) { return value.value.has_value(); }))
      text += figure_text(figure);
  }
  text += fmt::format(
      "Medians over measured steps; changes against A in pairs of steps. Each interval has {:.2f} %, so that "
      "those of one figure\nhold together with {:.0f} %. Peak memory and elements are one value of a run.\n",
      100 * sweep.confidence, 100 * analysis::Sweep::kTogether);
  return text + settings_text(sweep.settings);
}

std::string sweep_json(const analysis::Sweep& sweep, const std::vector<std::string>& names) {
  nlohmann::json out = {{"verdict", sweep.verdict},
                        {"confidence", sweep.confidence},
                        {"confidence_together", analysis::Sweep::kTogether}};
  out["runs"] = nlohmann::json::array();
  for (std::size_t side = 0; side < names.size(); ++side) {
    out["runs"].push_back({{"label", side_letter(side)},
                           {"name", names[side]},
                           {"measured_steps", sweep.measured_steps[side]},
                           {"simulated", static_cast<bool>(sweep.simulated[side])},
                           {"missing", sweep.missing[side]}});
  }
  out["figures"] = nlohmann::json::array();
  for (const analysis::SweepFigure& figure : sweep.figures) {
    nlohmann::json values = nlohmann::json::array();
    for (std::size_t side = 0; side < figure.values.size(); ++side) {
      const analysis::SweepValue& value = figure.values[side];
      const auto& interval = value.interval;
      values.push_back({{"label", side_letter(side)},
                        {"value", number(value.value)},
                        {"change_pct", number(value.change_pct)},
                        {"low_pct", interval ? nlohmann::json(interval->low) : nlohmann::json(nullptr)},
                        {"high_pct", interval ? nlohmann::json(interval->high) : nlohmann::json(nullptr)},
                        {"pairs", value.pairs},
                        {"differs", interval ? nlohmann::json(value.differs()) : nlohmann::json(nullptr)}});
    }
    out["figures"].push_back({{"metric", figure.name},
                              {"unit", figure.unit},
                              {"lower_is_better", figure.lower_is_better},
                              {"values", std::move(values)}});
  }
  out["settings"] = nlohmann::json::array();
  for (const analysis::SweepSetting& setting : sweep.settings) {
    nlohmann::json values = nlohmann::json::array();
    for (const std::string& value : setting.values)
      values.push_back(value.empty() ? nlohmann::json(nullptr) : analysis::parse_foreign(value));
    out["settings"].push_back({{"key", setting.key}, {"values", std::move(values)}});
  }
  return analysis::to_text(out, 2) + "\n";
}

}  // namespace shardscope::cli
