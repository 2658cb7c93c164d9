#include "app/analysis/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "app/analysis/digest.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/statistics.h"
#include "app/analysis/step_figures.h"

namespace shardscope::analysis {
namespace {

std::string metric_names() {
  std::string out;
  for (const StepFigure& metric : step_figures())
    out += fmt::format("{}{}", out.empty() ? "" : ", ", metric.name);
  return out;
}

double middle_of(const std::vector<double>& values) { return quantile(values, 0.5); }

/// Within or beyond the limit, or undecided if the interval contains the limit.
Checked::Outcome outcome_of(const Checked& one, bool lower_is_better) {
  const double low = one.interval ? one.interval->low : *one.change_pct;
  const double high = one.interval ? one.interval->high : *one.change_pct;
  const double least = lower_is_better ? low : -high, most = lower_is_better ? high : -low;
  if (least > one.limit.percent) return Checked::Outcome::beyond;
  return most > one.limit.percent ? Checked::Outcome::undecided : Checked::Outcome::within;
}

void check_steps(const StepFigure& metric, const ValuesByStep& base, const ValuesByStep& run, Checked& out) {
  std::vector<double> of_base, of_run, differences;
  for (const auto& [step, value] : base) {
    const auto other = run.find(step);
    if (other == run.end()) continue;
    of_base.push_back(value);
    of_run.push_back(other->second);
    differences.push_back(other->second - value);
  }
  if (differences.size() < kFewestForInterval) {
    out.why = fmt::format(
        "{} measured steps that both runs have; {} are needed (the first of a run is not measured)",
        differences.size(), kFewestForInterval);
    return;
  }
  out.base = middle_of(of_base);
  out.run = middle_of(of_run);
  if (*out.base <= 0) {
    out.why = "the baseline has none of it: there is no part of it to compare with";
    return;
  }
  out.interval = block_interval(differences);
  for (double ConfidenceInterval::*end :
       {&ConfidenceInterval::middle, &ConfidenceInterval::low, &ConfidenceInterval::high})
    (*out.interval).*end *= 100 / *out.base;
  out.change_pct = out.interval->middle;
  out.outcome = outcome_of(out, metric.lower_is_better);
  // The medians may differ by another percentage than the paired steps do, since steps vary.
  out.why = fmt::format(
      "{:+.1f} % in pairs of steps (95 %: {:+.1f} to {:+.1f} %, {} pairs in {} blocks), the figures are "
      "medians",
      *out.change_pct, out.interval->low, out.interval->high, differences.size(), out.interval->blocks);
  if (out.outcome == Checked::Outcome::undecided) {
    out.why += ": the limit lies inside the interval; more steps, or a quieter machine, tell";
  } else if (!out.interval->excludes_zero()) {
    out.why += ": no significant difference";
  }
}

void check_one(const StepFigure& metric, const Summary& base, const Summary& run, Checked& out) {
  out.base = metric.one(base);
  out.run = metric.one(run);
  if (!out.base || !out.run || *out.base <= 0) {
    out.why = out.base && out.run ? "the baseline has none of it" : "it was not recorded in both runs";
    return;
  }
  out.change_pct = 100 * (*out.run / *out.base - 1);
  out.outcome = outcome_of(out, metric.lower_is_better);
  out.why = fmt::format("{:+.1f} %", *out.change_pct);
}

std::string escape_xml(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

}  // namespace

const char* name_of(Checked::Outcome outcome) {
  switch (outcome) {
    case Checked::Outcome::within:
      return "within";
    case Checked::Outcome::beyond:
      return "beyond";
    case Checked::Outcome::undecided:
      return "undecided";
    case Checked::Outcome::unknown:
      return "unknown";
  }
  return "";
}

std::vector<Limit> parse_limits(const std::string& text) {
  std::vector<Limit> out;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    if (std::ranges::none_of(step_figures(), [&](const StepFigure& metric) { return name == metric.name; }))
      throw std::invalid_argument(fmt::format("\"{}\": not a figure; use {}", name, metric_names()));
    if (std::ranges::any_of(out, [&](const Limit& limit) { return name == limit.metric; }))
      throw std::invalid_argument(fmt::format("\"{}\": given twice; give one limit for each figure", name));
    double value = -1;
    const std::string number = equals == std::string::npos ? std::string() : part.substr(equals + 1);
    const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc{} || std::string_view(rest) != "%" || !(value >= 0) || !std::isfinite(value))
      throw std::invalid_argument(
          fmt::format("\"{}\": not NAME=NUMBER% with a number from 0 on, for example step_ms=5%", part));
    out.push_back({name, value});
  }
  return out;
}

std::vector<Checked> check(const Run& base, const Run& run, const std::vector<Limit>& limits) {
  const Digest made_base = base.digest == nullptr ? digest_of(*base.store) : Digest(),
               made_run = run.digest == nullptr ? digest_of(*run.store) : Digest();
  const Digest& digest_base = base.digest != nullptr ? *base.digest : made_base;
  const Digest& digest_run = run.digest != nullptr ? *run.digest : made_run;
  std::vector<Checked> out;
  for (const Limit& limit : limits) {
    const auto figures = step_figures();
    const auto metric =
        std::ranges::find_if(figures, [&](const StepFigure& one) { return limit.metric == one.name; });
    if (metric == figures.end()) continue;
    Checked one{.limit = limit, .unit = metric->unit};
    if (metric->steps != nullptr) {
      check_steps(*metric, metric->steps(*base.store, digest_base), metric->steps(*run.store, digest_run),
                  one);
    } else {
      check_one(*metric, *base.summary, *run.summary, one);
    }
    out.push_back(std::move(one));
  }
  return out;
}

std::string check_json(const std::vector<Checked>& checked) {
  const auto maybe = [](const std::optional<double>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
  };
  nlohmann::json out = nlohmann::json::array();
  for (const Checked& one : checked) {
    out.push_back({{"metric", one.limit.metric},
                   {"unit", one.unit},
                   {"limit_pct", one.limit.percent},
                   {"base", maybe(one.base)},
                   {"run", maybe(one.run)},
                   {"change_pct", maybe(one.change_pct)},
                   {"low_pct", one.interval ? nlohmann::json(one.interval->low) : nlohmann::json(nullptr)},
                   {"high_pct", one.interval ? nlohmann::json(one.interval->high) : nlohmann::json(nullptr)},
                   {"outcome", name_of(one.outcome)},
                   {"why", one.why}});
  }
  return to_text(out, 2) + "\n";
}

std::string check_junit(const std::vector<Checked>& checked, const std::string& name) {
  const auto count = [&](Checked::Outcome outcome) {
    return std::ranges::count(checked, outcome, &Checked::outcome);
  };
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"shardscope check\" tests=\"{}\" "
      "failures=\"{}\" "
      "errors=\"{}\">\n",
      checked.size(), count(Checked::Outcome::beyond),
      count(Checked::Outcome::undecided) + count(Checked::Outcome::unknown));
  for (const Checked& one : checked) {
    out += fmt::format("  <testcase classname=\"{}\" name=\"{}\">", escape_xml(name),
                       escape_xml(one.limit.metric));
    const std::string message =
        escape_xml(fmt::format("{}: {}, limit {:.4g} %", one.limit.metric, one.why, one.limit.percent));
    if (one.outcome == Checked::Outcome::beyond) out += fmt::format("<failure message=\"{}\"/>", message);
    if (one.outcome == Checked::Outcome::undecided || one.outcome == Checked::Outcome::unknown)
      out += fmt::format("<error message=\"{}\"/>", message);
    out += "</testcase>\n";
  }
  return out + "</testsuite>\n";
}

}  // namespace shardscope::analysis
