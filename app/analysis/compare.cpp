// Compares two runs: medians over steps with their spread, changed configuration keys, a verdict.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "app/analysis/compared_runs.h"
#include "app/analysis/digest.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/memory.h"
#include "app/analysis/missing_reason.h"
#include "app/analysis/paired_steps.h"
#include "app/analysis/statistics.h"
#include "app/analysis/summary.h"
#include "app/analysis/unlike_trainings.h"
#include "app/analysis/verdict_basis.h"
#include "app/store/names.h"

namespace shardscope::analysis {
namespace ev = shardscope::instrumentation;
namespace {

/// A figure by measured step, mean over ranks; one for each run of a side.
using Repeats = std::vector<ValuesByStep>;
struct StepSeries {
  Repeats step_ms, tokens_per_s, exposed_ms, overlap_pct, idle_ms, unrecorded_ms, fetch_wait_ms, flushes,
      tokens;
};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? NAN : sum / static_cast<double>(values.size());
}

void append_run(const Run& run, StepSeries& series) {
  ValuesByStep& step_ms = series.step_ms.emplace_back();
  ValuesByStep& tokens_per_s = series.tokens_per_s.emplace_back();
  ValuesByStep& tokens = series.tokens.emplace_back();
  bool warm_up = run.store->steps().size() > 1;
  for (const store::StepRow& row : run.store->steps()) {
    if (row.end_ns == store::kOpen || std::exchange(warm_up, false)) continue;
    const double ms = static_cast<double>(row.end_ns - row.begin_ns - row.paused_ns) * 1e-6;
    step_ms[row.step] = ms;
    if (row.tokens > 0 && ms > 0) {
      tokens_per_s[row.step] = static_cast<double>(row.tokens) / ms * 1e3;
      tokens[row.step] = static_cast<double>(row.tokens);
    }
  }
  for (Repeats* figure : {&series.exposed_ms, &series.overlap_pct, &series.idle_ms, &series.unrecorded_ms,
                          &series.fetch_wait_ms, &series.flushes})
    figure->emplace_back();
  const Digest made = run.digest == nullptr ? digest_of(*run.store) : Digest();
  const Digest& digest = run.digest != nullptr ? *run.digest : made;
  for (std::size_t i = digest.first_measured(); i < digest.steps().size(); ++i) {
    const StepDigest& step = digest.steps()[i];
    std::vector<double> exposed, overlap, idle, unrecorded, wait, flushes;
    for (const RankStep& rank : step.ranks) {
      flushes.push_back(static_cast<double>(rank.bucket_flushes));
      if (!rank.time.known()) continue;
      unrecorded.push_back(static_cast<double>(rank.time.unrecorded_ns) * 1e-6);
      // A partly unrecorded step would understate these times.
      if (rank.time.unrecorded_ns > 0) continue;
      exposed.push_back(static_cast<double>(rank.time.exposed_comm_ns) * 1e-6);
      idle.push_back(static_cast<double>(rank.time.idle_ns) * 1e-6);
      if (const auto pct = rank.time.overlap_pct()) overlap.push_back(*pct);
      wait.push_back(static_cast<double>(rank.fetch_wait_ns) * 1e-6);
    }
    const auto append = [&](Repeats& figure, const std::vector<double>& of_ranks) {
      if (!of_ranks.empty()) figure.back()[step.step] = mean(of_ranks);
    };
    append(series.exposed_ms, exposed);
    append(series.idle_ms, idle);
    append(series.unrecorded_ms, unrecorded);
    append(series.overlap_pct, overlap);
    if (records(*run.summary, ev::Capability::fetch_waits)) append(series.fetch_wait_ms, wait);
    // Buckets are recorded at detail `params`.
    if (step.volume) append(series.flushes, flushes);
  }
}

StepSeries step_series(const std::vector<Run>& runs) {
  StepSeries series;
  for (const Run& run : runs) append_run(run, series);
  return series;
}

std::optional<double> median(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(quantile(values, 0.5));
}

std::vector<double> all_of(const Repeats& repeats) {
  std::vector<double> out;
  for (const ValuesByStep& run : repeats) {
    for (const auto& [step, value] : run) out.push_back(value);
  }
  return out;
}

Difference of_steps(std::string metric, std::string unit, const Repeats& a, const Repeats& b,
                    bool lower_is_better) {
  const std::vector<double> all_a = all_of(a), all_b = all_of(b);
  Difference out{.metric = std::move(metric),
                 .unit = std::move(unit),
                 .a = median(all_a),
                 .b = median(all_b),
                 .spread_a = half_iqr(all_a),
                 .spread_b = half_iqr(all_b),
                 .lower_is_better = lower_is_better};
  out.interval = paired_steps(a, b).interval;
  return out;
}

/// Difference of the medians over runs, and whether it exceeds the spread of repeated runs.
Difference of_runs(std::string metric, std::string unit, const std::vector<double>& a,
                   const std::vector<double>& b, bool lower_is_better) {
  Difference out{.metric = std::move(metric),
                 .unit = std::move(unit),
                 .a = median(a),
                 .b = median(b),
                 .spread_a = half_iqr(a),
                 .spread_b = half_iqr(b),
                 .lower_is_better = lower_is_better,
                 .of_run = a.size() == 1 && b.size() == 1};
  if (a.size() == b.size() && a.size() > 1) {
    std::vector<double> differences;
    for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(b[i] - a[i]);
    out.interval = mean_interval(differences);
  }
  return out;
}

/// One value per run: the largest device peak over its ranks.
std::vector<double> peaks_mib(const std::vector<Run>& runs) {
  std::vector<double> peaks;
  for (const Run& run : runs) {
    if (const auto peak = device_peak_mib(*run.summary)) peaks.push_back(*peak);
  }
  return peaks;
}

std::vector<double> elements(const std::vector<Run>& runs) {
  std::vector<double> values;
  for (const Run& run : runs) {
    if (run.summary->elements_per_step) values.push_back(*run.summary->elements_per_step);
  }
  return values;
}

/// One value per run and figure, for operations that both sides have.
void add_bandwidths(const std::vector<Run>& a, const std::vector<Run>& b, std::vector<Difference>& metrics) {
  const auto values = [](const std::vector<Run>& runs, ev::CollectiveOp op,
                         std::optional<double> OpRow::*figure) {
    std::vector<double> out;
    for (const Run& run : runs) {
      for (const OpRow& row : run.summary->ops) {
        if (row.op == op && row.*figure) out.push_back(*(row.*figure));
      }
    }
    return out;
  };
  for (const OpRow& row : a.front().summary->ops) {
    for (const auto& [figure, name] : {std::pair{&OpRow::busbw_gbs, "busbw, transfer alone"},
                                       {&OpRow::busbw_waiting_gbs, "busbw, with waiting"}}) {
      const std::vector<double> of_a = values(a, row.op, figure), of_b = values(b, row.op, figure);
      if (of_a.empty() || of_b.empty()) continue;
      metrics.push_back(
          of_runs(fmt::format("{} {}", store::name_of(row.op), name), "GB/s", of_a, of_b, false));
      // It contains a measured time, which varies: one value per run is not significant.
      metrics.back().of_run = false;
    }
  }
}

std::vector<std::string> config_changes(const std::string& a_text, const std::string& b_text) {
  const nlohmann::json flat_a = flat_settings(a_text), flat_b = flat_settings(b_text);
  std::vector<std::string> changes;
  if (flat_a.is_discarded() || flat_b.is_discarded()) return changes;
  for (const auto& [key, value] : flat_a.items()) {
    const auto other = flat_b.find(key);
    if (other == flat_b.end()) {
      changes.push_back(fmt::format("{}: {} -> (absent)", key, to_text(value)));
    } else if (*other != value) {
      changes.push_back(fmt::format("{}: {} -> {}", key, to_text(value), to_text(*other)));
    }
  }
  for (const auto& [key, value] : flat_b.items()) {
    if (!flat_a.contains(key)) {
      changes.push_back(fmt::format("{}: (absent) -> {}", key, to_text(value)));
    }
  }
  return changes;
}

/// Of an attached run only what its framework was configured with is known, not what else its script did.
std::string no_config_changes(const Summary& a, const Summary& b) {
  const auto has_none = [](const Summary& of) {
    const nlohmann::json flat = flat_settings(of.config_json);
    return flat.is_discarded() || flat.empty();
  };
  if (has_none(a) && has_none(b)) return "No configuration was recorded.";
  if (a.framework.empty() && b.framework.empty()) return "The two configurations are the same.";
  return "No recorded setting differs. What else the scripts do differently is not recorded.";
}

std::string no_verdict(const VerdictBasis& basis, std::size_t pairs) {
  if (basis.steps_a == 0 || basis.steps_b == 0)
    return "No verdict: no completed steps to compare in one of the runs.";
  if (basis.steps_a >= kFewestForInterval && basis.steps_b >= kFewestForInterval)
    return fmt::format(
        "No verdict: the runs have {} measured steps with the same number, {} are needed; compare the same "
        "part of both.",
        pairs, kFewestForInterval);
  return fmt::format(
      "No verdict: too few measured steps (A {}, B {}; the first of a run is not measured) to tell a "
      "difference; let every run make at least {}.",
      basis.steps_a, basis.steps_b, kFewestForInterval + 1);
}

/// Digits that show the shorter of two times of one unit: "1.5", "0.07".
int digits_of(double a, double b) {
  const double least = std::min(std::abs(a), std::abs(b));
  return least >= 1 || (a == 0 && b == 0) ? 1 : least >= 0.01 || least == 0 ? 2 : 3;
}

/// The steps of two runs may train on different numbers of tokens; then their times are not comparable.
struct TokensOfStep {
  std::optional<double> a, b;
  std::string settings;  ///< the settings behind it that differ
  bool stated = false;   ///< already stated before the verdict, as a difference of the trainings
  [[nodiscard]] bool differ() const { return a && b && std::abs(*a - *b) > 0.005 * std::max(*a, *b); }
};

/// Those of the changed settings that determine the tokens of a step.
std::string settings_of_tokens(const std::vector<std::string>& changes) {
  constexpr std::array<std::string_view, 5> kKeys{"batch", "accumulation", "seq", "world", "micro"};
  constexpr std::size_t kMost = 3;
  std::string out;
  std::size_t named = 0;
  for (const std::string& change : changes) {
    const std::string_view key = std::string_view(change).substr(0, change.find(':'));
    const bool of_them = std::ranges::any_of(
        kKeys, [&](std::string_view part) { return key.find(part) != std::string_view::npos; });
    if (!of_them || named == kMost) continue;
    out += (out.empty() ? "" : ", ") + change;
    ++named;
  }
  return out;
}

/// "B is 12.0 % faster than A: ...", by tokens per second, since the steps differ in size.
std::string verdict_by_tokens(const Difference& step, const Difference& speed, const TokensOfStep& tokens) {
  const double percent = 100 / *speed.a;
  const double change = percent * speed.interval->middle;
  std::string text =
      speed.differs()
          ? fmt::format(
                "B is {:.1f} % {} than A in tokens per second (95 %: {:+.1f} to {:+.1f} %): {:.0f} "
                "against {:.0f}.",
                std::abs(change), change > 0 ? "faster" : "slower", percent * speed.interval->low,
                percent * speed.interval->high, *speed.b, *speed.a)
          : fmt::format(
                "No significant difference in tokens per second: {:.0f} against {:.0f} "
                "(95 %: {:+.1f} to {:+.1f} %).",
                *speed.a, *speed.b, percent * speed.interval->low, percent * speed.interval->high);
  text += " A step is not the same work in both";
  if (!tokens.stated) text += fmt::format(": {:.0f} tokens in A, {:.0f} in B", *tokens.a, *tokens.b);
  if (!tokens.settings.empty()) text += " (" + tokens.settings + ")";
  if (step.a && step.b) text += fmt::format("; it takes {:.1f} and {:.1f} ms", *step.a, *step.b);
  return text + ".";
}

std::string verdict(const Difference& step, const Difference& speed, const Difference& exposed,
                    const TokensOfStep& tokens, bool emulated) {
  const double percent = 100 / *step.a;
  const auto interval =
      fmt::format("{:+.1f} to {:+.1f} %", percent * step.interval->low, percent * step.interval->high);
  std::string text;
  if (tokens.differ() && speed.interval && *speed.a > 0) {
    text = verdict_by_tokens(step, speed, tokens);
  } else if (!step.differs()) {
    text = fmt::format("No significant difference in step time: {:.1f} ms against {:.1f} ms (95 %: {}).",
                       *step.a, *step.b, interval);
  } else {
    const double change = percent * step.interval->middle;
    text = fmt::format("B is {:.1f} % {} than A (95 %: {}): {:.1f} ms per step against {:.1f} ms.",
                       std::abs(change), change < 0 ? "faster" : "slower", interval, *step.b, *step.a);
  }
  if (exposed.a && exposed.b) {
    const int digits = digits_of(*exposed.a, *exposed.b);
    text += exposed.differs()
                ? fmt::format(" Exposed communication goes from {:.{}f} to {:.{}f} ms per step.", *exposed.a,
                              digits, *exposed.b, digits)
                : fmt::format(" Exposed communication is alike ({:.{}f} and {:.{}f} ms per step).",
                              *exposed.a, digits, *exposed.b, digits);
  }
  if (emulated) text += " Measured with an emulated link.";
  return text;
}

std::string method_of(const PairedSteps& steps) {
  if (!steps.interval) return {};
  return steps.repeats > 1
             ? fmt::format(
                   "Differences are of {} pairs of repeats ({} pairs of steps with the same number): an "
                   "interval of 95 % by Student's t over the repeats' medians.",
                   steps.repeats, steps.pairs)
             : fmt::format(
                   "Differences are of {} pairs of steps with the same number: an interval of 95 % by "
                   "Student's t over the medians of {} blocks of neighbouring steps.",
                   steps.pairs, steps.interval->blocks);
}

}  // namespace

bool Difference::differs() const noexcept {
  if (!a || !b) return false;
  if (interval) return interval->excludes_zero();
  return of_run && *a != *b;
}

std::optional<Difference::Shown> Difference::change() const noexcept {
  if (!a || !b || !std::isfinite(*a) || !std::isfinite(*b)) return std::nullopt;
  const bool points = unit == "%";
  if (!points && *a == 0) return std::nullopt;
  const double difference = *b - *a;
  return Shown{points ? difference : 100 * difference / std::fabs(*a), points,
               lower_is_better ? difference < 0 : difference > 0};
}

VerdictBasis verdict_basis(const std::vector<Run>& a, const std::vector<Run>& b) {
  return {fewest_steps(a), fewest_steps(b)};
}

Comparison compare(const std::vector<Run>& a, const std::vector<Run>& b) {
  Comparison result;
  if (a.empty() || b.empty()) {
    result.verdict = "No run to compare with.";
    return result;
  }
  const StepSeries sa = step_series(a), sb = step_series(b);
  result.metrics = {
      of_steps("step time", "ms", sa.step_ms, sb.step_ms, true),
      of_steps("tokens per second", "tokens/s", sa.tokens_per_s, sb.tokens_per_s, false),
      of_steps("exposed communication", "ms/step", sa.exposed_ms, sb.exposed_ms, true),
      of_steps("overlap", "%", sa.overlap_pct, sb.overlap_pct, false),
      of_steps("fetch wait", "ms/step", sa.fetch_wait_ms, sb.fetch_wait_ms, true),
      of_steps("idle", "ms/step", sa.idle_ms, sb.idle_ms, true),
      of_steps("unrecorded", "ms/step", sa.unrecorded_ms, sb.unrecorded_ms, true),
      of_runs("peak memory", "MiB", peaks_mib(a), peaks_mib(b), true),
      of_steps("bucket flushes", "per step", sa.flushes, sb.flushes, true),
      of_runs("elements communicated", "per step", elements(a), elements(b), true),
  };
  add_bandwidths(a, b, result.metrics);
  const Summary &first_a = *a.front().summary, &first_b = *b.front().summary;
  result.config_changes = config_changes(first_a.config_json, first_b.config_json);
  if (result.config_changes.empty()) result.no_config_changes = no_config_changes(first_a, first_b);
  const VerdictBasis basis = verdict_basis(a, b);
  const PairedSteps steps = paired_steps(sa.step_ms, sb.step_ms);
  result.unlike = unlike_trainings(a.front(), b.front());
  if (!result.unlike.empty()) result.verdict = "Not the same training" + unlike_text(result.unlike) + ". ";
  const bool tokens_stated = std::ranges::any_of(
      result.unlike, [](const std::string& what) { return what.starts_with(kUnlikeTokens); });
  const bool enough = basis.enough() && result.metrics[0].interval && *result.metrics[0].a > 0;
  result.verdict += enough ? verdict(result.metrics[0], result.metrics[1], result.metrics[2],
                                     {median(all_of(sa.tokens)), median(all_of(sb.tokens)),
                                      settings_of_tokens(result.config_changes), tokens_stated},
                                     first_a.link_gbps > 0 || first_b.link_gbps > 0)
                           : no_verdict(basis, steps.pairs);
  result.method = enough ? method_of(steps) : std::string();
  result.simulated_a = first_a.simulated;
  result.simulated_b = first_b.simulated;
  if (first_a.simulated || first_b.simulated) {
    result.verdict += first_a.simulated && first_b.simulated ? " Both runs are simulated."
                      : first_a.simulated                    ? " The first run is simulated."
                                                             : " The second run is simulated.";
  }
  result.missing_a = missing_in(a);
  result.missing_b = missing_in(b);
  if (!result.missing_a.empty() || !result.missing_b.empty()) {
    result.verdict += result.missing_b.empty()   ? " Of A not everything is there."
                      : result.missing_a.empty() ? " Of B not everything is there."
                                                 : " Of neither run everything is there.";
  }
  return result;
}

}  // namespace shardscope::analysis
