// Figures of a live run since the last call, and triggers: unusual events (`shardscope watch`). Pure: reads a
// store and its digest; the time since the last event is an argument.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/analysis/digest.h"
#include "app/analysis/summary.h"
#include "app/store/store.h"

namespace shardscope::analysis {

enum class TriggerKind : std::uint8_t {
  slow_step,        ///< beyond the spread of the previous steps
  loss_not_finite,  ///< NaN or infinity
  loss_jump,
  grad_norm_jump,  ///< or a norm that is not finite
  skipped_step,    ///< gradients overflowed: no optimizer update
  memory_limit,
  stalled,  ///< no event for a long time while the run is not paused
  rank_failed,
  events_missing,
  finding,  ///< a new warning or error
};
inline constexpr std::size_t kTriggerKinds = 10;
/// "slow_step", ...: the values of `--trigger`.
[[nodiscard]] const char* name_of(TriggerKind kind) noexcept;

struct Trigger {
  TriggerKind kind{};
  std::uint32_t step = instrumentation::kNoId;  ///< if it concerns a step
  std::uint32_t rank = instrumentation::kNoId;
  std::int64_t at_ns = 0;   ///< in run time
  std::string text;         ///< what, how much, compared with what
  std::int64_t end_ns = 0;  ///< of the step, which begins at at_ns; 0: an instant
};

/// When an event is a trigger. Steps are compared with the previous ones: their median m and spread s =
/// 1.4826 times the median absolute deviation, which is the standard deviation of a normal distribution.
struct WatchRules {
  std::size_t steps_before = 100;  ///< maximum number of steps to compare with
  std::size_t steps_needed = 8;    ///< minimum for judging anything; excludes the first step (warm-up)
  double spreads = 6;              ///< a value is unusual beyond m + spreads * s ...
  double slow_factor = 1.2;        ///< ... and, for a step time, beyond slow_factor * m
  double loss_factor = 1.2;        ///< ... for a loss
  /// ... and by this fraction of the largest m so far: ratios of a loss that has fallen to a millionth of
  /// that are meaningless.
  double loss_scale_part = 0.01;
  double grad_norm_factor = 3;          ///< ... for a gradient norm
  std::int64_t memory_limit_bytes = 0;  ///< of one rank's device pool; 0: none
  double memory_share = 0.95;           ///< fraction of it: a rank's peak beyond it is a trigger, ...
  double memory_growth = 0.01;  ///< ... and again when the peak has grown by this fraction of the limit
  /// Stalled: no event for at least this long and this many median steps.
  std::chrono::nanoseconds still_at_least = std::chrono::seconds(10);
  double still_steps = 10;
};

/// One interval between two calls, or several joined ones. A figure that was not recorded is nullopt, never
/// zero.
struct WatchInterval {
  std::int64_t end_ns = 0;                      ///< the latest event
  std::uint32_t steps = 0;                      ///< completed by every rank since the last call
  std::uint32_t step = instrumentation::kNoId;  ///< the last completed step
  std::optional<double> step_ms_median, step_ms_max;
  std::optional<double> step_ms_before;     ///< median of the steps before
  std::optional<double> tokens_per_s;       ///< tokens of the steps over their duration
  std::optional<double> loss, loss_before;  ///< of the last step; median of the steps before
  std::optional<double> grad_norm, loss_scale;
  struct Evaluation {
    std::uint32_t step = 0;  ///< the step that it followed
    double loss = 0;
    bool fresh = false;  ///< since the last call
  };
  std::optional<Evaluation> evaluation;              ///< the latest: loss on held-out data
  std::optional<double> exposed_comm_pct, idle_pct;  ///< of the recorded time of the steps, all ranks
  std::optional<double> overlap_pct;
  struct Memory {
    std::uint32_t rank = 0;
    std::int64_t bytes = 0;
  };
  std::optional<Memory> device_peak;  ///< largest over ranks, over the whole run
  std::uint64_t events = 0;           ///< total
  std::uint64_t missing_events = 0;   ///< dropped or shed, total
  std::uint64_t lost_messages = 0;
  std::uint32_t ranks = 0, ranks_ended = 0;  ///< that have come; of these, those that no longer run
  std::uint32_t ranks_failed = 0;            ///< of those that ended
  std::chrono::nanoseconds quiet{};          ///< time without an event up to now
  std::uint32_t world = 0;                   ///< ranks of the run; 0: not known yet
  std::vector<Trigger> triggers;
  /// From which the figures of its steps are computed.
  struct Sums {
    std::vector<double> step_ms;  ///< of very many steps a part
    std::uint32_t steps = 0;
    double step_ms_max = 0;
    std::int64_t tokens = 0, time_ns = 0;
    TimePartition times;
  } sums;
  /// Joins the interval that follows this one.
  void add(WatchInterval next);
  /// Computes the figures that `sums` gives.
  void take_sums();
};

class Watcher {
 public:
  explicit Watcher(const WatchRules& rules = {}) : rules_(rules) {}
  /// Since the last call. `quiet`: time without an event; `paused`: the run is paused or pausing.
  WatchInterval look(const store::Store& store, const Digest& digest, std::chrono::nanoseconds quiet,
                     bool paused);
  /// For a store that keeps only totals: without the partition of time, and only for steps after which a
  /// later step began.
  WatchInterval look_at_totals(const store::Store& store, std::chrono::nanoseconds quiet, bool paused);
  /// Adds a trigger for each finding of the run that is new since the last call.
  void take_findings(const std::vector<Finding>& findings, WatchInterval& interval);

 private:
  /// Adds steps up to `complete`, which are complete on every rank; -1: none.
  void take_steps(const store::Store& store, std::int64_t complete, WatchInterval& interval);
  void take_evaluation(const store::Store& store, WatchInterval& interval);
  void check_stall(const store::Store& store, std::chrono::nanoseconds quiet, bool paused,
                   WatchInterval& interval);
  WatchInterval begin(const store::Store& store, std::chrono::nanoseconds quiet) const;
  void take_step(const store::StepRow& row, double ms, WatchInterval& interval);
  void check_memory(std::uint32_t rank, std::int64_t peak_bytes, WatchInterval& interval);
  void take_state(const store::Store& store, WatchInterval& interval);
  /// Steps that began again are judged again.
  void follow_rewinds(const store::Store& store);

  WatchRules rules_;
  std::optional<std::uint32_t> last_step_, evaluated_;
  std::size_t rewinds_ = 0;  ///< of the store's that were followed
  bool warm_up_ = true;      ///< the next step is the first one after a start
  std::deque<double> step_ms_, losses_, grad_norms_;
  double largest_loss_ = 0;  ///< largest median of previous losses so far
  bool still_ = false;
  std::optional<std::int64_t> missing_said_ns_;  ///< run time of the last trigger about missing events
  bool loss_not_finite_ = false, norm_not_finite_ = false;  ///< the latest recorded one was not
  std::map<std::uint32_t, std::int64_t> over_limit_;        ///< by rank: the peak of its latest trigger
  std::uint64_t missing_ = 0;
  std::set<std::uint32_t> failed_;  ///< ranks that are known to have failed and were not started again
  std::set<std::string> findings_;  ///< without figures, which change while the cause remains
};

/// One line without the triggers: "step 1240 (+52)  92.1 ms  loss 3.412  ...".
[[nodiscard]] std::string watch_line(const WatchInterval& interval);
/// One line of JSON, with the triggers.
[[nodiscard]] std::string to_json(const WatchInterval& interval);

}  // namespace shardscope::analysis
