#include "app/analysis/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>
#include <stdexcept>

#include "app/analysis/compared_runs.h"
#include "app/analysis/digest.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/paired_steps.h"
#include "app/analysis/statistics.h"
#include "app/analysis/step_figures.h"

namespace shardscope::analysis {
namespace {

/// A figure by step, for each repeat of a side.
using Repeats = std::vector<ValuesByStep>;

class Sides {
 public:
  explicit Sides(const std::vector<SweepSide>& sides) : sides_(sides) {
    for (const SweepSide& side : sides) {
      std::vector<const Digest*>& of_side = digests_.emplace_back();
      for (const Run& run : side.runs) {
        if (run.digest == nullptr) (void)made_.emplace_back().update(*run.store);
        of_side.push_back(run.digest != nullptr ? run.digest : &made_.back());
      }
    }
  }
  [[nodiscard]] Repeats values(const StepFigure& figure, std::size_t side) const {
    Repeats out;
    for (std::size_t i = 0; i < sides_[side].runs.size(); ++i)
      out.push_back(figure.steps(*sides_[side].runs[i].store, *digests_[side][i]));
    return out;
  }

 private:
  const std::vector<SweepSide>& sides_;
  std::deque<Digest> made_;  ///< a deque: addresses must not change
  std::vector<std::vector<const Digest*>> digests_;
};

std::optional<double> median_of(const Repeats& repeats) {
  std::vector<double> all;
  for (const ValuesByStep& run : repeats) {
    for (const auto& [step, value] : run) all.push_back(value);
  }
  return all.empty() ? std::nullopt : std::optional(quantile(std::move(all), 0.5));
}

/// The change relative to the first side, in percent, over the steps that both have.
void compare_steps(const Repeats& base, const Repeats& side, double confidence, SweepValue& out) {
  PairedSteps found = paired_steps(base, side, confidence);
  out.pairs = found.pairs;
  if (!found.base || !(*found.base > 0)) return;  // no percentage of zero
  const double percent = 100 / *found.base;
  out.change_pct = percent * *found.difference;
  if (!found.interval) return;
  for (double ConfidenceInterval::*end :
       {&ConfidenceInterval::middle, &ConfidenceInterval::low, &ConfidenceInterval::high})
    (*found.interval).*end *= percent;
  out.interval = found.interval;
}

/// For a figure with one value per run: the largest over the repeats.
std::optional<double> largest(const StepFigure& figure, const SweepSide& side) {
  std::optional<double> out;
  for (const Run& run : side.runs) {
    if (const auto value = figure.one(*run.summary)) out = std::max(out.value_or(*value), *value);
  }
  return out;
}

SweepFigure compare_figure(const StepFigure& figure, const std::vector<SweepSide>& sides, const Sides& steps,
                           double confidence) {
  SweepFigure out{figure.name, figure.title, figure.unit, figure.lower_is_better, {}};
  Repeats base;
  for (std::size_t side = 0; side < sides.size(); ++side) {
    SweepValue& value = out.values.emplace_back();
    if (figure.steps == nullptr) {
      value.value = largest(figure, sides[side]);
      const auto& first = out.values.front().value;
      if (side > 0 && value.value && first && *first > 0)
        value.change_pct = 100 * (*value.value / *first - 1);
      continue;
    }
    Repeats of_side = steps.values(figure, side);
    value.value = median_of(of_side);
    if (side == 0) {
      base = std::move(of_side);
    } else {
      compare_steps(base, of_side, confidence, value);
    }
  }
  return out;
}

std::vector<SweepSetting> settings_of(const std::vector<SweepSide>& sides) {
  std::vector<nlohmann::json> flat;
  std::set<std::string> keys;
  for (const SweepSide& side : sides) {
    flat.push_back(flat_settings(side.runs.front().summary->config_json));
    if (flat.back().is_discarded()) flat.back() = nlohmann::json::object();
    for (const auto& [key, value] : flat.back().items()) keys.insert(key);
  }
  std::vector<SweepSetting> out;
  for (const std::string& key : keys) {
    const auto same = [&](const nlohmann::json& one) {
      return one.contains(key) && flat.front().contains(key) && one.at(key) == flat.front().at(key);
    };
    if (std::ranges::all_of(flat, same)) continue;
    SweepSetting& setting = out.emplace_back(SweepSetting{key, {}});
    for (const nlohmann::json& one : flat)
      setting.values.push_back(one.contains(key) ? to_text(one[key]) : std::string());
  }
  return out;
}

std::string change_text(const SweepSide& side, const SweepValue& value) {
  return fmt::format("{} by {:.1f} % ({:+.1f} to {:+.1f} %)", side.label, std::abs(*value.change_pct),
                     value.interval->low, value.interval->high);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i)
    out += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return out;
}

std::string verdict_of(const std::vector<SweepSide>& sides, const Sweep& result) {
  const std::vector<SweepValue>& steps = result.figures.front().values;
  std::vector<std::string> faster, slower, alike, unknown;
  for (std::size_t i = 1; i < sides.size(); ++i) {
    if (!steps[i].interval) {
      unknown.push_back(sides[i].label);
    } else if (!steps[i].differs()) {
      alike.push_back(sides[i].label);
    } else {
      (*steps[i].change_pct < 0 ? faster : slower).push_back(change_text(sides[i], steps[i]));
    }
  }
  std::string text;
  const auto say = [&](const std::string& words) { text += (text.empty() ? "" : " ") + words; };
  const std::string& first = sides.front().label;
  if (!faster.empty()) say(fmt::format("Faster than {}: {}.", first, joined(faster)));
  if (!slower.empty()) say(fmt::format("Slower than {}: {}.", first, joined(slower)));
  if (!alike.empty())
    say(fmt::format("No significant difference to {} in step time: {}.", first, joined(alike)));
  if (!unknown.empty())
    say(
        fmt::format("No verdict on {}: fewer than {} measured steps with the same number as one of {} (the "
                    "first of a run is not measured).",
                    joined(unknown), kFewestForInterval, first));
  if (std::ranges::any_of(sides, [](const SweepSide& side) {
        return std::ranges::any_of(side.runs, [](const Run& run) { return run.summary->link_gbps > 0; });
      }))
    say("Measured with an emulated link.");
  std::vector<std::string> simulated, lacking;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (result.simulated[i]) simulated.push_back(sides[i].label);
    if (!result.missing[i].empty()) lacking.push_back(sides[i].label);
  }
  if (!simulated.empty()) say(fmt::format("Simulated: {}.", joined(simulated)));
  if (!lacking.empty()) say(fmt::format("Not everything is there of {}.", joined(lacking)));
  return text;
}

}  // namespace

Sweep sweep(const std::vector<SweepSide>& sides) {
  if (sides.size() < 2 || std::ranges::any_of(sides, [](const SweepSide& side) { return side.runs.empty(); }))
    throw std::invalid_argument("sweep: two sides at least, each with a run");
  Sweep out;
  out.confidence = 1 - (1 - Sweep::kTogether) / static_cast<double>(sides.size() - 1);
  const Sides steps(sides);
  for (const StepFigure& figure : step_figures())
    out.figures.push_back(compare_figure(figure, sides, steps, out.confidence));
  out.settings = settings_of(sides);
  for (const SweepSide& side : sides) {
    out.measured_steps.push_back(fewest_steps(side.runs));
    out.simulated.push_back(side.runs.front().summary->simulated);
    out.missing.push_back(missing_in(side.runs));
  }
  out.verdict = verdict_of(sides, out);
  return out;
}

}  // namespace shardscope::analysis
