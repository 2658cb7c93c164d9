// Diagnoses: what is wrong with a run, what it costs, and what to do next. The table of all findings.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "app/analysis/findings/findings.h"

namespace shardscope::analysis {
namespace findings {
namespace {

struct Kind {
  const char* id;
  const char* panel;  ///< of the dashboard, that shows its evidence
};
/// The page of each is docs/findings/ID.md; tests/house/citations_test.py asserts that it is there.
constexpr std::array kKinds{
    Kind{"rank_failed", "timeline"},
    Kind{"hang", "timeline"},
    Kind{"events_missing", "timeline"},
    Kind{"unmatched_ends", "timeline"},
    Kind{"recording_damaged", "overview"},
    Kind{"clock_residual", "overview"},
    Kind{"single_stop", "timeline"},
    Kind{"data_starvation", "timeline"},
    Kind{"straggler", "timeline"},
    Kind{"trace_invalidated", "stepper"},
    Kind{"overlap_off", "timeline"},
    Kind{"large_bucket", "communication"},
    Kind{"small_bucket", "communication"},
    Kind{"accumulated_reductions", "communication"},
    Kind{"large_prefetch", "communication"},
    Kind{"short_prefetch", "stepper"},
    Kind{"link_bound", "communication"},
    Kind{"exposed_communication", "timeline"},
    Kind{"late_prefetch", "timeline"},
    Kind{"unused_prefetch", "stepper"},
    Kind{"volume_above", "communication"},
    Kind{"cpu_optimizer", "timeline"},
    Kind{"nvme_wait", "timeline"},
    Kind{"host_bound", "timeline"},
    Kind{"memory_excess", "memory"},
    Kind{"gathered_peak", "memory"},
    Kind{"fragmentation", "memory"},
    Kind{"divergence", "overview"},
    Kind{"overflow", "overview"},
    Kind{"loss_scale_floor", "overview"},
};

/// In the order of causes.
constexpr std::array kRules{
    rank_failures,    hangs,
    losses_of_events, wrong_emission,
    damage,           clock_residuals,
    single_stops,     data_starvation,
    stragglers,       trace_invalidations,
    overlap_off,      large_buckets,
    small_buckets,    accumulated_reductions,
    large_prefetches, short_prefetches,
    link_bound,       exposed_communication,
    late_prefetches,  unused_prefetches,
    volume_above,     cpu_optimizer,
    nvme_wait,        host_bound,
    memory_excess,    gathered_peak,
    fragmentation,    divergence,
    overflows,        loss_scale_floor,
};

}  // namespace

bool Found::has(std::string_view id) const {
  return std::ranges::any_of(findings_, [&](const Finding& one) { return one.id == id; });
}

void Found::add_by_cost(const Facts& facts, double cost_ms, Finding finding) {
  if (facts.share(cost_ms) < kNote || cost_ms < kLeastCostMs) return;
  finding.severity = facts.share(cost_ms) < kWarning || cost_ms < kLeastWarningMs ? ev::Severity::info
                                                                                  : ev::Severity::warning;
  finding.cost_ms = cost_ms;
  add(std::move(finding));
}

void Found::follows(std::string_view cause, std::string title) {
  const auto found = std::ranges::find(findings_, cause, &Finding::id);
  if (found != findings_.end()) found->explains.push_back(std::move(title));
}

std::string of_step(const Facts& facts, double ms) {
  return fmt::format("{:.1f} of {:.1f} ms ({:.0f} %)", ms, facts.step_ms, 100 * facts.share(ms));
}

std::int64_t round_elems(double count) {
  if (!(count >= 1)) return 1;
  const double digit = std::pow(10, std::floor(std::log10(count)));
  return static_cast<std::int64_t>(std::max(1.0, std::round(count / digit)) * digit);
}

}  // namespace findings

std::vector<Finding> find(const store::Store& store, const Summary& summary, const Digest& digest) {
  const findings::Facts facts = findings::facts_of(store, summary, digest);
  findings::Found found;
  for (const auto rule : findings::kRules) rule(facts, found);
  std::vector<Finding> out = found.take();
  for (Finding& finding : out) {
    finding.page = "docs/findings/" + finding.id + ".md";
    const auto kind = std::ranges::find_if(findings::kKinds,
                                           [&](const findings::Kind& one) { return finding.id == one.id; });
    if (kind != findings::kKinds.end()) finding.panel = kind->panel;
  }
  std::stable_sort(out.begin(), out.end(), [](const Finding& a, const Finding& b) {
    return a.severity != b.severity
               ? a.severity > b.severity
               : a.cost_ms.value_or(-1) > b.cost_ms.value_or(-1) && a.severity != ev::Severity::error;
  });
  return out;
}

std::vector<Finding> find(const store::Store& store, const Summary& summary) {
  Digest digest;
  (void)digest.update(store);
  return find(store, summary, digest);
}

}  // namespace shardscope::analysis
