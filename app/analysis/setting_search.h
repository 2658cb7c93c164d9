// Which settings to play next when the best of many is looked for, and which of those played is best. It
// plays nothing itself: `what-if --search` gives it a run on a virtual clock, tests a formula.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace shardscope::analysis {

/// One value of a setting. More than one key where they go together, as micro-batch and accumulation do.
struct SettingValue {
  std::string text;
  std::vector<std::string>
      sets{};  ///< KEY=VALUE over the recorded configuration; none for the recorded value
};

struct SearchSetting {
  std::string name;
  std::vector<SettingValue> values;  ///< at least one; the first is the recorded one
  /// Values of the space's first setting with which this one has an effect; empty: with all.
  std::vector<std::size_t> only_with{};
  /// KEY=VALUE that keeps the recorded value where the first setting has another: for a default that follows
  /// from it. Empty: it stays by itself.
  std::string held{};
};

/// The index of a value for each setting.
using Choice = std::vector<std::size_t>;

/// What playing a choice gave.
struct PlayOutcome {
  double step_ms = 0;
  std::int64_t peak_bytes = 0;
  std::string refused{};  ///< why it was not played; empty: it was, and the figures are there
  bool invalid = false;   ///< it was refused because no run can have these settings
};

struct Played {
  Choice choice;
  PlayOutcome outcome;
};

struct SearchBounds {
  std::int64_t memory_bytes = 0;  ///< of a rank's device; 0: none
  std::size_t plays = 150;        ///< at most, with that of the recorded settings
};

struct SearchResult {
  std::vector<Played> played;  ///< in order; the first has the recorded settings
  std::size_t choices = 0;     ///< that differ in effect
  bool complete = false;       ///< every one of them was played
  bool cut_short = false;      ///< `plays` was reached before the search had ended
};

/// [Note: how settings are searched]
/// Where there are no more choices than plays, each is played. Otherwise settings change one at a time, from
/// the recorded ones on: each setting in turn takes the best of its values, until none brings anything. That
/// ends where no single change helps, which need not be the best. So it begins again from there with every
/// other value of the first setting (the stage, on which most others depend), keeping it. Nothing is drawn by
/// chance: the same space and figures give the same plays. A choice whose difference has no effect is the one
/// without it.
///
/// A choice that fits the memory is better than one that does not; of two that fit the faster is better, of
/// two that do not the smaller.
[[nodiscard]] SearchResult search_settings(const std::vector<SearchSetting>& space,
                                           const SearchBounds& bounds,
                                           const std::function<PlayOutcome(const Choice&)>& play);

/// The `count` best of those that fit, as indices of `played`: the fastest, then always the fastest of those
/// that need less memory than all before. Of those that are within half a per cent of the fastest the one
/// with the fewest changes is taken.
[[nodiscard]] std::vector<std::size_t> best_played(const SearchResult& result, const SearchBounds& bounds,
                                                   std::size_t count);
/// The one with the smallest peak; `played.size()` where all were refused.
[[nodiscard]] std::size_t smallest_played(const SearchResult& result);

/// Every KEY=VALUE of a choice.
[[nodiscard]] std::vector<std::string> sets_of(const std::vector<SearchSetting>& space, const Choice& choice);

}  // namespace shardscope::analysis
