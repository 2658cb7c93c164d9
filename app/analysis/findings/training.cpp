// The training itself: diverging loss, skipped steps, a loss scale at its minimum.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/findings/findings.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/not_finite.h"
#include "app/analysis/statistics.h"
#include "app/analysis/watch.h"
#include "instrumentation/capability.h"

namespace shardscope::analysis::findings {

using ev::Severity;

namespace {

/// [Note: settings that what-if cannot try]
/// The effect of another learning rate or scale depends on the values of gradients. What-if predicts times
/// and sizes only, so these changes are not options of advice.h: they are advised as they are, and the
/// finding states why it predicts no gain.
void change(Finding& finding, std::string key, std::string value) {
  finding.changes.push_back({std::move(key), std::move(value)});
  finding.gain_basis = "not predicted: what-if replays times and sizes, not gradient values";
}

struct Diverged {
  std::string evidence;
  std::int64_t at_ns = 0;  ///< in run time
};

/// [Note: divergence]
/// The newest loss is not finite: it stays so once an update has made weights so, while a single batch may
/// have such a loss (labels that are all ignored) and the next ones not. Or the median of the last fifth of
/// the losses is twice the lowest median of an earlier fifth and 1.2 times that of the first one: neither
/// noise nor a temporary spike is. Or every loss of the last fifth is ten times the first one recorded: if
/// the first updates make it explode, all fifths are high and the last may be the lowest. Or gradients that
/// are not finite were applied.
std::optional<Diverged> loss_not_finite(const Facts& facts) {
  constexpr std::size_t kFewest = 2;  // in a run that goes on
  // A row without a recorded loss has a NaN there, too: what was recorded is in loss_not_finite, and of steps
  // whose events were deleted in the moments. These have times: an earlier attempt of a run has steps of the
  // same numbers.
  std::multimap<std::uint32_t, std::int64_t> moments;
  for (const store::Moment& moment : facts.store.moments()) {
    if (moment.kind == name_of(TriggerKind::loss_not_finite)) moments.emplace(moment.step, moment.at_ns);
  }
  const auto is_bad = [&](const store::StepRow& row) {
    if (row.skipped || std::isfinite(row.loss)) return false;  // that of a skipped step has changed nothing
    if (std::isinf(row.loss) || row.loss_not_finite) return true;
    const auto [first, last] = moments.equal_range(row.step);
    return std::any_of(first, last, [&](const auto& moment) {
      return moment.second >= row.begin_ns && (row.end_ns == store::kOpen || moment.second <= row.end_ns);
    });
  };
  std::size_t bad = 0, since = 0;
  const store::StepRow* first = nullptr;  // after which no loss is finite
  for (const store::StepRow& row : facts.store.steps()) {
    if (is_bad(row)) {
      if (since++ == 0) first = &row;
      ++bad;
    } else if (std::isfinite(row.loss) && !row.skipped) {
      since = 0;
    }
  }
  const bool goes_on = std::ranges::any_of(
      facts.store.ranks(), [](const store::RankRow& rank) { return rank.connected && !rank.finished; });
  if (since == 0 || (goes_on && since < kFewest)) return std::nullopt;
  return Diverged{
      fmt::format("The loss is not finite in {} of {} steps, and in every one recorded since step {}.", bad,
                  facts.store.steps().size(), first->step),
      first->begin_ns};
}

std::optional<Diverged> diverged_loss(const Facts& facts) {
  if (std::optional<Diverged> out = loss_not_finite(facts)) return out;
  constexpr std::size_t kFewest = 5;
  std::vector<double> losses;
  for (const double loss : facts.summary.loss) {
    if (std::isfinite(loss)) losses.push_back(loss);
  }
  const auto begin_of = [&](std::size_t index) {
    return index < facts.store.steps().size() ? facts.store.steps()[index].begin_ns : 0;
  };
  if (losses.size() < kFewest) return std::nullopt;
  const std::size_t window = std::max<std::size_t>(1, losses.size() / 5);
  const auto median_at = [&](std::size_t begin) {
    return quantile({losses.begin() + static_cast<std::ptrdiff_t>(begin),
                     losses.begin() + static_cast<std::ptrdiff_t>(begin + window)},
                    0.5);
  };
  const double last = median_at(losses.size() - window), first = median_at(0);
  double least = first;
  std::size_t least_at = 0;
  // At most some 200 positions: a day has a hundred thousand steps, and each position sorts a fifth of them.
  const std::size_t stride = std::max<std::size_t>(1, window / 50);
  for (std::size_t begin = 0; begin + 2 * window <= losses.size(); begin += stride) {
    const double median = median_at(begin);
    if (median < least) {
      least = median;
      least_at = begin;
    }
  }
  // A loss near 0, as a policy's is, may grow by any factor: no divergence from less than kSmall.
  constexpr double kFar = 10, kSmall = 0.1;
  const double begun = losses.front();
  const auto is_far = [&](double loss) { return begun >= kSmall && loss >= kFar * begun; };
  if (std::all_of(losses.end() - static_cast<std::ptrdiff_t>(window), losses.end(), is_far)) {
    // From the first step after which no loss is near the first one again.
    const auto& all = facts.summary.loss;
    std::size_t from = all.size();
    while (from > 0 && (!std::isfinite(all[from - 1]) || is_far(all[from - 1]))) --from;
    return Diverged{
        fmt::format("The loss began at {:.4g}, was {:.4g} at the most and is {:.4g} in the last {} "
                    "steps.",
                    begun, *std::ranges::max_element(losses), last, window),
        begin_of(from)};
  }
  if (least < kSmall || last < 2 * least || last < 1.2 * first) return std::nullopt;
  return Diverged{
      fmt::format("The loss began at {:.4g}, was {:.4g} at the least and is {:.4g} in the last {} steps.",
                  begun, least, last, window),
      begin_of(least_at + window)};
}

/// Time of the completed steps that end after this time, without pauses: what was trained after it is lost.
double ms_of_steps_from(const store::Store& store, std::int64_t at_ns) {
  std::int64_t ns = 0;
  for (const store::StepRow& step : store.steps()) {
    if (step.end_ns != store::kOpen && step.end_ns > at_ns)
      ns += step.end_ns - step.begin_ns - step.paused_ns;
  }
  return static_cast<double>(ns) * 1e-6;
}

/// The first step with gradients that were not finite and that was not skipped: later ones are consequences.
/// Whether an open step is skipped is unknown.
std::optional<FirstNotFinite> first_applied(const Facts& facts) {
  if (!facts.summary.not_finite || facts.summary.not_finite->events == 0) return std::nullopt;
  const auto steps = facts.store.steps();
  for (const FirstNotFinite& first : first_not_finite(facts.store)) {
    const auto row = std::ranges::find(steps, first.fields.step, &store::StepRow::step);
    if (row != steps.end() && row->end_ns != store::kOpen && !row->skipped) return first;
  }
  return std::nullopt;
}

}  // namespace

void divergence(const Facts& facts, Found& found) {
  std::optional<Diverged> diverged = diverged_loss(facts);
  const std::optional<FirstNotFinite> applied = first_applied(facts);
  if (!diverged && !applied) return;
  if (!diverged) {
    diverged = Diverged{fmt::format("The gradients of step {} were not finite, and it was not skipped.",
                                    applied->fields.step),
                        applied->at_ns};
  }
  auto& [evidence, at_ns] = *diverged;
  double largest = 0;
  for (const double norm : facts.summary.grad_norm) {
    if (std::isfinite(norm)) largest = std::max(largest, norm);
  }
  if (largest > 0) evidence += fmt::format(" The largest norm of the gradients is {:.4g}.", largest);
  if (applied) evidence += " " + text_of(facts.store, *applied);
  Finding finding{Severity::error, "The training diverges", evidence,
                  "Lower the learning rate, warm it up, or clip gradients; steps after this are wasted.",
                  at_ns};
  finding.id = "divergence";
  if (applied) {
    finding.rank = applied->rank;
    finding.at_ns = applied->at_ns;
  }
  if (const double ms = ms_of_steps_from(facts.store, finding.at_ns); finding.at_ns != 0 && ms > 0)
    finding.cost_once_ms = ms;
  if (facts.zero_keys) {
    const nlohmann::json config = parse_foreign(facts.summary.config_json);
    const nlohmann::json::json_pointer clipping("/gradient_clipping");
    // The rate in effect: a schedule with its own rate ignores the optimizer's.
    for (const char* key :
         {"scheduler.params.warmup_max_lr", "scheduler.params.cycle_max_lr", "optimizer.params.lr"}) {
      std::string path = "/" + std::string(key);
      std::ranges::replace(path, '.', '/');
      const nlohmann::json::json_pointer rate(path);
      if (!config.is_object() || !config.contains(rate) || !config[rate].is_number()) continue;
      change(finding, key, fmt::format("{:.3g}", config[rate].get<double>() / 10));
      break;
    }
    // The default is 1.0, in DeepSpeed as well.
    if (config.is_object() && config.contains(clipping) && config[clipping] == 0)
      change(finding, "gradient_clipping", "1.0");
  }
  found.add(std::move(finding));
}

namespace {

/// fp16.loss_scale above 0: a constant scale.
std::optional<double> static_scale(const store::Store& store) {
  if (!store.has_tables()) return std::nullopt;
  const nlohmann::json config = parse_foreign(store.tables().config_json);
  const nlohmann::json::json_pointer enabled("/fp16/enabled"), scale("/fp16/loss_scale");
  if (!config.is_object() || !config.contains(enabled) || config[enabled] != true) return std::nullopt;
  if (!config.contains(scale) || !config[scale].is_number()) return std::nullopt;
  const double value = config[scale].get<double>();
  return value > 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

namespace {

/// Adds to `finding` which parameter was first in its steps: evidence, rank and where to look. `concerns`:
/// whether a step is one of them.
void name_first_parameter(const Facts& facts, Finding& finding,
                          const std::function<bool(std::uint32_t)>& concerns) {
  std::vector<FirstNotFinite> firsts = first_not_finite(facts.store);
  std::erase_if(firsts, [&](const FirstNotFinite& first) { return !concerns(first.fields.step); });
  if (firsts.empty()) {
    const auto why = ev::why_not_recorded(facts.store.tables(), ev::Capability::not_finite_gradients);
    finding.evidence += fmt::format(" Which parameter was first is not known: {}.",
                                    why.value_or("no event of these steps names it"));
    return;
  }
  // The one that is first most often; of several the earliest.
  std::map<std::uint32_t, std::size_t> count;
  for (const FirstNotFinite& first : firsts) ++count[first.fields.param];
  const FirstNotFinite& named = *std::ranges::max_element(
      firsts, {}, [&](const FirstNotFinite& first) { return count[first.fields.param]; });
  finding.evidence += " " + text_of(facts.store, named);
  if (firsts.size() > 1) {
    finding.evidence += fmt::format(" It was first in {} of {} steps in which one is named.",
                                    count[named.fields.param], firsts.size());
  }
  finding.rank = named.rank;
  finding.at_ns = named.at_ns;
}

}  // namespace

namespace {

/// Total duration of the steps with these numbers; nullopt if none has ended.
std::optional<double> time_of_steps(const Facts& facts, const std::set<std::uint32_t>& numbers) {
  std::optional<double> sum;
  for (const StepDigest& step : facts.digest.steps()) {
    if (numbers.contains(step.step)) sum = sum.value_or(0) + length_ms(step);
  }
  return sum;
}

/// The minimum of a dynamic scale.
double least_scale(const nlohmann::json& config) {
  const nlohmann::json::json_pointer least("/fp16/min_loss_scale");
  return config.is_object() && config.contains(least) && config[least].is_number()
             ? config[least].get<double>()
             : 1;
}

}  // namespace

void overflows(const Facts& facts, Found& found) {
  const store::Store& store = facts.store;
  std::set<std::uint32_t> skipped_steps;
  std::int64_t first_ns = 0;
  std::vector<double> scales;  // of the steps with a scale
  for (const store::StepRow& step : store.steps()) {
    if (std::isfinite(step.loss_scale)) scales.push_back(step.loss_scale);
    if (!step.skipped) continue;
    if (skipped_steps.empty()) first_ns = step.begin_ns;
    skipped_steps.insert(step.step);
  }
  const std::uint64_t skipped = skipped_steps.size();
  if (skipped == 0) return;
  std::string evidence = "No loss scale was in use that could be lowered.";
  std::string next =
      "A few at the start are normal; if they go on, look at the first parameter with inf or nan.";
  if (const std::optional<double> fixed = static_scale(store)) {
    evidence = fmt::format("fp16.loss_scale keeps the scale at {:.15g}: it is not lowered after an overflow.",
                           *fixed);
    next = fmt::format(
        "Set fp16.loss_scale to 0, so that the scale is found and follows the gradients, or below {:.15g}; "
        "if steps are still skipped, look at the first parameter with inf or nan.",
        *fixed);
  } else if (!scales.empty() && *std::max_element(scales.begin(), scales.end()) > 1) {
    std::size_t falls = 0;
    for (std::size_t i = 1; i < scales.size(); ++i) falls += scales[i] < scales[i - 1] ? 1 : 0;
    const bool at_least =
        facts.zero_keys && scales.back() <= least_scale(parse_foreign(facts.summary.config_json));
    evidence =
        falls == 0 && at_least
            ? fmt::format("The loss scale stayed at {:.15g}, its minimum (fp16.min_loss_scale).",
                          scales.back())
        : falls == 0
            ? fmt::format("The loss scale did not fall from {:.15g}: its hysteresis lets overflows pass.",
                          scales.back())
            : fmt::format("The loss scale was lowered {} time{}, to {:.15g} at the least.", falls,
                          falls == 1 ? "" : "s", *std::min_element(scales.begin(), scales.end()));
  }
  Finding finding{skipped * 5 > store.steps().size() ? Severity::warning : Severity::info,
                  fmt::format("{} of {} steps were skipped after an overflow", skipped, store.steps().size()),
                  evidence,
                  next,
                  first_ns,
                  ev::kNoId};
  finding.id = "overflow";
  finding.cost_once_ms = time_of_steps(facts, skipped_steps);
  if (static_scale(store)) change(finding, "fp16.loss_scale", "0");
  name_first_parameter(facts, finding, [&](std::uint32_t step) { return skipped_steps.contains(step); });
  found.add(std::move(finding));
}

/// A dynamic scale is at its minimum and steps are still skipped.
void loss_scale_floor(const Facts& facts, Found& found) {
  const nlohmann::json config = parse_foreign(facts.summary.config_json);
  if (!config.is_object() || !facts.zero_keys) return;
  const double floor = least_scale(config);
  std::set<std::uint32_t> skipped_steps;
  std::uint64_t turns = 0;
  std::int64_t first_ns = 0;
  store::StepRow again;  // the first step that overflowed after a scale was raised
  double before = NAN;
  bool fell = false;
  for (const store::StepRow& step : facts.store.steps()) {
    if (!std::isfinite(step.loss_scale)) continue;
    if (step.skipped && step.loss_scale <= floor && before <= floor) {
      if (skipped_steps.empty()) first_ns = step.begin_ns;
      skipped_steps.insert(step.step);
    }
    if (step.loss_scale < before) fell = true;
    if (step.loss_scale > before && fell) {
      ++turns;
      fell = false;
    }
    if (step.skipped && turns > 0 && again.end_ns == store::kOpen) again = step;
    before = step.loss_scale;
  }
  constexpr std::uint64_t kOscillates = 3;
  // Our runtime and DeepSpeed end a run that overflows at the minimum; that step is never completed.
  const bool ended = std::ranges::any_of(facts.store.messages(), [](const store::Message& message) {
    return message.text.find("Current loss scale already at minimum") != std::string::npos;
  });
  if (ended && before <= floor && !facts.store.steps().empty()) {
    const store::StepRow& last = facts.store.steps().back();
    if (skipped_steps.empty()) first_ns = last.begin_ns;
    skipped_steps.insert(last.step);
  }
  if (!skipped_steps.empty()) {
    Finding finding{
        Severity::error,
        fmt::format("The loss scale is at its least, {:.4g}, and gradients still overflow", floor),
        fmt::format("Gradients overflowed in {} step{} at it{}.{}", skipped_steps.size(),
                    skipped_steps.size() == 1 ? "" : "s", ended ? "; the last ended the run" : "",
                    floor == 1 ? " Even unscaled gradients overflow." : ""),
        floor > 1
            ? "Let the scale fall further: set fp16.min_loss_scale to 1. If gradients overflow there too, "
              "look at the first parameter with inf or nan."
            : "A smaller scale cannot help: look at the first parameter with inf or nan, lower the learning "
              "rate, or train in bf16, whose range is that of fp32.",
        first_ns};
    finding.id = "loss_scale_floor";
    if (floor > 1) change(finding, "fp16.min_loss_scale", "1");
    finding.cost_once_ms = time_of_steps(facts, skipped_steps);
    name_first_parameter(facts, finding, [&](std::uint32_t step) { return skipped_steps.contains(step); });
    found.add(std::move(finding));
  } else if (turns >= kOscillates && found.has("overflow")) {
    Finding finding{Severity::info, fmt::format("The loss scale falls and rises again: {} times", turns),
                    "Each time it is raised gradients overflow and a step is skipped.",
                    "Let it stay longer before it is raised."};
    finding.id = "loss_scale_floor";
    if (again.end_ns != store::kOpen) {
      finding.at_ns = again.begin_ns;
      finding.until_ns = again.end_ns;
    }
    const nlohmann::json::json_pointer window("/fp16/loss_scale_window");
    const double steps =
        config.contains(window) && config[window].is_number() ? config[window].get<double>() : 1000;
    if (const Finding* const overflow = found.find("overflow")) finding.cost_once_ms = overflow->cost_once_ms;
    change(finding, "fp16.loss_scale_window", fmt::format("{:.0f}", steps * 4));
    found.add(std::move(finding));
  }
}

}  // namespace shardscope::analysis::findings
