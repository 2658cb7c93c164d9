// Prefetching of stage 3 and FSDP2: gathers that could begin earlier, prefetches that are too large, late or
// unused.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "app/analysis/communication.h"
#include "app/analysis/decision_text.h"
#include "app/analysis/findings/findings.h"
#include "app/analysis/missing_reason.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/statistics.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::analysis::findings {
namespace {

using ev::EventKind;
using ev::Severity;

/// Whether a scheduler with settings prefetches: ZeRO-3 of this runtime or DeepSpeed, several ranks.
bool schedules(const Facts& facts) {
  return facts.zero_keys && facts.summary.stage == 3 && facts.summary.copy_ranks > 1 && !facts.ranks.empty();
}

std::uint64_t stops(const Facts& facts, plan::PrefetchStop stop) {
  std::uint64_t count = 0;
  for (const store::RankRow& rank : facts.store.ranks())
    count += facts.store.instant_count(rank.rank, EventKind::fetch_decision, static_cast<std::uint8_t>(stop));
  return count;
}

/// Elements of the largest module's own parameters.
std::int64_t largest_module(const Facts& facts) {
  const ev::RunTables& tables = facts.store.tables();
  std::int64_t largest = 0;
  for (const ev::ModuleInfo& module : tables.modules) {
    std::int64_t elems = 0;
    for (const std::uint32_t param : module.params)
      elems += param < tables.params.size() ? tables.params[param].elems : 0;
    largest = std::max(largest, elems);
  }
  return largest;
}

std::string of_steps(const Facts& facts) {
  const std::string text = coverage(facts.summary, facts.summary.prefetch_steps, facts.summary.steps);
  return text.empty() ? text : ", " + text;
}

}  // namespace

namespace {

/// Extra time of steps in which a rank's trace was invalidated, and of those right after, in which it was
/// recorded again: medians with and without, over the measured steps.
struct TraceCost {
  std::size_t steps = 0;  ///< affected, of `of` measured ones
  std::size_t of = 0;
  double with_ms = 0, without_ms = 0;  ///< 0: no such steps
  [[nodiscard]] bool known() const noexcept { return steps > 0 && steps < of; }
  [[nodiscard]] double once_ms() const noexcept {
    return std::max(0.0, with_ms - without_ms) * static_cast<double>(steps);
  }
};
TraceCost cost_of_invalidations(const Facts& facts, std::uint32_t rank) {
  std::vector<std::int64_t> times;
  facts.store.for_each_instant(rank, 0, store::Store::kEnd, [&](const ev::Event& event) {
    if (event.kind == EventKind::trace_invalidated) times.push_back(static_cast<std::int64_t>(event.ticks));
  });
  std::ranges::sort(times);
  const auto& steps = facts.digest.steps();
  const auto own = [&](std::size_t i) -> const RankStep* {
    const auto found = std::ranges::find(steps[i].ranks, rank, &RankStep::rank);
    return found == steps[i].ranks.end() ? nullptr : &*found;
  };
  // A device timestamps a step's begin when it reaches it; the host may invalidate the trace before that. It
  // waited for the previous step's end, so an event between two steps belongs to the later one.
  const auto invalidated = [&](std::size_t i) {
    const RankStep* const step = own(i);
    if (step == nullptr) return false;
    const RankStep* const previous = i > 0 ? own(i - 1) : nullptr;
    const auto at = std::ranges::lower_bound(times, previous != nullptr ? previous->end_ns : step->begin_ns);
    return at != times.end() && *at < step->end_ns;
  };
  std::vector<double> with, without;
  const std::size_t first = facts.digest.first_measured();
  bool before = first > 0 && first <= steps.size() && invalidated(first - 1);
  for (std::size_t i = first; i < steps.size(); ++i) {
    const bool now = invalidated(i);
    (before || now ? with : without).push_back(length_ms(steps[i]));
    before = now;
  }
  const auto middle = [](const std::vector<double>& of) { return of.empty() ? 0 : quantile(of, 0.5); };
  return {with.size(), with.size() + without.size(), middle(with), middle(without)};
}

/// A warning by its cost per measured step, or if no step was unaffected.
Severity severity_of(const Facts& facts, const TraceCost& cost) {
  if (cost.steps > 0 && !cost.known()) return Severity::warning;
  const double of_step_ms = cost.known() ? cost.once_ms() / static_cast<double>(cost.of) : 0;
  return facts.share(of_step_ms) >= kWarning && of_step_ms >= kLeastWarningMs ? Severity::warning
                                                                              : Severity::info;
}

/// S of all collectives in a typical step of the lowest rank.
double communicated_bytes(const Facts& facts) {
  double sum = 0;
  for (const std::size_t index : facts.typical) {
    for (const auto& [op, totals] : facts.digest.steps()[index].ops) sum += static_cast<double>(totals.bytes);
  }
  return facts.typical.empty() ? 0 : sum / static_cast<double>(facts.typical.size());
}

}  // namespace

namespace {

/// From the root down to the module.
std::vector<std::uint32_t> path_to(const ev::RunTables& tables, std::uint32_t module) {
  std::vector<std::uint32_t> path;
  while (module < tables.modules.size() && path.size() <= tables.modules.size()) {
    path.push_back(module);
    module = tables.modules[module].parent;
  }
  std::ranges::reverse(path);
  return path;
}

/// The module whose forward chooses between the expected and the other module: the nearest around both that
/// is entered. kNoId: not known.
std::uint32_t chooser_of(const ev::RunTables& tables, const TraceInvalidation& invalidation) {
  const std::vector<std::uint32_t> expected = path_to(tables, invalidation.expected),
                                   got = path_to(tables, invalidation.got);
  std::uint32_t chooser = ev::kNoId;
  // Without the two themselves: one may lie in the other.
  for (std::size_t i = 0; i + 1 < std::min(expected.size(), got.size()) && expected[i] == got[i]; ++i) {
    const std::string& type = tables.modules[expected[i]].type;
    if (type != "ModuleList" && type != "ModuleDict") chooser = expected[i];
  }
  return chooser;
}

/// A leaf below the choice is itself run or not: the trace differs all the same.
std::string make_a_leaf(const store::Store& store, const TraceInvalidation& invalidation) {
  const ev::RunTables& tables = store.tables();
  const std::uint32_t chooser = chooser_of(tables, invalidation);
  const std::string how =
      " a leaf module (zero_optimization.leaf_module; set_z3_leaf_modules() of DeepSpeed)";
  if (chooser == ev::kNoId)
    return "make the module whose forward chooses what runs" + how +
           ": not what is chosen, but what chooses.";
  std::int64_t elems = 0;
  for (const ev::ModuleInfo& module : tables.modules) {
    const std::vector<std::uint32_t> path = path_to(tables, module.id);
    if (std::ranges::find(path, chooser) == path.end()) continue;
    for (const std::uint32_t param : module.params)
      elems += param < tables.params.size() ? tables.params[param].elems : 0;
  }
  const ev::ModuleInfo& module = tables.modules[chooser];
  return fmt::format(
      "make the module whose forward chooses, {} (class {}),{}. Its {} elements are then gathered together, "
      "{} on each rank; a leaf module below it changes nothing.",
      module.path.empty() ? "the root" : module.path, module.type, how, elements_text(elems),
      bytes_text(elems * tables.param_bytes));
}

}  // namespace

void trace_invalidations(const Facts& facts, Found& found) {
  const store::Store& store = facts.store;
  for (const store::RankRow& rank : store.ranks()) {
    const std::uint64_t count = store.instant_count(rank.rank, EventKind::trace_invalidated);
    if (count == 0) continue;
    const auto first = store.first_instant(rank.rank, EventKind::trace_invalidated);
    if (!first) continue;
    const TraceInvalidation invalidation = read_invalidation(rank.rank, *first);
    const TraceCost cost = cost_of_invalidations(facts, rank.rank);
    Finding finding{severity_of(facts, cost),
                    count == 1 ? std::string("The fetch trace was invalidated")
                               : fmt::format("The fetch trace was invalidated {} times", count),
                    fmt::format("At trace step {} rank {} {}.", invalidation.trace_step, rank.rank,
                                explain(store, invalidation)),
                    "Costs the rest of this iteration and one recording iteration without prefetch. If it "
                    "happens often, " +
                        make_a_leaf(store, invalidation),
                    invalidation.at_ns,
                    rank.rank};
    finding.id = "trace_invalidated";
    if (cost.known()) {
      finding.evidence += fmt::format(
          " The {} step{} in which rank {}'s trace was invalidated or recorded again took {:.2f} ms "
          "(median), the others {:.2f} ms.",
          cost.steps, cost.steps == 1 ? "" : "s", rank.rank, cost.with_ms, cost.without_ms);
      finding.cost_once_ms = cost.once_ms();
    } else if (cost.steps > 0) {
      finding.evidence += " No measured step was without it.";
    }
    found.add(std::move(finding));
    return;
  }
}

/// A prefetch of a large part of the model: its first module waits for the whole gather.
void large_prefetches(const Facts& facts, Found& found) {
  constexpr double kLargePart = 0.25, kLate = 0.25;
  if (!schedules(facts) || found.has("overlap_off") || !facts.summary.prefetch) return;
  const auto elems = static_cast<double>(facts.summary.params);
  const Prefetch& seen = *facts.summary.prefetch;
  const auto all = static_cast<double>(seen.early + seen.just_in_time + seen.late);
  if (static_cast<double>(facts.zero.prefetch_bucket_size) < kLargePart * elems || all == 0 ||
      static_cast<double>(seen.late) < kLate * all)
    return;
  // Exposed time that the link cannot hide is not caused by it.
  const double bound = std::max(0.0, facts.mean(&RankFacts::link) - facts.mean(&RankFacts::compute));
  const double gain = std::min(facts.mean(&RankFacts::gather_moving), facts.mean(&RankFacts::moving) - bound);
  Finding finding;
  finding.id = "large_prefetch";
  finding.title = "Prefetches are large: the first module of each waits for all of it";
  finding.evidence = fmt::format(
      "stage3_prefetch_bucket_size is {} of {} elements of the model; {} of {} prefetches come late, gathers "
      "are exposed for {}.",
      elements_text(facts.zero.prefetch_bucket_size), elements_text(facts.summary.params), seen.late,
      static_cast<std::uint64_t>(all), of_step(facts, facts.mean(&RankFacts::gather_moving)));
  finding.evidence += worst_of(exposed_modules(facts, Collectives::gathers), kExposedGathers);
  for (const double part : {16.0, 64.0, 8.0}) {
    advise(finding, setting({{"zero_optimization.stage3_prefetch_bucket_size",
                              std::to_string(round_elems(elems / part))}}));
  }
  found.add_by_cost(facts, gain, std::move(finding));
}

/// Gathers are exposed although the link was idle before them: they could have begun earlier.
void short_prefetches(const Facts& facts, Found& found) {
  constexpr double kMostPart = 0.25;
  constexpr std::int64_t kFactor = 4;
  if (!schedules(facts) || found.has("overlap_off") || found.has("large_prefetch")) return;
  const double hideable = facts.mean(&RankFacts::hideable);
  if (facts.share(hideable) < kNote) return;
  const std::uint64_t full = stops(facts, plan::PrefetchStop::bucket_full),
                      live = stops(facts, plan::PrefetchStop::live_limit),
                      no_trace = stops(facts, plan::PrefetchStop::no_trace),
                      off = stops(facts, plan::PrefetchStop::disabled);
  if (no_trace > full + live && found.has("trace_invalidated")) {
    found.follows("trace_invalidated",
                  fmt::format("Gathers of {:.1f} ms of a step begin when they are needed", hideable));
    return;
  }
  const auto elems = static_cast<double>(facts.summary.params);
  Finding finding;
  finding.id = "short_prefetch";
  finding.title = "Gathers begin too late, while the link is free";
  finding.evidence = fmt::format("{} of exposed gathers could have been hidden had they begun earlier.",
                                 of_step(facts, hideable)) +
                     worst_of(exposed_modules(facts, Collectives::gathers), kExposedGathers);
  if (live > full && live > 0) {
    // A module in use, the next one, and the prefetched elements.
    const std::int64_t wanted = std::max(
        2 * facts.zero.max_live_parameters,
        round_elems(static_cast<double>(2 * largest_module(facts) + facts.zero.prefetch_bucket_size)));
    if (static_cast<double>(facts.zero.max_live_parameters) >= elems) return;
    finding.evidence +=
        fmt::format(" At {} module boundaries {}.", live,
                    explain(plan::PrefetchStop::live_limit, std::nullopt, limits_of(facts.store.tables())));
    advise(finding, setting({{"zero_optimization.stage3_max_live_parameters", std::to_string(wanted)}},
                            "That many elements may be gathered at once."));
  } else if (full + off > 0) {
    const auto most = static_cast<std::int64_t>(elems * kMostPart);
    const std::int64_t now = facts.zero.prefetch_bucket_size;
    const std::int64_t wanted =
        now == 0 ? round_elems(elems / 16) : std::min(kFactor * now, round_elems(static_cast<double>(most)));
    if (wanted <= now) return;  // a larger prefetch would itself be late
    const plan::PrefetchStop stop = full > 0 ? plan::PrefetchStop::bucket_full : plan::PrefetchStop::disabled;
    finding.evidence += fmt::format(" At {} module boundaries {}.", full > 0 ? full : off,
                                    explain(stop, std::nullopt, limits_of(facts.store.tables())));
    advise(finding, setting({{"zero_optimization.stage3_prefetch_bucket_size", std::to_string(wanted)}}));
  } else {
    return;  // the reason for stopping was not recorded: no advice
  }
  for (Advice& option : gather_options(facts)) advise(finding, std::move(option));
  found.add_by_cost(facts, hideable, std::move(finding));
}

namespace {

/// Of all ranks in the typical steps: a single stop is no cost of prefetches.
struct TypicalPrefetch {
  Prefetch sum;
  std::size_t rank_steps = 0;
  [[nodiscard]] double per_rank_step(double all) const {
    return rank_steps > 0 ? all / static_cast<double>(rank_steps) : 0;
  }
};
TypicalPrefetch typical_prefetch(const Facts& facts) {
  TypicalPrefetch out;
  for (const std::size_t index : facts.typical) {
    const StepDigest& step = facts.digest.steps()[index];
    if (!step.prefetch_whole()) continue;
    out.sum.add(step.prefetch);
    out.rank_steps += step.ranks.size();
  }
  return out;
}

/// Present if a quarter of all prefetches were late and computation waited for them.
struct LatePrefetches {
  double wait_ms = 0;  ///< per step and rank
  std::string title;
};
std::optional<LatePrefetches> late_ones(const Facts& facts) {
  constexpr double kMany = 0.25;
  if (!facts.summary.prefetch || facts.summary.copy_ranks < 2) return std::nullopt;
  const Prefetch& seen = *facts.summary.prefetch;
  const std::uint64_t all = seen.early + seen.just_in_time + seen.late + seen.mistargeted + seen.unused;
  if (all == 0 || static_cast<double>(seen.late) < kMany * static_cast<double>(all)) return std::nullopt;
  const TypicalPrefetch typical = typical_prefetch(facts);
  const double wait_ms = typical.per_rank_step(static_cast<double>(typical.sum.late_wait_ns)) * 1e-6;
  if (facts.share(wait_ms) < kNote) return std::nullopt;
  return LatePrefetches{wait_ms,
                        fmt::format("{} of {} prefetches of all ranks come too late", seen.late, all)};
}

}  // namespace

/// FSDP2 prefetches one group ahead, whatever runs meanwhile: that is the cause if most of the exposed time
/// is waiting for gathers for which the link had time before.
void late_groups(const Facts& facts, Found& found) {
  if (facts.summary.kind != Framework::fsdp2 || found.has("link_bound") || found.has("tiny_gathers")) return;
  const auto late = late_ones(facts);
  const double moving = facts.mean(&RankFacts::moving), waiting = facts.mean(&RankFacts::waiting);
  if (!late || waiting > moving || 2 * late->wait_ms < moving) return;
  const double hideable = std::min(late->wait_ms, facts.mean(&RankFacts::hideable));
  Finding finding;
  finding.id = "late_prefetch";
  finding.title = late->title;
  finding.evidence = fmt::format(
      "Computation waited {} for them{}; had their gathers begun earlier, {:.1f} ms of it could have been "
      "hidden.",
      of_step(facts, late->wait_ms), of_steps(facts), hideable);
  finding.evidence += worst_of(awaited_modules(facts), kAwaitedParameters);
  for (Advice& option : earlier_group_options(facts)) advise(finding, std::move(option));
  for (Advice& option : reshard_off_options(facts)) advise(finding, std::move(option));
  found.add_by_cost(facts, hideable, std::move(finding));
}

/// The symptom: a consequence of an earlier finding, else reported without advice that would not help.
void late_prefetches(const Facts& facts, Found& found) {
  const auto late = late_ones(facts);
  if (!late || found.has("late_prefetch")) return;
  const double wait_ms = late->wait_ms;
  const std::string& title = late->title;
  const bool for_others = facts.mean(&RankFacts::waiting) > facts.mean(&RankFacts::moving);
  for (const char* cause : {"data_starvation", "straggler"}) {
    if (for_others && found.has(cause)) return found.follows(cause, title);
  }
  for (const char* cause :
       {"nvme_params", "trace_invalidated", "overlap_off", "large_prefetch", "short_prefetch", "link_bound",
        "tiny_gathers", "exposed_communication", "slow_link", "straggler"}) {
    if (found.has(cause)) return found.follows(cause, title);
  }
  Finding finding;
  finding.id = "late_prefetch";
  finding.title = title;
  finding.evidence =
      fmt::format("Computation waited {} for them{}.", of_step(facts, wait_ms), of_steps(facts)) +
      worst_of(awaited_modules(facts), kAwaitedParameters);
  finding.next_step =
      "Look at their gathers in the Timeline: the link is busy before them, so that asking earlier gains "
      "nothing.";
  const double copied = facts.mean(&RankFacts::copy);
  if (schedules(facts) && facts.zero.offload_param.device == plan::OffloadDevice::cpu &&
      copied > facts.mean(&RankFacts::moving)) {
    finding.evidence += fmt::format(
        " Each gather begins with a copy of the shard from host memory: copies are exposed for {}.",
        of_step(facts, copied));
    finding.otherwise = "The link to the host is the bound: issuing gathers earlier gains nothing.";
    advise(finding, setting({{"zero_optimization.offload_param.device", "\"none\""}},
                            "Where the device has room for its shards: they need no copy then."));
    for (Advice& option : gather_options(facts)) advise(finding, std::move(option));
  }
  found.add_by_cost(facts, wait_ms, std::move(finding));
}

namespace {

std::uint64_t vain_count(const Prefetch& seen) { return seen.mistargeted + seen.unused; }

/// The step with most of them, of the lowest rank that has any there.
void look_at_unused(const Facts& facts, Finding& finding) {
  const StepDigest* worst = nullptr;
  for (const StepDigest& step : facts.digest.steps()) {
    if (vain_count(step.prefetch) > (worst == nullptr ? 0 : vain_count(worst->prefetch))) worst = &step;
  }
  if (worst == nullptr) return;
  for (const RankStep& rank : worst->ranks) {
    if (vain_count(prefetch_outcomes(facts.store, rank.rank, rank.begin_ns, rank.end_ns)) == 0) continue;
    finding.rank = rank.rank;
    finding.at_ns = rank.begin_ns;
    finding.until_ns = rank.end_ns;
    return;
  }
}

}  // namespace

void unused_prefetches(const Facts& facts, Found& found) {
  if (!facts.summary.prefetch) return;
  const Prefetch& seen = *facts.summary.prefetch;
  if (seen.mistargeted + seen.unused == 0) return;
  const std::string title =
      fmt::format("{} prefetches of all ranks were never used", seen.mistargeted + seen.unused);
  if (found.has("trace_invalidated")) return found.follows("trace_invalidated", title);
  Finding finding{
      Severity::info, title,
      fmt::format("{} after an invalidated trace, {} for other reasons{}.", seen.mistargeted, seen.unused,
                  of_steps(facts)),
      facts.summary.kind == Framework::fsdp2
          ? "A group was gathered for a backward that did not come to it: name the next groups with "
            "set_modules_to_backward_prefetch()."
          : "The order of modules changes between iterations: make the module that chooses a leaf module "
            "(zero_optimization.leaf_module; set_z3_leaf_modules() of DeepSpeed)."};
  finding.id = "unused_prefetch";
  look_at_unused(facts, finding);
  const TypicalPrefetch typical = typical_prefetch(facts);
  if (typical.sum.vain_bytes > 0) {
    finding.cost_bytes =
        static_cast<std::int64_t>(typical.per_rank_step(static_cast<double>(typical.sum.vain_bytes)));
    finding.bytes_of = BytesOf::communication;
    const double all = communicated_bytes(facts);
    if (all > 0 && static_cast<double>(*finding.cost_bytes) >= kWarning * all)
      finding.severity = Severity::warning;
    if (all > 0)
      finding.evidence +=
          fmt::format(" They moved {} of {} that a rank communicates in a step.",
                      bytes_text(*finding.cost_bytes), bytes_text(static_cast<std::int64_t>(all)));
  }
  found.add(std::move(finding));
}

}  // namespace shardscope::analysis::findings
