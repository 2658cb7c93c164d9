// Figures of a live run since the last look, and triggers: unusual events (`shardscope watch`). Pure: it
// reads a store and its digest; how long no event came is an argument.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/analysis/digest.h"
#include "app/analysis/summary.h"
#include "app/store/store.h"

namespace shardscope::analysis {

enum class TriggerKind : std::uint8_t {
  slow_step,        ///< beyond the spread of the steps before
  loss_not_finite,  ///< NaN or infinity
  loss_jump,
  grad_norm_jump,  ///< or a norm that is not finite
  skipped_step,    ///< gradients overflowed: the optimizer did nothing
  memory_limit,
  stalled,  ///< no event for long, and the run is not paused
  rank_failed,
  events_missing,
  finding,  ///< a warning or an error that was not there before
};
inline constexpr std::size_t kTriggerKinds = 10;
/// "slow_step", ...: the names that `--trigger` takes.
[[nodiscard]] const char* name_of(TriggerKind kind) noexcept;

struct Trigger {
  TriggerKind kind{};
  std::uint32_t step = instrumentation::kNoId;  ///< where it is about one
  std::uint32_t rank = instrumentation::kNoId;
  std::int64_t at_ns = 0;   ///< on the run's clock
  std::string text;         ///< what, how much, against what
  std::int64_t end_ns = 0;  ///< of the step, which begins at at_ns; 0: it is about an instant
};

/// When something is a trigger. Steps are judged by the steps before them: their median m and their spread
/// s = 1.4826 times the median distance from m, which is the standard deviation of a normal distribution.
struct WatchRules {
  std::size_t steps_before = 100;  ///< that a step is compared with, at most
  std::size_t steps_needed = 8;  ///< before anything is judged; the first step is warm-up and not among them
  double spreads = 6;            ///< a value is unusual beyond m + spreads * s ...
  double slow_factor = 1.2;      ///< ... and, for a step's time, beyond slow_factor * m
  double loss_factor = 1.2;      ///< ... for a loss
  /// ... and by this part of the largest m so far: a loss that has fallen to a millionth of what it was has
  /// factors without meaning.
  double loss_scale_part = 0.01;
  double grad_norm_factor = 3;          ///< ... for a gradient norm
  std::int64_t memory_limit_bytes = 0;  ///< of one rank's device pool; 0: none
  double memory_share = 0.95;           ///< of it
  /// Stalled: nothing for this long and for this many median steps.
  std::chrono::nanoseconds still_at_least = std::chrono::seconds(10);
  double still_steps = 10;
};

/// Between two looks. A figure that was not recorded is nothing, never zero.
struct WatchInterval {
  std::int64_t end_ns = 0;                      ///< the latest event
  std::uint32_t steps = 0;                      ///< that every rank completed since the last look
  std::uint32_t step = instrumentation::kNoId;  ///< the last completed one
  std::optional<double> step_ms_median, step_ms_max;
  std::optional<double> step_ms_before;     ///< median of the steps before
  std::optional<double> tokens_per_s;       ///< tokens of the steps over their time
  std::optional<double> loss, loss_before;  ///< of the interval's last step; median of the steps before
  std::optional<double> grad_norm, loss_scale;
  struct Evaluation {
    std::uint32_t step = 0;  ///< that it came after
    double loss = 0;
    bool fresh = false;  ///< since the last look
  };
  std::optional<Evaluation> evaluation;              ///< the latest one: loss on held-out data
  std::optional<double> exposed_comm_pct, idle_pct;  ///< of the recorded time of the steps, all ranks
  std::optional<double> overlap_pct;
  struct Memory {
    std::uint32_t rank = 0;
    std::int64_t bytes = 0;
  };
  std::optional<Memory> device_peak;  ///< largest over ranks, of the whole run
  std::uint64_t events = 0;           ///< in all
  std::uint64_t missing_events = 0;   ///< dropped or shed, in all
  std::uint64_t lost_messages = 0;
  std::uint32_t ranks = 0, ranks_ended = 0;
  std::vector<Trigger> triggers;
};

class Watcher {
 public:
  explicit Watcher(const WatchRules& rules = {}) : rules_(rules) {}
  /// Since the last call. `quiet`: for how long no event has arrived; `paused`: the run is paused or pausing.
  WatchInterval look(const store::Store& store, const Digest& digest, std::chrono::nanoseconds quiet,
                     bool paused);
  /// The same for a store that keeps totals: without where the time went, and of the steps that a later one
  /// has begun after. A loss that is NaN there is one where the steps before each had one.
  WatchInterval look_at_totals(const store::Store& store, std::chrono::nanoseconds quiet, bool paused);
  /// Findings of the run as it is now: the ones that were not there before are triggers.
  void take_findings(const std::vector<Finding>& findings, WatchInterval& interval);

 private:
  /// Steps up to this one are complete on every rank; -1: none is.
  void take_steps(const store::Store& store, std::int64_t complete, WatchInterval& interval);
  void take_evaluation(const store::Store& store, WatchInterval& interval);
  void check_stall(const store::Store& store, std::chrono::nanoseconds quiet, bool paused,
                   WatchInterval& interval);
  WatchInterval begin(const store::Store& store) const;
  [[nodiscard]] std::optional<double> not_finite(const store::Store& store, const store::StepRow& row) const;
  void take_step(const store::Store& store, const store::StepRow& row, double ms, WatchInterval& interval);
  void take_state(const store::Store& store, WatchInterval& interval);

  WatchRules rules_;
  std::optional<std::uint32_t> last_step_, evaluated_;
  std::deque<double> step_ms_, losses_, grad_norms_;
  double largest_loss_ = 0;          ///< the largest median of the losses before a step so far
  std::size_t losses_in_a_row_ = 0;  ///< the latest steps that each had a finite one
  bool totals_only_ = false;
  bool still_ = false, over_limit_ = false;
  std::uint64_t missing_ = 0;
  std::set<std::uint32_t> failed_;
  std::set<std::string> findings_;  ///< without their figures, which change while the cause stays
};

/// One line: "step 1240 (+52)  92.1 ms  loss 3.412  ...", without the triggers.
[[nodiscard]] std::string watch_line(const WatchInterval& interval);
/// One line of JSON with the triggers.
[[nodiscard]] std::string to_json(const WatchInterval& interval);

}  // namespace shardscope::analysis
