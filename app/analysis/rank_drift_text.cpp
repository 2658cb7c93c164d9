#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "app/analysis/quantity_text.h"
#include "app/analysis/rank_drift.h"

namespace shardscope::analysis {
namespace {

std::string hours_text(std::int64_t ns) {
  const double hours = static_cast<double>(ns) / 3600e9;
  return hours < 1 ? time_text(ns) : fmt::format("{:.1f} h", hours);
}

/// Two significant digits for small values, integers for large ones: "0.42", "3.1", "120".
std::string percent_text(double value) {
  const double size = std::abs(value);
  return size < 1    ? fmt::format("{:.2f}", value)
         : size < 10 ? fmt::format("{:.1f}", value)
                     : fmt::format("{:.0f}", value);
}

std::string range_text(const ConfidenceInterval& interval) {
  return percent_text(interval.low) + " to " + percent_text(interval.high);
}

nlohmann::json interval_json(const std::optional<ConfidenceInterval>& interval) {
  if (!interval) return nullptr;
  return {{"middle", interval->middle}, {"low", interval->low}, {"high", interval->high}};
}

}  // namespace

const char* name_of(DriftShape shape) noexcept {
  switch (shape) {
    case DriftShape::always:
      return "always";
    case DriftShape::at_once:
      return "at_once";
    case DriftShape::grows:
      return "grows";
  }
  return "";
}

std::string text_of(const RankDrift& drift) {
  std::string text;
  if (drift.shape == DriftShape::always || drift.since_high_ns <= drift.since_low_ns) {
    text = "Since the first hour that is kept";
  } else {
    text = fmt::format("Since {} of the run ({} to {}, from step {} on)", hours_text(drift.since_ns),
                       hours_text(drift.since_low_ns), hours_text(drift.since_high_ns), drift.since_step);
  }
  text += " its own time of a step, against the median of the others, ";
  // Intervals hold at 95 % for all ranks and stretches together: a single one is wider than usual.
  constexpr const char* kShared = "95 % shared among ranks and stretches";
  if (drift.pct_per_hour) {
    text += fmt::format("grew by {} % each hour ({} %, {}), to {:.1f} % more",
                        percent_text(drift.pct_per_hour->middle), range_text(*drift.pct_per_hour), kShared,
                        drift.last_pct);
  } else if (drift.change_pct && drift.before_pct && drift.excess_pct) {
    text += fmt::format("was {:.1f} % longer at once, {:.1f} % before: {:.1f} points more ({}, {})",
                        drift.excess_pct->middle, *drift.before_pct, drift.change_pct->middle,
                        range_text(*drift.change_pct), kShared);
  } else if (drift.excess_pct) {
    text += fmt::format("was {:.1f} % longer ({} %, {})", drift.excess_pct->middle,
                        range_text(*drift.excess_pct), kShared);
  }
  text += fmt::format(": {:.1f} instead of {:.1f} ms.", drift.own_ms, drift.others_ms);
  if (drift.over) text += fmt::format(" It lasted until {}", hours_text(drift.until_ns));
  if (drift.over && drift.after_pct) {
    text += fmt::format("; since then its own time is {} % longer than that of the others ({} %, 95 %)",
                        percent_text(drift.after_pct->middle), range_text(*drift.after_pct));
  }
  if (drift.over) text += ".";
  return text;
}

nlohmann::json drifts_json(const std::optional<std::vector<RankDrift>>& drifts) {
  if (!drifts) return nullptr;
  nlohmann::json out = nlohmann::json::array();
  for (const RankDrift& drift : *drifts) {
    out.push_back(
        {{"rank", drift.rank},
         {"shape", name_of(drift.shape)},
         {"since_ns", drift.since_ns},
         {"since_low_ns", drift.since_low_ns},
         {"since_high_ns", drift.since_high_ns},
         {"since_step", drift.since_step},
         {"until_ns", drift.until_ns},
         {"over", drift.over},
         {"excess_pct", interval_json(drift.excess_pct)},
         {"before_pct", drift.before_pct ? nlohmann::json(*drift.before_pct) : nlohmann::json(nullptr)},
         {"change_pct", interval_json(drift.change_pct)},
         {"after_pct", interval_json(drift.after_pct)},
         {"last_pct", drift.last_pct},
         {"pct_per_hour", interval_json(drift.pct_per_hour)},
         {"own_ms", drift.own_ms},
         {"others_ms", drift.others_ms}});
  }
  return out;
}

}  // namespace shardscope::analysis
