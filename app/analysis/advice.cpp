#include "app/analysis/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "app/analysis/quantity_text.h"

namespace shardscope::analysis {
namespace {

constexpr double kLeastGain = 0.02, kAsGood = 0.01, kLeastGainMs = 0.1;
/// Fractions of the device's peak and of the largest gain.
constexpr double kMostMorePeak = 1.1, kPartOfGain = 0.5;

std::string sets_text(const std::vector<Change>& changes) {
  std::string text;
  for (const Change& change : changes)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", change.key, change.value);
  return text;
}

/// Replays each set of changes once.
class Trials {
 public:
  explicit Trials(const Player& player) : player_(player) {}
  const PlayOutcome& of(const std::vector<Change>& changes) {
    const std::string text = sets_text(changes);
    const auto known = outcomes_.find(text);
    return known != outcomes_.end() ? known->second : outcomes_.emplace(text, player_(changes)).first->second;
  }
  /// Null if it was not replayed.
  [[nodiscard]] const PlayOutcome* known(const std::vector<Change>& changes) const {
    const auto at = outcomes_.find(sets_text(changes));
    return at != outcomes_.end() ? &at->second : nullptr;
  }

 private:
  const Player& player_;
  std::map<std::string, PlayOutcome> outcomes_;
};

/// What a finding costs: time, if it costs any.
enum class About : std::uint8_t { time, communication, memory };
About about(const Finding& finding) {
  if (finding.cost_ms || !finding.cost_bytes) return About::time;
  return finding.bytes_of == BytesOf::memory ? About::memory : About::communication;
}
bool saves_memory(const Finding& finding) { return about(finding) == About::memory; }

double value_of(const PlayOutcome& outcome, bool memory) {
  return memory ? static_cast<double>(outcome.peak_bytes) : outcome.step_ms;
}

/// "model states and gathered parameters of a rank stay", or what they become; empty where not known.
std::string held_text(const PlayOutcome& before, const PlayOutcome& after) {
  if (before.held_bytes <= 0 || after.held_bytes <= 0) return {};
  if (after.held_bytes == before.held_bytes) return "model states and gathered parameters are unchanged";
  return fmt::format("model states and gathered parameters of {} become {}", bytes_text(before.held_bytes),
                     bytes_text(after.held_bytes));
}

/// How sure a prediction is.
std::string error_text(const PlayOutcome& outcome) {
  if (!outcome.model_error_pct) return {};
  return fmt::format("; replayed as recorded a step is {:+.1f} % off", *outcome.model_error_pct);
}

std::string peak_text(const PlayOutcome& before, const PlayOutcome& after) {
  if (const std::string held = held_text(before, after); !held.empty()) return "; " + held;
  if (before.peak_bytes <= 0 || after.peak_bytes <= 0) return {};
  if (after.peak_bytes == before.peak_bytes) return "; the device's peak stays";
  return fmt::format("; the device's peak of {} becomes {}", bytes_text(before.peak_bytes),
                     bytes_text(after.peak_bytes));
}

/// A finding with advice; settle() withdraws advice that contradicts another's.
struct Chosen {
  Finding* finding = nullptr;
  double gain = 0;  ///< fraction of the time or memory
};

struct Tried {
  const Advice* option = nullptr;
  PlayOutcome outcome;
};

/// The best of the options that satisfy `counts`, the first of equal ones; null if none does.
template <typename Counts>
const Tried* best_of(const std::vector<Tried>& tried, bool memory, const Counts& counts) {
  const Tried* best = nullptr;
  for (const Tried& one : tried) {
    if (counts(one) &&
        (best == nullptr || value_of(one.outcome, memory) < (1 - kAsGood) * value_of(best->outcome, memory)))
      best = &one;
  }
  return best;
}

/// Options that were not replayed, and why.
struct Unplayed {
  const Advice* first = nullptr;  ///< the first valid one
  std::size_t count = 0;
  std::string reason, invalid_reason;  ///< of the first valid and the first invalid one
  void add(const Advice& option, const PlayOutcome& outcome) {
    if (outcome.invalid) {
      if (invalid_reason.empty()) invalid_reason = outcome.refused;
      return;
    }
    if (count++ > 0) return;
    first = &option;
    reason = outcome.refused;
  }
};

void take(Finding& finding, const Advice& option) {
  finding.changes = option.changes;
  finding.next_step = option.next_step;
}

/// Withdraws the advice: the finding's other next step remains.
void withdraw(Finding& finding) {
  finding.changes.clear();
  if (finding.otherwise.empty()) {
    finding.next_step = "No setting that was tried helps.";
    finding.severity = std::min(finding.severity, instrumentation::Severity::info);
  } else {
    finding.next_step = finding.otherwise;
  }
}

void decide_unplayed(Finding& finding, const Unplayed& unplayed, std::vector<Chosen>& chosen) {
  if (unplayed.first == nullptr) {
    withdraw(finding);
    finding.gain_basis = "what-if: no run can have it: " + unplayed.invalid_reason;
    return;
  }
  take(finding, *unplayed.first);
  finding.gain_basis = "not predicted: " + unplayed.reason;
  chosen.push_back({&finding, 0});
}

/// The option to advise; if none gains, the best one, which shows that no setting would have helped. Null if
/// none was replayed.
const Tried* picked_of(const std::vector<Tried>& tried, const PlayOutcome& recorded, bool memory) {
  const Tried* best = best_of(tried, memory, [](const Tried&) { return true; });
  const auto gain_of = [&](const Tried& one) {
    return value_of(recorded, memory) - value_of(one.outcome, memory);
  };
  if (best == nullptr || gain_of(*best) <= 0) return best;
  const auto frugal = [&](const Tried& one) {
    return static_cast<double>(one.outcome.peak_bytes) <=
               kMostMorePeak * static_cast<double>(recorded.peak_bytes) &&
           static_cast<double>(one.outcome.held_bytes) <=
               kMostMorePeak * static_cast<double>(recorded.held_bytes) &&
           gain_of(one) >= kPartOfGain * gain_of(*best);
  };
  const Tried* const small = best_of(tried, memory, frugal);
  return small != nullptr ? small : best;
}

void decide(Finding& finding, Trials& trials, const PlayOutcome& recorded, std::vector<Chosen>& chosen) {
  const bool memory = saves_memory(finding);
  const double before = value_of(recorded, memory);
  std::vector<Tried> tried;
  Unplayed unplayed;
  for (const Advice& option : finding.options) {
    const PlayOutcome& one = trials.of(option.changes);
    if (one.refused.empty()) {
      tried.push_back({&option, one});
    } else {
      unplayed.add(option, one);
    }
  }
  const Tried* const picked = picked_of(tried, recorded, memory);
  if (picked == nullptr) return decide_unplayed(finding, unplayed, chosen);
  const PlayOutcome& outcome = picked->outcome;
  const double gain = before - value_of(outcome, memory);
  const bool gains = gain >= kLeastGain * before && (memory || gain >= kLeastGainMs);
  const bool no_loss = about(finding) == About::communication && gain >= -kAsGood * before;
  if (gains || no_loss) {
    take(finding, *picked->option);
    finding.gain_basis =
        memory ? fmt::format("what-if: {} become {}; a step of {:.1f} ms becomes {:.1f} ms",
                             bytes_text(recorded.peak_bytes), bytes_text(outcome.peak_bytes),
                             recorded.step_ms, outcome.step_ms)
               : fmt::format("what-if: {:.1f} ms become {:.1f} ms{}{}", recorded.step_ms, outcome.step_ms,
                             peak_text(recorded, outcome), error_text(outcome));
    if (!gains)
      finding.gain_basis += fmt::format(
          "; no step is predicted to be shorter: it is advised for the {} that it saves, not for time",
          bytes_cost_text(finding));
    if (memory) {
      finding.gain_bytes = recorded.peak_bytes - outcome.peak_bytes;
    } else if (gains) {
      finding.gain_ms = gain;
    }
    chosen.push_back({&finding, gain / before});
    return;
  }
  const std::string left = unplayed.count == 0
                               ? std::string()
                               : fmt::format("; {} {} not played: {}", unplayed.count,
                                             unplayed.count == 1 ? "was" : "were", unplayed.reason);
  // Added to 0, so that nothing is not "-0.0".
  const double change = std::round(1000 * (value_of(outcome, memory) / before - 1)) / 10 + 0.0;
  finding.gain_basis = fmt::format(
      "what-if: of {} change{} none makes {} {:.0f} % {}; the best, {}, {:+.1f} %{}", tried.size(),
      tried.size() == 1 ? "" : "s", memory ? "the peak" : "a step", 100 * kLeastGain,
      memory ? "smaller" : "shorter", sets_text(picked->option->changes), change, left);
  withdraw(finding);
}

/// Of an option that saves memory, by a player that knows no peak.
std::string without_peak(const PlayOutcome& recorded, const PlayOutcome& outcome) {
  std::string text = "not predicted: a replay of this run has times, not the device's peak";
  if (!outcome.refused.empty()) return text + "; " + outcome.refused;
  const std::string held = held_text(recorded, outcome);
  return text + fmt::format("; {}{}a step of {:.1f} ms becomes {:.1f} ms{}", held, held.empty() ? "" : ", ",
                            recorded.step_ms, outcome.step_ms, error_text(outcome));
}

void add_tried(const Finding& finding, Trials& trials, TriedAdvice& out) {
  for (const Advice& option : finding.options) {
    const bool known = std::ranges::any_of(out.options, [&](const TriedOption& one) {
      return one.finding == finding.id && one.changes == option.changes;
    });
    if (known) continue;
    // Options that were not replayed, as of a run that cannot be, are not replayed for this.
    const PlayOutcome* const outcome = trials.known(option.changes);
    PlayOutcome none;
    none.refused = out.recorded.refused.empty() ? "not played" : out.recorded.refused;
    out.options.push_back({finding.id, option.changes, outcome != nullptr ? *outcome : none,
                           finding.changes == option.changes});
  }
}

/// Whether both set the same key to different values.
bool contradict(const Finding& a, const Finding& b) {
  return std::ranges::any_of(a.changes, [&](const Change& of_a) {
    return std::ranges::any_of(
        b.changes, [&](const Change& of_b) { return of_a.key == of_b.key && of_a.value != of_b.value; });
  });
}

/// Orders findings: time before communication before memory, then by gain. Later ones that contradict an
/// earlier one are withdrawn.
void settle(std::vector<Chosen>& chosen) {
  std::ranges::stable_sort(chosen, [](const Chosen& a, const Chosen& b) {
    return std::pair(about(*a.finding), -a.gain) < std::pair(about(*b.finding), -b.gain);
  });
  for (std::size_t i = 1; i < chosen.size(); ++i) {
    Finding& finding = *chosen[i].finding;
    for (std::size_t k = 0; k < i; ++k) {
      const Finding& first = *chosen[k].finding;
      if (!contradict(first, finding)) continue;
      finding.next_step = fmt::format("First what \"{}\" advises: it sets the same key.{}{}", first.title,
                                      finding.otherwise.empty() ? "" : " ", finding.otherwise);
      finding.changes.clear();
      finding.gain_ms.reset();
      finding.gain_bytes.reset();
      finding.gain_basis.clear();
      break;
    }
  }
}

}  // namespace

std::string gain_text(const Finding& finding) {
  if (finding.gain_ms) return fmt::format("{:.1f} ms of a step ({})", *finding.gain_ms, finding.gain_basis);
  if (finding.gain_bytes) return fmt::format("{} ({})", bytes_text(*finding.gain_bytes), finding.gain_basis);
  return finding.gain_basis;
}

std::string bytes_cost_text(const Finding& finding) {
  if (!finding.cost_bytes) return {};
  return bytes_text(*finding.cost_bytes) +
         (finding.bytes_of == BytesOf::communication ? " of communication in a step" : "");
}

void advise(Finding& finding, Advice option) {
  if (finding.options.empty()) take(finding, option);
  finding.options.push_back(std::move(option));
}

TriedAdvice try_advice(std::vector<Finding>& findings, const Player& player) {
  Trials trials(player);
  TriedAdvice out;
  std::vector<Chosen> chosen;
  for (Finding& finding : findings) {
    if (finding.options.empty()) continue;
    take(finding, finding.options.front());
    finding.gain_ms.reset();
    finding.gain_bytes.reset();
    if (!player) {
      out.recorded.refused = "nothing was played; `shardscope findings` of a recording does";
    } else {
      out.recorded = trials.of({});
    }
    if (!out.recorded.refused.empty()) {
      finding.gain_basis = "not predicted: " + out.recorded.refused;
      chosen.push_back({&finding, 0});
    } else if (saves_memory(finding) && out.recorded.peak_bytes <= 0) {
      finding.gain_basis = without_peak(out.recorded, trials.of(finding.changes));
      chosen.push_back({&finding, 0});
    } else {
      decide(finding, trials, out.recorded, chosen);
    }
  }
  settle(chosen);
  for (const Finding& finding : findings) add_tried(finding, trials, out);
  return out;
}

}  // namespace shardscope::analysis
