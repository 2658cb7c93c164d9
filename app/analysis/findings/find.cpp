// Diagnoses: what is wrong with a run, what it costs, and what to do next. The table of all findings.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "app/analysis/finding_kinds.h"
#include "app/analysis/findings/findings.h"

namespace shardscope::analysis {
namespace findings {
namespace {

std::int64_t moving(const RankStep& rank) { return rank.exposed.moving_ns; }
std::int64_t gathers(const RankStep& rank) { return rank.exposed.gather_moving_ns; }
std::int64_t reductions(const RankStep& rank) { return rank.exposed.reduce_moving_ns; }
std::int64_t exposed(const RankStep& rank) { return rank.time.exposed_comm_ns; }
std::int64_t fetch_waits(const RankStep& rank) { return rank.fetch_wait_ns; }
std::int64_t data_waits(const RankStep& rank) { return rank.data_wait_ns.value_or(0); }
std::int64_t computes(const RankStep& rank) { return rank.time.compute_ns; }
std::int64_t copies(const RankStep& rank) { return rank.time.exposed_copy_ns; }

struct Kind {
  const char* id;
  const char* panel;  ///< panel of the dashboard with its evidence
  /// The figure that is largest in its worst instance; null: no instances, or the rule sets the place.
  std::int64_t (*measure)(const RankStep&) = nullptr;
  /// Why it may concern the whole run only; empty: never.
  const char* whole_run = "";
};
/// The page of each is docs/findings/ID.md; tests/house/citations_test.py asserts that it exists.
constexpr std::array kKinds{
    Kind{"rehearsed_fault", "timeline", nullptr,
         "it is said at the begin; what the fault causes has findings of its own"},
    Kind{"rank_failed", "timeline"},
    Kind{"hang", "timeline"},
    Kind{"events_missing", "timeline"},
    Kind{"unmatched_ends", "timeline"},
    Kind{"recording_damaged", "overview", nullptr, "of damage outside the events no time is known"},
    Kind{"clock_residual", "overview"},
    Kind{"single_stop", "timeline"},
    Kind{"data_starvation", "timeline", data_waits},
    Kind{"straggler", "timeline", computes},
    Kind{"slow_link", "communication", moving},
    Kind{"trace_invalidated", "stepper"},
    Kind{"overlap_off", "timeline", moving},
    Kind{"large_bucket", "communication", reductions},
    Kind{"small_bucket", "communication", reductions},
    Kind{"accumulated_reductions", "communication", moving},
    Kind{"serialized_buckets", "timeline", reductions},
    Kind{"large_prefetch", "communication", gathers},
    Kind{"short_prefetch", "stepper", gathers},
    Kind{"link_bound", "communication", moving},
    Kind{"tiny_gathers", "communication", gathers},
    Kind{"exposed_communication", "timeline", exposed},
    Kind{"nvme_params", "timeline", fetch_waits},
    Kind{"late_prefetch", "timeline", fetch_waits},
    Kind{"unused_prefetch", "stepper"},
    Kind{"volume_above", "communication"},
    Kind{"cpu_optimizer", "timeline"},
    Kind{"nvme_wait", "timeline", copies},
    Kind{"host_bound", "timeline"},
    Kind{"recomputation", "timeline"},
    Kind{"memory_excess", "memory"},
    Kind{"held_after_use", "memory"},
    Kind{"gathered_peak", "memory"},
    Kind{"fragmentation", "memory"},
    Kind{"divergence", "overview"},
    Kind{"overflow", "overview"},
    Kind{"loss_scale_floor", "overview"},
};

/// Causes before symptoms.
constexpr std::array kRules{
    rehearsals,
    hangs,
    rank_failures,
    losses_of_events,
    wrong_emission,
    damage,
    clock_residuals,
    single_stops,
    data_starvation,
    slow_links,
    stragglers,
    drifting_ranks,
    trace_invalidations,
    overlap_off,
    large_buckets,
    small_buckets,
    accumulated_reductions,
    serialized_buckets,
    large_prefetches,
    short_prefetches,
    nvme_params,
    link_bound,
    tiny_gathers,
    late_groups,
    exposed_communication,
    late_prefetches,
    unused_prefetches,
    volume_above,
    cpu_optimizer,
    nvme_wait,
    host_bound,
    recomputation,
    memory_excess,
    held_after_use,
    gathered_peak,
    fragmentation,
    divergence,
    overflows,
    loss_scale_floor,
    past_stragglers,
};

}  // namespace

const Finding* Found::find(std::string_view id) const {
  const auto found = std::ranges::find(findings_, id, &Finding::id);
  return found == findings_.end() ? nullptr : &*found;
}

void Found::add_by_cost(const Facts& facts, double cost_ms, Finding finding, ev::Severity most) {
  if (facts.share(cost_ms) < kNote || cost_ms < kLeastCostMs) return;
  finding.severity = facts.share(cost_ms) < kWarning || cost_ms < kLeastWarningMs ? ev::Severity::info : most;
  finding.cost_ms = cost_ms;
  add(std::move(finding));
}

void Found::follows(std::string_view cause, std::string title) {
  const auto found = std::ranges::find(findings_, cause, &Finding::id);
  if (found != findings_.end()) found->explains.push_back(std::move(title));
}

bool Found::add_evidence(std::string_view id, std::uint32_t rank, const std::string& text) {
  const auto found = std::ranges::find_if(
      findings_, [&](const Finding& finding) { return finding.id == id && finding.rank == rank; });
  if (found == findings_.end()) return false;
  found->evidence += text;
  return true;
}

std::string of_step(const Facts& facts, double ms) {
  return fmt::format("{:.1f} of {:.1f} ms ({:.0f} %)", ms, facts.step_ms, 100 * facts.share(ms));
}

std::int64_t live_limit(const Facts& facts, double elems) {
  std::int64_t largest = 1;
  for (const ev::ParamInfo& param : facts.store.tables().params) largest = std::max(largest, param.elems);
  return std::max(largest, round_elems(elems));
}

std::int64_t round_elems(double count) {
  if (!(count >= 1)) return 1;
  const double digit = std::pow(10, std::floor(std::log10(count)));
  return static_cast<std::int64_t>(std::max(1.0, std::round(count / digit)) * digit);
}

}  // namespace findings

std::vector<FindingKind> finding_kinds() {
  std::vector<FindingKind> out;
  for (const findings::Kind& kind : findings::kKinds) out.push_back({kind.id, kind.panel, kind.whole_run});
  return out;
}

std::vector<Finding> find(const store::Store& store, const Summary& summary, const Digest& digest) {
  const findings::Facts facts = findings::facts_of(store, summary, digest);
  findings::Found found;
  for (const auto rule : findings::kRules) rule(facts, found);
  std::vector<Finding> out = found.take();
  for (Finding& finding : out) {
    finding.page = "docs/findings/" + finding.id + ".md";
    const auto kind = std::ranges::find_if(findings::kKinds,
                                           [&](const findings::Kind& one) { return finding.id == one.id; });
    if (kind == findings::kKinds.end()) continue;
    finding.panel = kind->panel;
    if (kind->measure != nullptr) findings::look_at_worst(facts, finding, kind->measure);
    if (*kind->whole_run == '\0') findings::look_at_a_step(facts, finding);
  }
  std::stable_sort(out.begin(), out.end(), [](const Finding& a, const Finding& b) {
    const bool first = a.id == findings::kRehearsedFault;
    if (first != (b.id == findings::kRehearsedFault)) return first;
    return a.severity != b.severity
               ? a.severity > b.severity
               : a.cost_ms.value_or(-1) > b.cost_ms.value_or(-1) && a.severity != ev::Severity::error;
  });
  try_advice(out, {});
  return out;
}

std::vector<Finding> find(const store::Store& store, const Summary& summary) {
  return find(store, summary, digest_of(store));
}

}  // namespace shardscope::analysis
