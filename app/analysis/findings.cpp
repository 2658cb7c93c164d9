// Diagnoses: what is wrong with a run, how much it costs, and what to do next. Each rule stands alone.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/analysis/decision_text.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/missing_reason.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/spans.h"
#include "app/analysis/statistics.h"
#include "app/analysis/summary.h"
#include "app/analysis/zero_settings.h"
#include "app/store/losses.h"
#include "app/store/rank_end.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::analysis {
namespace {

using ev::EventKind;
using ev::Severity;
using Findings = std::vector<Finding>;

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void rank_failures(const store::Store& store, Findings& out) {
  const std::optional<store::RankEnd> first = store::first_failure(store);
  if (!first) return;
  // The one that failed first is what went wrong; the others end because it is gone.
  const bool by_itself = first->how == store::RankEnd::How::failed;
  std::string evidence = store::words_on(store, *first);
  if (!by_itself) {
    evidence = fmt::format("Its last event is at {} and it never said that it ended.{}{}",
                           store::seconds_text(first->at_ns), evidence.empty() ? "" : " ",
                           evidence.empty() ? "" : "R" + evidence.substr(1) + ".");
  }
  std::string others;
  for (const store::RankRow& rank : store.ranks()) {
    if (rank.rank == first->rank || !store::is_failure(store::rank_end(store, rank).how)) continue;
    others += fmt::format("{}{}", others.empty() ? "" : ", ", rank.rank);
  }
  out.push_back({Severity::error, "R" + store::text_of(*first).substr(1), evidence,
                 by_itself ? "Read its last message; the other ranks end because it is gone."
                           : "Look on its host for what killed it: out of memory, a signal, a crash.",
                 first->at_ns, first->rank});
  if (others.empty()) return;
  out.push_back({Severity::error, fmt::format("Ranks failed after rank {}: {}", first->rank, others),
                 fmt::format("They wait for it in every collective; rank {} was the first.", first->rank),
                 fmt::format("Look at rank {}.", first->rank), first->at_ns, first->rank});
}

void losses_of_events(const store::Store& store, Findings& out) {
  std::uint64_t dropped = 0, lost = 0;
  for (const store::RankRow& rank : store.ranks()) {
    dropped += rank.dropped;
    lost += rank.lost_messages;
  }
  if (dropped + lost == 0) return;
  std::uint64_t shed = 0;
  for (const store::Gap& gap : store.gaps()) shed += gap.shed;
  out.push_back(
      {Severity::warning, "Events are missing",
       fmt::format("{} events dropped ({} by ranks, {} shed by a collector), {} messages lost on the "
                   "way; the lanes show where. Those stretches are unrecorded time; sums and averages are "
                   "of steps that lack nothing.",
                   dropped, dropped - std::min(shed, dropped), shed, lost),
       "Lower the detail level, or give the collector a core of its own.", 0, ev::kNoId});
}

void wrong_emission(const store::Store& store, Findings& out) {
  const auto ends = store.unmatched_ends();
  const std::string where = ends ? store::unmatched_ends_by_rank(*ends) : std::string();
  if (where.empty()) return;
  out.push_back(
      {Severity::warning, "Spans end that never began",
       fmt::format("{}. Nothing is missing that could explain it. What they ended is in no figure.", where),
       "Look at what the program emits: a begin for every end, on the same lane, nested.", 0, ev::kNoId});
}

void damage(const Summary& summary, Findings& out) {
  if (summary.problems.empty()) return;
  constexpr std::size_t kShown = 3;
  std::string evidence;
  for (std::size_t i = 0; i < std::min(kShown, summary.problems.size()); ++i) {
    evidence += summary.problems[i] + ". ";
  }
  if (summary.problems.size() > kShown)
    evidence += fmt::format("{} more: see `shardscope info`. ", summary.problems.size() - kShown);
  out.push_back({Severity::warning, "The recording is not whole",
                 evidence + "Figures are of what could be read.",
                 "Look for a whole copy; of a run that was cut off this is all there is.", 0, ev::kNoId});
}

/// What stands beside the overlap, and what to do about it, by framework: none has another's settings.
struct OverlapAdvice {
  std::string setting, next;
};
OverlapAdvice overlap_advice(const store::Store& store, const Summary& summary) {
  switch (summary.kind) {
    case Framework::fsdp2:
      return {
          "",
          "Look at the waits of the groups in the Timeline: set_modules_to_forward_prefetch() and "
          "set_modules_to_backward_prefetch() start gathers earlier; smaller groups of fully_shard() overlap "
          "more."};
    case Framework::ddp:
      return {
          "",
          "Buckets are reduced during the backward: a smaller bucket_cap_mb starts the first one earlier; "
          "with gradient accumulation no_sync() reduces once a step."};
    case Framework::deepspeed:
    case Framework::zero:
      break;
  }
  bool configured = store.has_tables() && zero_of(store.tables()).overlap_comm;
  if (summary.kind ==
      Framework::deepspeed) {  // its recordings hold the user's file: unset, it is on in stage 3
    const nlohmann::json config = parse_foreign(summary.config_json);
    const nlohmann::json::json_pointer key("/zero_optimization/overlap_comm");
    if (!config.is_object() || !config.contains(key)) configured = summary.stage == 3;
  }
  OverlapAdvice advice{configured ? ", overlap_comm is on" : ", overlap_comm is off",
                       "Set zero_optimization.overlap_comm to true."};
  if (summary.kind == Framework::deepspeed && summary.device == "cpu") {
    advice.next = "Measure on GPUs: on the CPU DeepSpeed has no streams, and overlap_comm changes nothing.";
  } else if (configured && summary.stage == 3) {
    advice.next =
        "Look at the late gathers: a larger stage3_prefetch_bucket_size or stage3_max_live_parameters "
        "starts them earlier.";
  } else if (configured) {
    advice.next =
        "Look at the buckets: a smaller reduce_bucket_size starts the first reduction earlier in the "
        "backward.";
  }
  return advice;
}

void exposed_communication(const store::Store& store, const Summary& summary, Findings& out) {
  constexpr double kWorthIt = 0.15;
  for (const RankSummary& rank : summary.ranks) {
    const double exposed = share(rank.time.exposed_comm_ns, rank.time.recorded_ns());
    const auto overlap = rank.time.overlap_pct();
    if (exposed < kWorthIt || !overlap) continue;
    const OverlapAdvice advice = overlap_advice(store, summary);
    out.push_back(
        {Severity::warning,
         fmt::format("Rank {}: {:.0f} % of the {} is exposed communication", rank.rank, 100 * exposed,
                     rank.time.unrecorded_ns > 0 ? "recorded time" : "step"),
         fmt::format("{:.1f} of {:.1f} ms communication is hidden behind compute (overlap {:.0f} %){}.",
                     static_cast<double>(rank.time.comm_ns - rank.time.exposed_comm_ns) * 1e-6,
                     static_cast<double>(rank.time.comm_ns) * 1e-6, *overlap, advice.setting),
         advice.next, 0, rank.rank});
    return;  // ranks resemble each other: the first one stands for all
  }
}

void late_prefetch(const Summary& summary, Findings& out) {
  if (!summary.prefetch) return;
  const Prefetch& p = *summary.prefetch;
  const std::uint64_t all = p.early + p.just_in_time + p.late + p.mistargeted + p.unused;
  if (all == 0) return;
  std::string of_steps = coverage(summary, summary.prefetch_steps, summary.steps);
  if (!of_steps.empty()) of_steps = ", " + of_steps;
  if (share(static_cast<std::int64_t>(p.late), static_cast<std::int64_t>(all)) > 0.25) {
    out.push_back(
        {Severity::warning, fmt::format("{} of {} prefetches of all ranks come too late", p.late, all),
         fmt::format("Compute waited {:.1f} ms for them{}.", static_cast<double>(p.late_wait_ns) * 1e-6,
                     of_steps),
         summary.kind == Framework::fsdp2
             ? "Prefetch further ahead: set_modules_to_backward_prefetch() with more than one module."
             : "Prefetch further ahead: raise stage3_prefetch_bucket_size.",
         0, ev::kNoId});
  }
  if (p.mistargeted + p.unused > 0) {
    out.push_back(
        {Severity::warning,
         fmt::format("{} prefetches of all ranks were never used", p.mistargeted + p.unused),
         fmt::format("{} after an invalidated trace, {} for other reasons{}.", p.mistargeted, p.unused,
                     of_steps),
         summary.kind == Framework::fsdp2
             ? "A group was gathered for a backward that did not come to it: name the next groups with "
               "set_modules_to_backward_prefetch()."
             : "The order of modules changes between iterations: mark the changing part as a leaf module.",
         0, ev::kNoId});
  }
}

void trace_invalidations(const store::Store& store, Findings& out) {
  for (const store::RankRow& rank : store.ranks()) {
    if (store.instant_count(rank.rank, EventKind::trace_invalidated) == 0) continue;
    if (const auto found = store.first_instant(rank.rank, EventKind::trace_invalidated)) {
      const TraceInvalidation invalidation = read_invalidation(rank.rank, *found);
      out.push_back({Severity::warning, "The fetch trace was invalidated",
                     fmt::format("At trace step {} rank {} {}.", invalidation.trace_step, rank.rank,
                                 explain(store, invalidation)),
                     "Costs the rest of this iteration and one recording iteration without prefetch; if it "
                     "happens often, mark the conditional part as a leaf module.",
                     invalidation.at_ns, rank.rank});
      return;
    }
  }
}

void live_limit(const store::Store& store, Findings& out) {
  std::uint64_t limited = 0, decisions = 0;
  for (const store::RankRow& rank : store.ranks()) {
    const auto count = [&](plan::PrefetchStop stop) {
      return store.instant_count(rank.rank, EventKind::fetch_decision, static_cast<std::uint8_t>(stop));
    };
    decisions += store.instant_count(rank.rank, EventKind::fetch_decision) -
                 count(plan::PrefetchStop::disabled) - count(plan::PrefetchStop::no_trace) -
                 count(plan::PrefetchStop::returned);
    limited += count(plan::PrefetchStop::live_limit);
  }
  if (decisions == 0 ||
      share(static_cast<std::int64_t>(limited), static_cast<std::int64_t>(decisions)) < 0.25)
    return;
  out.push_back(
      {Severity::info, "The live-parameter limit holds prefetching back",
       fmt::format("At {} of {} module boundaries {}.", limited, decisions,
                   explain(plan::PrefetchStop::live_limit, std::nullopt, limits_of(store.tables()))),
       "Raise stage3_max_live_parameters if memory allows it.", 0, ev::kNoId});
}

void stragglers(const store::Store& store, const Summary& summary, Findings& out) {
  if (summary.ranks.size() < 2) return;
  std::vector<double> compute;
  for (const RankSummary& rank : summary.ranks) {
    // Of ranks that recorded different parts of their time the shares compare, as long as they are of most of
    // it.
    if (2 * rank.time.unrecorded_ns > rank.time.total_ns) return;
    const std::int64_t recorded = std::max<std::int64_t>(rank.time.recorded_ns(), 1);
    compute.push_back(static_cast<double>(rank.time.compute_ns) * static_cast<double>(rank.time.total_ns) /
                      static_cast<double>(recorded));
  }
  const auto slowest = std::max_element(compute.begin(), compute.end());
  const double middle = quantile(compute, 0.5);
  if (middle <= 0 || *slowest < 1.2 * middle) return;
  const std::uint32_t rank = summary.ranks[static_cast<std::size_t>(slowest - compute.begin())].rank;
  std::string host;
  for (const store::RankRow& row : store.ranks()) {
    if (row.rank == rank) host = row.host;
  }
  out.push_back(
      {Severity::warning, fmt::format("Rank {} is a straggler", rank),
       fmt::format("It computes {:.0f} % longer than the median rank{}; the others wait for it in "
                   "every collective.",
                   100 * (*slowest / middle - 1), host.empty() ? "" : " (host " + host + ")"),
       "Compare its module times with another rank's: uneven data, a throttled or shared processor.", 0,
       rank});
}

void memory_excess(const Summary& summary, Findings& out) {
  constexpr double kTolerated = 5;  // percent: padding and alignment of small models
  const auto& excess = summary.memory_model.excess_pct;
  if (!excess || *excess < kTolerated) return;
  std::string parts;
  for (const MemoryPart& part : summary.memory_model.parts) {
    parts += fmt::format(" {} are {}: {}.", bytes_text(part.bytes), name_of(part.cause), explain(part.cause));
  }
  out.push_back(
      {Severity::info,
       fmt::format("Model states exceed {} by {:.1f} %", summary.memory_model.expression, *excess),
       fmt::format("{} expected, {} measured on rank {} at {}, where model states alone peak.",
                   bytes_text(summary.memory_model.bytes_per_rank),
                   bytes_text(*summary.memory_model.measured_bytes_per_rank),
                   summary.memory_model.measured_rank, time_text(summary.memory_model.measured_at_ns)) +
           parts,
       "The Memory panel of that rank's device pool has it as \"model states at most\" and names the "
       "categories at that "
       "time; its peak is that of the whole pool, at another time.",
       summary.memory_model.measured_at_ns, summary.memory_model.measured_rank});
}

/// fp16.loss_scale above 0: the scale that never moves.
std::optional<double> static_scale(const store::Store& store) {
  if (!store.has_tables()) return std::nullopt;
  const nlohmann::json config = parse_foreign(store.tables().config_json);
  const nlohmann::json::json_pointer enabled("/fp16/enabled"), scale("/fp16/loss_scale");
  if (!config.is_object() || !config.contains(enabled) || config[enabled] != true) return std::nullopt;
  if (!config.contains(scale) || !config[scale].is_number()) return std::nullopt;
  const double value = config[scale].get<double>();
  return value > 0 ? std::optional(value) : std::nullopt;
}

void overflows(const store::Store& store, Findings& out) {
  std::uint64_t skipped = 0;
  std::int64_t first_ns = 0;
  std::vector<double> scales;  // of the steps that have one
  for (const store::StepRow& step : store.steps()) {
    if (std::isfinite(step.loss_scale)) scales.push_back(step.loss_scale);
    if (!step.skipped) continue;
    if (skipped++ == 0) first_ns = step.begin_ns;
  }
  if (skipped == 0) return;
  std::string evidence = "No loss scale was in use that could be lowered.";
  std::string next =
      "A few at the start are normal; if they go on, look for the first parameter with inf or nan.";
  if (const std::optional<double> fixed = static_scale(store)) {
    evidence = fmt::format("fp16.loss_scale keeps the scale at {:.15g}: it is not lowered after an overflow.",
                           *fixed);
    next = fmt::format(
        "Set fp16.loss_scale to 0, so that the scale is found and follows the gradients, or below {:.15g}; "
        "if "
        "steps are still skipped, look for the first parameter with inf or nan.",
        *fixed);
  } else if (!scales.empty() && *std::max_element(scales.begin(), scales.end()) > 1) {
    std::size_t falls = 0;
    for (std::size_t i = 1; i < scales.size(); ++i) falls += scales[i] < scales[i - 1] ? 1 : 0;
    evidence =
        falls == 0
            ? fmt::format("The loss scale did not fall from {:.15g}: its hysteresis lets overflows pass.",
                          scales.back())
            : fmt::format("The loss scale was lowered {} time{}, to {:.15g} at the least.", falls,
                          falls == 1 ? "" : "s", *std::min_element(scales.begin(), scales.end()));
  }
  out.push_back({skipped * 5 > store.steps().size() ? Severity::warning : Severity::info,
                 fmt::format("{} of {} steps were skipped after an overflow", skipped, store.steps().size()),
                 evidence, next, first_ns, ev::kNoId});
}

}  // namespace

Findings find(const store::Store& store, const Summary& summary) {
  Findings out;
  rank_failures(store, out);
  losses_of_events(store, out);
  wrong_emission(store, out);
  damage(summary, out);
  trace_invalidations(store, out);
  exposed_communication(store, summary, out);
  late_prefetch(summary, out);
  live_limit(store, out);
  stragglers(store, summary, out);
  memory_excess(summary, out);
  overflows(store, out);
  std::stable_sort(out.begin(), out.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return out;
}

}  // namespace shardscope::analysis
