// Chooses which combinations of settings to replay, and the best of those replayed. The caller replays:
// `what-if --search` on a virtual clock, tests by a formula.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::analysis {

/// One value of a setting. Several keys if they change together, as micro-batch and accumulation do.
struct SettingValue {
  std::string text;
  std::vector<std::string>
      sets{};  ///< KEY=VALUE, applied to the recorded configuration; none for the recorded value
};

struct SearchSetting {
  std::string name;
  std::vector<SettingValue> values;  ///< at least one; the first is the recorded one
  /// Indices of the values of the space's first setting with which this one has an effect; empty: all.
  std::vector<std::size_t> only_with{};
  /// KEY=VALUE that keeps the recorded value when the first setting changes: for a default that depends on
  /// it. Empty: the default does not depend on it.
  std::string held{};
};

/// For each setting the index of its value.
using Choice = std::vector<std::size_t>;

/// The result of replaying a choice.
struct PlayOutcome {
  double step_ms = 0;
  std::int64_t peak_bytes = 0;  ///< of the device; 0: not known
  std::string refused{};        ///< why it was not replayed; empty: it was, and the figures are valid
  bool invalid = false;         ///< refused because the settings are invalid
  /// Where the peak is not known: model states and gathered parameters of a rank, which are a part of it. 0:
  /// not known either.
  std::int64_t held_bytes = 0;
  /// Deviation of the model from the recorded step, where the player knows it: 100 (modelled / recorded - 1).
  std::optional<double> model_error_pct{};
};

struct Played {
  Choice choice;
  PlayOutcome outcome;
};

struct SearchBounds {
  std::int64_t memory_bytes = 0;  ///< device memory of a rank; 0: no limit
  std::size_t plays = 150;        ///< maximum, including that of the recorded settings
};

struct SearchResult {
  std::vector<Played> played;  ///< in order of replay; the first has the recorded settings
  std::size_t choices = 0;     ///< number of choices with distinct effects
  bool complete = false;       ///< all of them were replayed
  bool cut_short = false;      ///< `plays` was reached before the search was done
};

/// [Note: how settings are searched]
/// If there are no more choices than plays, all are replayed. Otherwise coordinate descent from the recorded
/// settings: each setting in turn takes the best of its values, until none improves. That ends in a local
/// optimum. So the search restarts from there with every other value of the first setting (the stage, on
/// which most others depend), which is then fixed. It is deterministic: the same space and figures give the
/// same plays. Choices that differ only in a setting without effect count as one.
///
/// A choice that fits the memory is better than one that does not; of two that fit the faster one, of two
/// that do not the smaller one.
[[nodiscard]] SearchResult search_settings(const std::vector<SearchSetting>& space,
                                           const SearchBounds& bounds,
                                           const std::function<PlayOutcome(const Choice&)>& play);

/// The `count` best of those that fit, as indices of `played`: the fastest, then repeatedly the fastest of
/// those with less memory than all chosen before. Of choices within 0.5 % of the fastest the one with the
/// fewest changes.
[[nodiscard]] std::vector<std::size_t> best_played(const SearchResult& result, const SearchBounds& bounds,
                                                   std::size_t count);
/// The one with the smallest peak; `played.size()` if all were refused.
[[nodiscard]] std::size_t smallest_played(const SearchResult& result);

/// Every KEY=VALUE of a choice.
[[nodiscard]] std::vector<std::string> sets_of(const std::vector<SearchSetting>& space, const Choice& choice);

}  // namespace shardscope::analysis
