// Accumulation that saves no communication: each micro-step reduces or gathers what is needed once per step.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/findings/findings.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/statistics.h"
#include "app/analysis/zero_settings.h"

namespace shardscope::analysis::findings {
namespace {

/// Reductions of a rank in a typical step, as a multiple of all trained elements, median: the number of
/// micro-steps if each of them reduces, 1 if gradients are accumulated first.
double reductions_per_step(const Facts& facts) {
  using Op = ev::CollectiveOp;
  std::vector<double> by_step;
  for (const std::size_t index : facts.typical) {
    double& elems = by_step.emplace_back(0);
    for (const auto& [op, totals] : facts.digest.steps()[index].ops) {
      // An all-reduce in addition to a reduce-scatter is that of replicas, for the same gradients.
      const Op wanted = facts.summary.kind == Framework::ddp ? Op::all_reduce : Op::reduce_scatter;
      if (op == wanted) elems += static_cast<double>(totals.elems);
    }
  }
  const auto of = static_cast<double>(trained_elems(facts));
  return of > 0 && !by_step.empty() ? quantile(std::move(by_step), 0.5) / of : 0;
}

/// Trained elements outside of the rank's own shards.
std::int64_t beside_shards(const Facts& facts) {
  const std::uint32_t described = shard_ranks(facts.store.tables());
  const std::uint32_t ranks = std::max(described > 0 ? described : facts.summary.copy_ranks, 1U);
  std::int64_t elems = 0;
  for (const ev::ParamInfo& param : facts.store.tables().params) {
    if (param.frozen) continue;
    const std::int64_t shard =
        param.shard_elems > 0 ? std::min(param.shard_elems, param.elems) : param.elems / ranks;
    elems += param.elems - shard;
  }
  return elems;
}

/// FSDP2, FSDP1 and DDP reduce in every backward unless the script disables it.
void accumulated_in_torch(const Facts& facts, Found& found) {
  const Framework kind = facts.summary.kind;
  const bool fsdp1 = kind == Framework::fsdp1, fsdp2 = kind == Framework::fsdp2, ddp = kind == Framework::ddp;
  if (!communicates(facts) || facts.micro_steps < 2 || (!fsdp1 && !fsdp2 && !ddp)) return;
  constexpr double kNearly = 0.9;  // of each micro-step's: parameters without a gradient are not reduced
  const double reductions = reductions_per_step(facts);
  if (reductions < kNearly * static_cast<double>(facts.micro_steps)) return;
  const double exposed = facts.mean(&RankFacts::reduce_moving);
  const std::string more = bytes_text(beside_shards(facts) * facts.store.tables().grad_bytes);
  Finding finding;
  finding.id = "accumulated_reductions";
  finding.title = "Accumulation saves no communication: gradients are reduced in every micro-step";
  finding.evidence = fmt::format(
      "{} micro-steps of a step reduced all gradients {:.1f} times; reductions are exposed for {}.",
      facts.micro_steps, reductions, of_step(facts, exposed));
  if (fsdp2) {
    finding.next_step = fmt::format(
        "Call model.set_requires_gradient_sync(False) before each micro-step but the last of a step, and "
        "True "
        "before that: it reduces once a step and keeps whole gradients until then, up to {} more on each "
        "rank.",
        more);
  } else if (fsdp1) {
    finding.next_step = fmt::format(
        "Run each micro-step but the last of a step within model.no_sync(): it reduces once a step and keeps "
        "whole gradients until then, up to {} more on each rank.",
        more);
  } else {
    finding.next_step =
        "Run each micro-step but the last of a step within model.no_sync(): it reduces once a step. DDP "
        "keeps "
        "whole gradients in any case: it takes no more memory.";
  }
  for (Advice& option : reduce_last_options(facts, finding.next_step)) advise(finding, std::move(option));
  finding.cost_bytes = static_cast<std::int64_t>(static_cast<double>(trained_elems(facts)) *
                                                 element_bytes(facts, CommunicatedTensor::gradients)) *
                       (facts.micro_steps - 1) * (ddp ? 2 : 1);
  finding.bytes_of = BytesOf::communication;
  const double part = 1 - 1 / static_cast<double>(facts.micro_steps);
  // DDP and FSDP2 wait for reductions within a module's backward. Without GPU records that is the host's
  // computation, and what is exposed is not known: no more than the transfers of reductions. Gathers remain.
  const double link = facts.mean(&RankFacts::reduce_link);
  if ((ddp || fsdp2) && facts.share(exposed) < kNote && facts.summary.device == "cpu" &&
      facts.share(link * part) >= kWarning) {
    finding.severity = ev::Severity::info;
    finding.evidence = fmt::format(
        "{} micro-steps of a step reduced all gradients {:.1f} times; reductions move bytes for {}. How long "
        "the "
        "backward "
        "waits for them is not known: on a CPU {} waits inside of what counts as computation.",
        facts.micro_steps, reductions, of_step(facts, link), ddp ? "DDP" : "FSDP2");
    look_at_worst(facts, finding, [](const RankStep& step) { return step.exposed.reduce_link_ns; });
    found.add(std::move(finding));
    return;
  }
  found.add_by_cost(facts, exposed * part, std::move(finding));
}

}  // namespace

/// Stage 2 reduces gradients in each micro-step, stage 1 once per step; stage 3 also gathers in each.
void accumulated_reductions(const Facts& facts, Found& found) {
  if (!facts.zero_keys) return accumulated_in_torch(facts, found);
  if (!communicates(facts) || facts.summary.stage < 2 || facts.micro_steps < 2) return;
  if (found.has("overlap_off")) return;
  const bool gathers = facts.summary.stage == 3;
  const double exposed = facts.mean(gathers ? &RankFacts::moving : &RankFacts::reduce_moving);
  const double saved = exposed * (1 - 1 / static_cast<double>(facts.micro_steps));
  const auto trained = static_cast<double>(trained_elems(facts));
  const double bytes = trained * (element_bytes(facts, CommunicatedTensor::gradients) +
                                  (gathers ? 2 * element_bytes(facts, CommunicatedTensor::parameters) : 0));
  Finding finding;
  finding.id = "accumulated_reductions";
  finding.title = gathers
                      ? "Accumulation saves no communication: stage 3 gathers and reduces in every micro-step"
                      : "Accumulation saves no communication: stage 2 reduces gradients in every micro-step";
  finding.evidence =
      fmt::format("{} micro-steps of a step {} each; {} exposed for {}.", facts.micro_steps,
                  gathers ? "gather all parameters and reduce all gradients" : "reduce all gradients",
                  gathers ? "communication is" : "reductions are", of_step(facts, exposed));
  if (!gathers) {
    advise(finding, {{{"zero_optimization.stage", "1"}},
                     fmt::format("Set zero_optimization.stage to 1: it reduces once a step and keeps whole "
                                 "gradients, up to {} more on each rank.",
                                 bytes_text(trained_elems(facts) * facts.store.tables().grad_bytes))});
  }
  for (Advice& option : micro_batch_options(facts)) advise(finding, std::move(option));
  finding.otherwise = "A larger micro-batch with fewer micro-steps moves fewer bytes for a token.";
  if (finding.options.empty()) finding.next_step = finding.otherwise;
  finding.cost_bytes = static_cast<std::int64_t>(bytes) * (facts.micro_steps - 1);
  finding.bytes_of = BytesOf::communication;
  found.add_by_cost(facts, saved, std::move(finding));
}

}  // namespace shardscope::analysis::findings
