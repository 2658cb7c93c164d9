#include "app/analysis/setting_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace shardscope::analysis {
namespace {

/// Relative gain below which a change is not an improvement.
constexpr double kBetter = 0.001;
/// Steps closer than this are equal: prefer fewer changes. Larger than kBetter, since small gains add up.
constexpr double kAlike = 0.005;

bool fits(const PlayOutcome& outcome, const SearchBounds& bounds) {
  return outcome.refused.empty() && (bounds.memory_bytes == 0 || outcome.peak_bytes <= bounds.memory_bytes);
}

bool better(const PlayOutcome& a, const PlayOutcome& b, const SearchBounds& bounds) {
  if (!a.refused.empty() || !b.refused.empty()) return a.refused.empty() && !b.refused.empty();
  if (fits(a, bounds) != fits(b, bounds)) return fits(a, bounds);
  return fits(a, bounds) ? a.step_ms < b.step_ms * (1 - kBetter) : a.peak_bytes < b.peak_bytes;
}

std::size_t changes_in(const Choice& choice) {
  return static_cast<std::size_t>(
      std::ranges::count_if(choice, [](std::size_t value) { return value != 0; }));
}

bool has_effect(const std::vector<SearchSetting>& space, const Choice& choice, std::size_t setting) {
  const std::vector<std::size_t>& with = space[setting].only_with;
  return with.empty() || std::ranges::find(with, choice.front()) != with.end();
}

class Search {
 public:
  Search(const std::vector<SearchSetting>& space, const SearchBounds& bounds,
         const std::function<PlayOutcome(const Choice&)>& play)
      : space_(space), bounds_(bounds), play_(play) {}

  SearchResult run() {
    result_.choices = count_choices();
    Choice at(space_.size(), 0);
    static_cast<void>(outcome_of(at));
    if (result_.choices <= bounds_.plays) {
      play_all(at, 0);
    } else {
      at = descend(at, 0);
      for (std::size_t value = 0; !space_.empty() && value < space_.front().values.size(); ++value) {
        if (value == at.front()) continue;
        Choice from = at;
        from.front() = value;
        static_cast<void>(descend(from, 1));
      }
      restore();
    }
    result_.complete = result_.played.size() == result_.choices;
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool matters(const Choice& choice, std::size_t setting) const {
    return has_effect(space_, choice, setting);
  }

  /// The choice with the recorded value for every setting that has no effect.
  [[nodiscard]] Choice effective(Choice choice) const {
    for (std::size_t setting = 1; setting < choice.size(); ++setting)
      if (!matters(choice, setting)) choice[setting] = 0;
    return choice;
  }

  /// Number of combinations, bounded so that it does not overflow.
  [[nodiscard]] std::size_t count_choices() const {
    if (space_.empty()) return 1;
    std::size_t sum = 0;
    Choice choice(space_.size(), 0);
    for (choice.front() = 0; choice.front() < space_.front().values.size(); ++choice.front()) {
      std::size_t product = 1;
      for (std::size_t setting = 1; setting < space_.size(); ++setting) {
        const std::size_t values = matters(choice, setting) ? space_[setting].values.size() : 1;
        constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / 2;
        product = product > kMost / values ? kMost : product * values;
      }
      sum = std::max(sum, sum + product);  // two terms of at most kMost do not overflow; more may
    }
    return sum;
  }

  /// nullopt if no plays are left.
  std::optional<PlayOutcome> outcome_of(const Choice& choice) {
    const Choice played = effective(choice);
    const auto found = known_.find(played);
    if (found != known_.end()) return result_.played[found->second].outcome;
    if (result_.played.size() >= std::max<std::size_t>(bounds_.plays, 1)) {
      result_.cut_short = true;
      return std::nullopt;
    }
    PlayOutcome outcome = play_(played);
    known_.emplace(played, result_.played.size());
    result_.played.push_back({played, outcome});
    return outcome;
  }

  void play_all(Choice& choice, std::size_t setting) {
    if (setting == space_.size()) {
      static_cast<void>(outcome_of(choice));
      return;
    }
    for (choice[setting] = 0; choice[setting] < space_[setting].values.size(); ++choice[setting])
      play_all(choice, setting + 1);
    choice[setting] = 0;
  }

  /// A choice that no single change of a setting from `first` on improves.
  Choice descend(Choice at, std::size_t first) {
    std::optional<PlayOutcome> best = outcome_of(at);
    for (bool moved = best.has_value(); moved;) {
      moved = false;
      for (std::size_t setting = first; setting < space_.size(); ++setting) {
        if (!matters(at, setting)) continue;
        Choice other = at;
        for (std::size_t value = 0; value < space_[setting].values.size(); ++value) {
          other[setting] = value;
          const std::optional<PlayOutcome> outcome = outcome_of(other);
          if (!outcome) return at;
          if (!better(*outcome, *best, bounds_)) continue;
          best = outcome;
          at = other;
          moved = true;
        }
      }
    }
    return at;
  }

  /// A later change may make an earlier one redundant: reset each changed setting of the best choice to its
  /// recorded value, unless that costs time.
  void restore() {
    const std::vector<std::size_t> best = best_played(result_, bounds_, 1);
    if (best.empty()) return;
    Choice at = result_.played[best.front()].choice;
    const double alike_ms = result_.played[best.front()].outcome.step_ms * (1 + kAlike);
    for (std::size_t& value : at) {
      const std::size_t before = std::exchange(value, 0);
      if (before == 0) continue;
      const std::optional<PlayOutcome> outcome = outcome_of(at);
      if (!outcome || !fits(*outcome, bounds_) || outcome->step_ms > alike_ms) value = before;
    }
  }

  const std::vector<SearchSetting>& space_;
  const SearchBounds& bounds_;
  const std::function<PlayOutcome(const Choice&)>& play_;
  SearchResult result_;
  std::map<Choice, std::size_t> known_;  ///< index of `played`
};

}  // namespace

SearchResult search_settings(const std::vector<SearchSetting>& space, const SearchBounds& bounds,
                             const std::function<PlayOutcome(const Choice&)>& play) {
  return Search(space, bounds, play).run();
}

std::vector<std::size_t> best_played(const SearchResult& result, const SearchBounds& bounds,
                                     std::size_t count) {
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < result.played.size(); ++i)
    if (fits(result.played[i].outcome, bounds)) left.push_back(i);
  const auto step_ms = [&](std::size_t i) { return result.played[i].outcome.step_ms; };
  std::ranges::stable_sort(left, {}, step_ms);
  std::vector<std::size_t> best;
  while (!left.empty() && best.size() < count) {
    const double alike_ms = step_ms(left.front()) * (1 + kAlike);
    const auto end = std::ranges::find_if(left, [&](std::size_t i) { return step_ms(i) > alike_ms; });
    const auto cost = [&](std::size_t i) {
      return std::pair(changes_in(result.played[i].choice), result.played[i].outcome.peak_bytes);
    };
    const std::size_t first =
        *std::min_element(left.begin(), end, [&](std::size_t a, std::size_t b) { return cost(a) < cost(b); });
    best.push_back(first);
    std::erase_if(left, [&](std::size_t i) {
      return result.played[i].outcome.peak_bytes >= result.played[first].outcome.peak_bytes;
    });
  }
  return best;
}

std::size_t smallest_played(const SearchResult& result) {
  std::size_t smallest = result.played.size();
  for (std::size_t i = 0; i < result.played.size(); ++i) {
    const PlayOutcome& outcome = result.played[i].outcome;
    if (!outcome.refused.empty()) continue;
    if (smallest == result.played.size() || outcome.peak_bytes < result.played[smallest].outcome.peak_bytes)
      smallest = i;
  }
  return smallest;
}

std::vector<std::string> sets_of(const std::vector<SearchSetting>& space, const Choice& choice) {
  std::vector<std::string> sets;
  for (std::size_t setting = 0; setting < choice.size(); ++setting) {
    const std::vector<std::string>& of_value = space[setting].values[choice[setting]].sets;
    sets.insert(sets.end(), of_value.begin(), of_value.end());
    if (choice[setting] == 0 && choice.front() != 0 && has_effect(space, choice, setting) &&
        !space[setting].held.empty())
      sets.push_back(space[setting].held);
  }
  return sets;
}

}  // namespace shardscope::analysis
