#include "app/cli/advice_player.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

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

class AdvicePlayer {
 public:
  AdvicePlayer(std::string path, const store::Store& store, std::size_t plays)
      : path_(std::move(path)), left_(plays), why_not_(reason(store)) {}

  analysis::PlayOutcome play(const std::vector<analysis::Change>& changes) {
    if (why_not_.empty() && !run_) fit();
    if (!why_not_.empty()) return {.refused = why_not_};
    if (changes.empty()) return recorded_;
    if (left_ == 0) return {.refused = "as many changes were played as `--plays` allows"};
    if (Clock::now() > until_)
      return {.refused = fmt::format("the {:.0f} s for it were over; `shardscope what-if` plays it",
                                     kAdviceSeconds)};
    --left_;
    std::vector<std::string> sets;
    for (const analysis::Change& change : changes) sets.push_back(change.key + "=" + change.value);
    return run_->outcome_of(sets);
  }

 private:
  static std::string reason(const store::Store& store) {
    if (std::string why = why_not_played(store); !why.empty()) return why;
    std::uint64_t events = 0;
    for (const store::RankRow& rank : store.ranks()) events += rank.events;
    const std::uint64_t steps = std::max<std::uint64_t>(store.steps().size(), 1);
    if (events / steps > kMostStepEvents)
      return fmt::format("a step of {} events takes long to play; `shardscope what-if` plays it",
                         events / steps);
    return {};
  }

  void fit() {
    install_interrupt_handler();
    ReplayOptions options;
    options.recording = path_;
    options.quiet = true;
    try {
      run_.emplace(options);
      run_->set_machine(run_->changed());
      recorded_ = {run_->modelled().pace.step_ms, device_peak(run_->modelled().store)};
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
  std::size_t left_;
  std::string why_not_;
  Clock::time_point until_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                std::chrono::duration<double>(kAdviceSeconds));
  std::optional<ReplayedRun> run_;
  analysis::PlayOutcome recorded_;
};

}  // namespace

analysis::Player player_of(const std::string& path, const store::Store& store, std::size_t plays) {
  auto player = std::make_shared<AdvicePlayer>(path, store, plays);
  return [player](const std::vector<analysis::Change>& changes) { return player->play(changes); };
}

}  // namespace shardscope::cli
