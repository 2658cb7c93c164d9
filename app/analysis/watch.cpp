#include "app/analysis/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/analysis/foreign_json.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/statistics.h"
#include "app/store/losses.h"
#include "app/store/rank_end.h"
#include "app/store/span_time.h"
#include "instrumentation/event_fields.h"

namespace shardscope::analysis {
namespace {

constexpr std::array<const char*, kTriggerKinds> kTriggerNames = {
    "slow_step",    "loss_not_finite", "loss_jump",   "grad_norm_jump", "skipped_step",
    "memory_limit", "stalled",         "rank_failed", "events_missing", "finding"};

/// The values that a new one is compared with.
struct Before {
  double median = 0, spread = 0;
};

Before before(const std::deque<double>& values) {
  std::vector<double> sorted(values.begin(), values.end());
  const double median = quantile(sorted, 0.5);
  for (double& value : sorted) value = std::abs(value - median);
  return {median, 1.4826 * quantile(std::move(sorted), 0.5)};
}

void remember(std::deque<double>& values, double value, std::size_t most) {
  values.push_back(value);
  while (values.size() > most) values.pop_front();
}

std::optional<double> known(double value) { return std::isnan(value) ? std::nullopt : std::optional(value); }

/// "3.91: 4.2 times the median of the 100 steps before (0.93)".
std::string against(const std::string& value, double times, std::size_t steps, const std::string& median) {
  return fmt::format("{}: {:.2f} times the median of the {} steps before ({})", value, times, steps, median);
}

std::string ms_text(double ms) { return time_text(static_cast<std::int64_t>(ms * 1e6)); }

double percent(std::int64_t part, std::int64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

/// Of an interval; of more, every second one is kept: their median stays what it is.
constexpr std::size_t kMostStepTimes = std::size_t{1} << 14;

/// The part of a finding that does not change with its figures.
std::string kind_of(const Finding& finding) {
  std::string text = finding.title;
  std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  return finding.rank == instrumentation::kNoId ? text : fmt::format("{} {}", finding.rank, text);
}

/// The partition of time in the new steps, over all ranks.
TimePartition times_of(const Digest& digest, std::optional<std::uint32_t> after) {
  TimePartition sum;
  std::int64_t later = INT64_MAX;
  for (auto step = digest.steps().rbegin(); step != digest.steps().rend(); ++step) {
    // Before a step with a larger number the steps of an earlier attempt follow.
    if ((after && step->step <= *after) || step->step >= later) break;
    later = step->step;
    for (const RankStep& rank : step->ranks) {
      if (rank.time.known()) sum.add(rank.time);
    }
  }
  return sum;
}

/// A row with an end may still lack a rank's values: it is complete once the next step has begun. -1: none
/// is.
std::int64_t complete_in(const store::Store& store) {
  const std::span<const store::StepRow> rows = store.steps();
  return rows.size() < 2 ? -1 : std::int64_t{rows[rows.size() - 2].step};
}

/// ", and rank 2 is stopped": the first one that is.
std::string stopped_text(const store::Store& store) {
  for (const store::RankRow& row : store.ranks()) {
    const store::RankEnd end = store::rank_end(store, row);
    if (end.how == store::RankEnd::How::stopped) return ", and " + store::text_of(end);
  }
  return {};
}

}  // namespace

const char* name_of(TriggerKind kind) noexcept { return kTriggerNames.at(static_cast<std::size_t>(kind)); }

void WatchInterval::take_sums() {
  steps = sums.steps;
  if (!sums.step_ms.empty()) {
    step_ms_max = sums.step_ms_max;
    step_ms_median = quantile(sums.step_ms, 0.5);
    if (sums.tokens > 0 && sums.time_ns > 0)
      tokens_per_s = static_cast<double>(sums.tokens) * 1e9 / static_cast<double>(sums.time_ns);
  }
  if (!sums.times.known() || sums.times.recorded_ns() <= 0) return;
  exposed_comm_pct = percent(sums.times.exposed_comm_ns, sums.times.recorded_ns());
  idle_pct = percent(sums.times.idle_ns, sums.times.recorded_ns());
  overlap_pct = sums.times.overlap_pct();
}

void WatchInterval::add(WatchInterval next) {
  // What describes the end of the interval is the later one's, what describes its begin the earlier one's.
  next.step_ms_before = step_ms_before;
  next.loss_before = loss_before;
  if (next.steps == 0) {
    next.loss = loss;
    next.grad_norm = grad_norm;
    next.loss_scale = loss_scale;
  }
  if (next.evaluation && evaluation) next.evaluation->fresh = next.evaluation->fresh || evaluation->fresh;
  next.triggers.insert(next.triggers.begin(), std::make_move_iterator(triggers.begin()),
                       std::make_move_iterator(triggers.end()));
  std::vector<double>& all = sums.step_ms;
  all.insert(all.end(), next.sums.step_ms.begin(), next.sums.step_ms.end());
  next.sums.steps += sums.steps;
  next.sums.step_ms_max = std::max(next.sums.step_ms_max, sums.step_ms_max);
  if (all.size() > kMostStepTimes) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < all.size(); i += 2) all[kept++] = all[i];
    all.resize(kept);
  }
  next.sums.step_ms = std::move(all);
  next.sums.tokens += sums.tokens;
  next.sums.time_ns += sums.time_ns;
  next.sums.times.add(sums.times);
  *this = std::move(next);
  take_sums();
}

void Watcher::take_step(const store::StepRow& row, double ms, WatchInterval& interval) {
  const auto trigger = [&](TriggerKind kind, const std::string& text) {
    interval.triggers.push_back({kind, row.step, instrumentation::kNoId, row.begin_ns,
                                 fmt::format("step {} {}", row.step, text), row.end_ns});
  };
  // Compares a value with the previous ones, then adds it. The median of these is the level before a jump
  // until half of them are after it.
  const auto judge = [&](std::deque<double>& values, double value, double factor, TriggerKind kind,
                         auto text) {
    if (values.size() >= rules_.steps_needed) {
      const Before b = before(values);
      double least = b.median + rules_.spreads * b.spread;
      if (kind == TriggerKind::loss_jump) {
        largest_loss_ = std::max(largest_loss_, b.median);
        least = std::max(least, b.median + rules_.loss_scale_part * largest_loss_);
      }
      if (value > least && value > factor * b.median && b.median > 0)
        trigger(kind, text(value, value / b.median, values.size(), b.median));
    }
    remember(values, value, rules_.steps_before);
  };
  if (!std::exchange(warm_up_, false)) {
    judge(step_ms_, ms, rules_.slow_factor, TriggerKind::slow_step,
          [](double value, double times, std::size_t steps, double median) {
            return against("took " + ms_text(value), times, steps, ms_text(median));
          });
  }
  const auto number = [](const char* what) {
    return [what](double value, double times, std::size_t steps, double median) {
      return against(fmt::format("has {} {:.4g}", what, value), times, steps, fmt::format("{:.4g}", median));
    };
  };
  // A row without a recorded loss or norm has NaN there, too. After divergence every step has one that is not
  // finite: only the first is a trigger, until there is a finite one again.
  if (row.loss_not_finite) {
    if (!std::exchange(loss_not_finite_, true))
      trigger(TriggerKind::loss_not_finite, fmt::format("has a loss that is not finite: {}", row.loss));
  } else if (!std::isnan(row.loss)) {
    loss_not_finite_ = false;
    judge(losses_, row.loss, rules_.loss_factor, TriggerKind::loss_jump, number("a loss of"));
  }
  if (row.skipped) {
    trigger(
        TriggerKind::skipped_step,
        fmt::format("was skipped: gradients overflowed{}",
                    std::isnan(row.loss_scale) ? "" : fmt::format(" at loss scale {:g}", row.loss_scale)));
  } else if (row.norm_not_finite) {
    if (!std::exchange(norm_not_finite_, true))
      trigger(TriggerKind::grad_norm_jump, fmt::format("has a gradient norm of {}", row.grad_norm));
  } else if (!std::isnan(row.grad_norm)) {
    norm_not_finite_ = false;
    judge(grad_norms_, row.grad_norm, rules_.grad_norm_factor, TriggerKind::grad_norm_jump,
          number("a gradient norm of"));
  }
  last_step_ = row.step;
}

void Watcher::check_memory(std::uint32_t rank, std::int64_t peak_bytes, WatchInterval& interval) {
  const auto limit = static_cast<double>(rules_.memory_limit_bytes);
  const auto peak = static_cast<double>(peak_bytes);
  if (limit <= 0 || peak <= limit * rules_.memory_share) return;
  const auto before = over_limit_.find(rank);
  if (before != over_limit_.end() &&
      peak < static_cast<double>(before->second) + limit * rules_.memory_growth)
    return;
  over_limit_[rank] = peak_bytes;
  interval.triggers.push_back({TriggerKind::memory_limit, instrumentation::kNoId, rank, interval.end_ns,
                               fmt::format("rank {} held {} of its device's {}", rank, bytes_text(peak_bytes),
                                           bytes_text(rules_.memory_limit_bytes))});
}

void Watcher::take_state(const store::Store& store, WatchInterval& interval) {
  for (const store::RankRow& row : store.ranks()) {
    const store::RankEnd end = store::rank_end(store, row);
    const bool over = end.how != store::RankEnd::How::running && end.how != store::RankEnd::How::stopped;
    interval.ranks_ended += over ? 1 : 0;
    interval.ranks_failed += store::is_failure(end.how) ? 1 : 0;
    if (const auto peak = store.memory_peak(row.rank, instrumentation::MemoryPool::device)) {
      if (!interval.device_peak || peak->total() > interval.device_peak->bytes)
        interval.device_peak = {row.rank, peak->total()};
      check_memory(row.rank, peak->total(), interval);
    }
    // A rank that was started again may fail again.
    if (!store::is_failure(end.how)) {
      failed_.erase(row.rank);
    } else if (failed_.insert(row.rank).second) {
      interval.triggers.push_back(
          {TriggerKind::rank_failed, instrumentation::kNoId, row.rank, end.at_ns, store::text_of(end)});
    }
  }
  interval.ranks = static_cast<std::uint32_t>(store.ranks().size());
  if (store.has_tables()) interval.world = store.tables().world;
  const store::Losses losses = store::losses_of(store);
  interval.missing_events = losses.dropped;
  interval.lost_messages = losses.lost_messages;
  const std::uint64_t missing = interval.missing_events + interval.lost_messages;
  // While events are dropped it would be one each second, and raised detail would never end.
  constexpr std::int64_t kAgain_ns = 10'000'000'000;
  const bool again = !missing_said_ns_ || interval.end_ns - *missing_said_ns_ >= kAgain_ns;
  if (missing > missing_ && again) {
    missing_said_ns_ = interval.end_ns;
    interval.triggers.push_back({TriggerKind::events_missing, instrumentation::kNoId, instrumentation::kNoId,
                                 interval.end_ns,
                                 fmt::format("{} events dropped and {} messages lost so far",
                                             interval.missing_events, interval.lost_messages)});
  }
  if (again) missing_ = missing;
}

WatchInterval Watcher::begin(const store::Store& store, std::chrono::nanoseconds quiet) const {
  WatchInterval interval;
  interval.end_ns = store.end_ns();
  interval.quiet = quiet;
  interval.events = store.event_count();
  if (!losses_.empty()) interval.loss_before = before(losses_).median;
  if (!step_ms_.empty()) interval.step_ms_before = before(step_ms_).median;
  return interval;
}

WatchInterval Watcher::look(const store::Store& store, const Digest& digest, std::chrono::nanoseconds quiet,
                            bool paused) {
  WatchInterval interval = begin(store, quiet);
  follow_rewinds(store);
  const bool earlier_attempt = !digest.steps().empty() && !store.steps().empty() &&
                               digest.steps().back().step > store.steps().back().step;
  if (!earlier_attempt) interval.sums.times = times_of(digest, last_step_);
  // Steps in the digest are complete on every rank; rows of the store may be incomplete. After steps began
  // again the digest may still be at the earlier attempt.
  std::int64_t complete = digest.steps().empty() ? -1 : std::int64_t{digest.steps().back().step};
  if (earlier_attempt) complete = complete_in(store);
  take_steps(store, complete, interval);
  take_state(store, interval);
  check_stall(store, quiet, paused, interval);
  return interval;
}

WatchInterval Watcher::look_at_totals(const store::Store& store, std::chrono::nanoseconds quiet,
                                      bool paused) {
  WatchInterval interval = begin(store, quiet);
  follow_rewinds(store);
  take_steps(store, complete_in(store), interval);
  take_state(store, interval);
  check_stall(store, quiet, paused, interval);
  return interval;
}

void Watcher::follow_rewinds(const store::Store& store) {
  for (; rewinds_ < store.rewinds().size(); ++rewinds_) {
    const std::uint32_t step = store.rewinds()[rewinds_].step;
    if (last_step_ && *last_step_ >= step) last_step_ = step == 0 ? std::nullopt : std::optional(step - 1);
    if (evaluated_ && *evaluated_ >= step) evaluated_.reset();
    warm_up_ = true;
  }
}

void Watcher::take_steps(const store::Store& store, std::int64_t complete, WatchInterval& interval) {
  const std::span<const store::StepRow> rows = store.steps();
  const auto first = std::ranges::partition_point(
      rows, [&](const store::StepRow& row) { return last_step_ && row.step <= *last_step_; });
  WatchInterval::Sums& sums = interval.sums;
  for (auto row = first; row != rows.end() && std::int64_t{row->step} <= complete; ++row) {
    if (row->end_ns == store::kOpen) continue;
    const std::int64_t ns = store::time_of(store, *row).running_ns;
    sums.step_ms.push_back(static_cast<double>(ns) * 1e-6);
    ++sums.steps;
    sums.step_ms_max = std::max(sums.step_ms_max, sums.step_ms.back());
    sums.tokens += row->tokens;
    sums.time_ns += ns;
    interval.step = row->step;
    interval.loss = known(row->loss);
    interval.grad_norm = known(row->grad_norm);
    interval.loss_scale = known(row->loss_scale);
    take_step(*row, sums.step_ms.back(), interval);
  }
  interval.take_sums();
  if (interval.step == instrumentation::kNoId && last_step_) interval.step = *last_step_;
  take_evaluation(store, interval);
}

/// An evaluation follows its step, and is usually seen in a later call than the step.
void Watcher::take_evaluation(const store::Store& store, WatchInterval& interval) {
  const std::span<const store::StepRow> rows = store.steps();
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (std::isnan(row->eval_loss)) continue;
    interval.evaluation = {row->step, row->eval_loss, evaluated_ != row->step};
    evaluated_ = row->step;
    return;
  }
}

void Watcher::check_stall(const store::Store& store, std::chrono::nanoseconds quiet, bool paused,
                          WatchInterval& interval) {
  const auto steps_long = std::chrono::nanoseconds(static_cast<std::int64_t>(
      rules_.still_steps * 1e6 * (step_ms_.empty() ? 0.0 : before(step_ms_).median)));
  const bool still = !paused && interval.ranks > interval.ranks_ended && interval.ranks > 0 &&
                     quiet > std::max(rules_.still_at_least, steps_long);
  if (still && !still_) {
    interval.triggers.push_back({TriggerKind::stalled, interval.step, instrumentation::kNoId, interval.end_ns,
                                 fmt::format("no event for {}{}; `shardscope why` says who waits for whom, "
                                             "`shardscope view` shows where each rank is",
                                             time_text(quiet.count()), stopped_text(store))});
  }
  still_ = still;
}

void Watcher::take_findings(const std::vector<Finding>& findings, WatchInterval& interval) {
  for (const Finding& finding : findings) {
    if (finding.severity == instrumentation::Severity::info || !findings_.insert(kind_of(finding)).second)
      continue;
    interval.triggers.push_back(
        {TriggerKind::finding, instrumentation::kNoId, finding.rank, finding.at_ns, finding.title});
  }
}

std::string watch_line(const WatchInterval& i) {
  std::string line = i.step == instrumentation::kNoId ? std::string("no step yet")
                                                      : fmt::format("step {} (+{})", i.step, i.steps);
  const auto add = [&](const std::string& text) { line += "  " + text; };
  if (i.step_ms_median) {
    add(ms_text(*i.step_ms_median));
    std::string more;
    if (i.step_ms_before && *i.step_ms_before > 0)
      more = fmt::format("{:+.1f} %", 100 * (*i.step_ms_median / *i.step_ms_before - 1));
    if (i.steps > 1) more += fmt::format("{}longest {}", more.empty() ? "" : ", ", ms_text(*i.step_ms_max));
    if (!more.empty()) line += " (" + more + ")";
  }
  if (i.loss) {
    add(fmt::format("loss {:.4f}", *i.loss));
    if (i.loss_before) line += fmt::format(" ({:+.4f})", *i.loss - *i.loss_before);
  }
  if (i.evaluation && i.evaluation->fresh)
    add(fmt::format("held-out loss {:.4f} after step {}", i.evaluation->loss, i.evaluation->step));
  if (i.grad_norm) add(fmt::format("norm {:.3g}", *i.grad_norm));
  if (i.tokens_per_s) add(count_text(*i.tokens_per_s) + " tokens/s");
  if (i.exposed_comm_pct) add(fmt::format("exposed {:.1f} %", *i.exposed_comm_pct));
  if (i.overlap_pct) add(fmt::format("overlap {:.0f} %", *i.overlap_pct));
  if (i.device_peak)
    add(fmt::format("peak {} (rank {})", bytes_text(i.device_peak->bytes), i.device_peak->rank));
  if (i.ranks < i.world) add(fmt::format("{} of {} ranks have come", i.ranks, i.world));
  if (i.ranks_ended > 0) add(fmt::format("{} of {} ranks ended", i.ranks_ended, i.ranks));
  if (i.ranks_failed > 0) line += fmt::format(", {} of them failed", i.ranks_failed);
  if (i.missing_events + i.lost_messages > 0)
    add(fmt::format("{} events dropped, {} messages lost", i.missing_events, i.lost_messages));
  return line;
}

std::string to_json(const WatchInterval& i) {
  const auto value = [](const auto& optional) {
    return optional ? nlohmann::json(*optional) : nlohmann::json(nullptr);
  };
  const auto id = [](std::uint32_t number) {
    return number == instrumentation::kNoId ? nlohmann::json(nullptr) : nlohmann::json(number);
  };
  nlohmann::json out{
      {"end_ns", i.end_ns},
      {"step", id(i.step)},
      {"steps", i.steps},
      {"step_ms_median", value(i.step_ms_median)},
      {"step_ms_max", value(i.step_ms_max)},
      {"step_ms_before", value(i.step_ms_before)},
      {"tokens_per_s", value(i.tokens_per_s)},
      {"loss", value(i.loss)},
      {"loss_before", value(i.loss_before)},
      {"eval_loss", i.evaluation ? nlohmann::json(i.evaluation->loss) : nlohmann::json()},
      {"eval_step", i.evaluation ? nlohmann::json(i.evaluation->step) : nlohmann::json()},
      {"grad_norm", value(i.grad_norm)},
      {"loss_scale", value(i.loss_scale)},
      {"exposed_comm_pct", value(i.exposed_comm_pct)},
      {"idle_pct", value(i.idle_pct)},
      {"overlap_pct", value(i.overlap_pct)},
      {"device_peak_bytes", i.device_peak ? nlohmann::json(i.device_peak->bytes) : nlohmann::json()},
      {"device_peak_rank", i.device_peak ? nlohmann::json(i.device_peak->rank) : nlohmann::json()},
      {"events", i.events},
      {"dropped", i.missing_events},
      {"lost_messages", i.lost_messages},
      {"ranks", i.ranks},
      {"world", i.world > 0 ? nlohmann::json(i.world) : nlohmann::json()},
      {"ranks_ended", i.ranks_ended},
      {"ranks_failed", i.ranks_failed},
      {"triggers", nlohmann::json::array()}};
  for (const Trigger& trigger : i.triggers) {
    out["triggers"].push_back({{"kind", name_of(trigger.kind)},
                               {"step", id(trigger.step)},
                               {"rank", id(trigger.rank)},
                               {"at_ns", trigger.at_ns},
                               {"text", trigger.text}});
  }
  return to_text(out);
}

}  // namespace shardscope::analysis
