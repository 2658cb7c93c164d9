#include "app/cli/advice_player.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/attached/replay.h"
#include "app/analysis/attached/settings.h"
#include "app/analysis/summary.h"
#include "app/cli/process.h"
#include "app/cli/replayed_run.h"
#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// A model that misses the recorded step by more is missing what bounds it.
constexpr double kMostModelErrorPct = 25;
/// Events per step, over all ranks: a play has four steps, the fit up to 12 plays; 1 million events a second.
constexpr std::uint64_t kMostStepEvents = 500'000;

using analysis::attached::AttachedRun;

/// How many changes may be played, and for how long.
class Budget {
 public:
  explicit Budget(std::size_t plays) : left_(plays) {}
  /// Why no further change is played; empty: this one is.
  std::string take() {
    if (left_ == 0) return "as many changes were played as `--plays` allows";
    if (Clock::now() > until_)
      return fmt::format("the {:.0f} s for it were over; `shardscope what-if` plays it", kAdviceSeconds);
    --left_;
    return {};
  }

 private:
  std::size_t left_;
  Clock::time_point until_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                std::chrono::duration<double>(kAdviceSeconds));
};

/// Why a step is too large; empty if it is not.
std::string too_many_events(const store::Store& store) {
  std::uint64_t events = 0;
  for (const store::RankRow& rank : store.ranks()) events += rank.events;
  const std::uint64_t steps = std::max<std::uint64_t>(store.steps().size(), 1);
  if (events / steps <= kMostStepEvents) return {};
  return fmt::format("a step of {} events takes long to play; `shardscope what-if` plays it", events / steps);
}

/// Of an attached run, whose recorded steps are replayed (analysis/attached): times, and of memory model
/// states and gathered parameters, which are not the device's peak.
class AttachedPlayer {
 public:
  AttachedPlayer(const store::Store& store, std::size_t plays)
      : store_(&store), budget_(plays), why_not_(reason(store)) {}

  analysis::PlayOutcome play(const std::vector<analysis::Change>& changes) {
    if (why_not_.empty() && !run_) {
      run_.emplace(*store_);
      if (!run_->missing().empty())
        why_not_ = "it cannot be replayed: " + run_->missing();
      else
        why_not_ = run_->no_times();
    }
    if (!why_not_.empty()) return {.refused = why_not_};
    if (changes.empty()) return outcome(run_->costs().step_ms, run_->modelled());
    if (std::string spent = budget_.take(); !spent.empty()) return {.refused = std::move(spent)};
    try {
      const analysis::attached::ReplaySettings settings =
          analysis::attached::changed_settings(store_->tables(), run_->recorded_settings(), changes);
      const analysis::attached::ReplayOutcome played = run_->play(settings);
      const double step_ms = run_->predicted_ms(played);
      if (!(step_ms > 0)) return {.refused = "the replay takes more off than a step has"};
      // What the prediction leaves out may be more than what it gains.
      if (const auto caveats = run_->caveats(settings); !caveats.empty()) return {.refused = caveats.front()};
      return outcome(step_ms, played);
    } catch (const std::exception& error) {
      return {.refused = error.what()};
    }
  }

 private:
  [[nodiscard]] analysis::PlayOutcome outcome(double step_ms,
                                              const analysis::attached::ReplayOutcome& played) const {
    return {.step_ms = step_ms,
            .held_bytes = played.model_state_bytes + run_->gathered_bytes(played),
            .model_error_pct = run_->model_error_pct()};
  }
  static std::string reason(const store::Store& store) {
    if (std::string why = analysis::attached::why_no_settings(store.tables()); !why.empty()) return why;
    if (std::string why = analysis::attached::why_no_times(store.tables()); !why.empty()) return why;
    return too_many_events(store);
  }

  const store::Store* store_;
  Budget budget_;
  std::string why_not_;
  std::optional<AttachedRun> run_;
};

class AdvicePlayer {
 public:
  AdvicePlayer(std::string path, const store::Store& store, std::size_t plays)
      : path_(std::move(path)), budget_(plays), why_not_(reason(store)) {}

  analysis::PlayOutcome play(const std::vector<analysis::Change>& changes) {
    if (why_not_.empty() && !run_) fit();
    if (!why_not_.empty()) return {.refused = why_not_};
    if (changes.empty()) return recorded_;
    if (std::string spent = budget_.take(); !spent.empty()) return {.refused = std::move(spent)};
    std::vector<std::string> sets;
    for (const analysis::Change& change : changes) sets.push_back(change.key + "=" + change.value);
    analysis::PlayOutcome outcome = run_->outcome_of(sets);
    outcome.model_error_pct = recorded_.model_error_pct;
    return outcome;
  }

 private:
  static std::string reason(const store::Store& store) {
    if (std::string why = why_not_played(store); !why.empty()) return why;
    return too_many_events(store);
  }

  void fit() {
    install_interrupt_handler();
    ReplayOptions options;
    options.recording = path_;
    options.quiet = true;
    try {
      run_.emplace(options);
      run_->set_machine(run_->changed());
      recorded_ = {.step_ms = run_->modelled().pace.step_ms,
                   .peak_bytes = device_peak(run_->modelled().store),
                   .model_error_pct = run_->model_error_pct()};
      const double error = run_->model_error_pct();
      if (std::abs(error) > kMostModelErrorPct) why_not_ = model_error_text(error);
    } catch (const std::runtime_error& error) {
      if (interrupted()) throw;
      why_not_ = error.what();
    } catch (const std::invalid_argument& error) {
      why_not_ = error.what();
    }
  }

  std::string path_;
  Budget budget_;
  std::string why_not_;
  std::optional<ReplayedRun> run_;
  analysis::PlayOutcome recorded_;
};

}  // namespace

analysis::Player player_of(const std::string& path, const store::Store& store, std::size_t plays) {
  if (store.has_tables() && !store.tables().framework.empty()) {
    auto attached = std::make_shared<AttachedPlayer>(store, plays);
    return [attached](const std::vector<analysis::Change>& changes) { return attached->play(changes); };
  }
  auto player = std::make_shared<AdvicePlayer>(path, store, plays);
  return [player](const std::vector<analysis::Change>& changes) { return player->play(changes); };
}

analysis::Player player_of_live_run() {
  return [](const std::vector<analysis::Change>&) -> analysis::PlayOutcome {
    return {.refused = "a live run is not played: record it"};
  };
}

}  // namespace shardscope::cli
