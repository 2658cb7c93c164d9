// Communication that training waits for: causes that a setting has, the link as the bound, and what is left.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "app/analysis/findings/findings.h"
#include "app/analysis/pace.h"
#include "app/analysis/quantity_text.h"

namespace shardscope::analysis::findings {
namespace {

using ev::Severity;

constexpr std::array kCauses{"overlap_off",    "large_bucket",   "small_bucket", "accumulated_reductions",
                             "large_prefetch", "short_prefetch", "link_bound"};

/// Nothing to say of a single rank, which does not communicate.
bool communicates(const Facts& facts) { return facts.summary.copy_ranks > 1 && !facts.ranks.empty(); }

bool deepspeed_on_cpu(const Facts& facts) {
  return facts.summary.kind == Framework::deepspeed && facts.summary.device == "cpu";
}

/// Buckets that a rank reduced in a backward, of the typical steps.
double buckets_per_backward(const Facts& facts) {
  double flushes = 0, steps = 0;
  for (const std::size_t index : facts.typical) {
    for (const RankStep& rank : facts.digest.steps()[index].ranks) {
      flushes += static_cast<double>(rank.bucket_flushes);
      ++steps;
    }
  }
  return steps > 0 ? flushes / steps / static_cast<double>(facts.micro_steps) : 0;
}

std::int64_t trained_elems(const Facts& facts) {
  std::int64_t elems = 0;
  for (const ev::ParamInfo& param : facts.store.tables().params) elems += param.frozen ? 0 : param.elems;
  return elems;
}

/// Computation that nothing is hidden behind yet.
double free_compute(const Facts& facts) {
  return std::max(
      0.0, facts.mean(&RankFacts::compute) - (facts.mean(&RankFacts::link) - facts.mean(&RankFacts::moving)));
}

/// Whether a parameter takes four bytes on its way.
bool travels_as_f32(const Facts& facts) {
  const auto& params = facts.store.tables().params;
  return !params.empty() && params.front().dtype == "f32";
}

}  // namespace

void overlap_off(const Facts& facts, Found& found) {
  if (!communicates(facts) || !facts.zero_keys || facts.overlap_comm || deepspeed_on_cpu(facts)) return;
  // What follows the optimizer has nothing to hide behind.
  const bool fetches = facts.summary.stage == 3;
  const double exposed = fetches ? facts.mean(&RankFacts::moving) : facts.mean(&RankFacts::reduce_moving);
  const double gain = std::min(exposed, free_compute(facts));
  Finding finding;
  finding.id = "overlap_off";
  finding.title = "Communication waits for computation: overlap_comm is off";
  finding.evidence = fmt::format(
      "{} are {} that nothing is hidden behind; {:.1f} ms of computation could hide them.",
      of_step(facts, exposed), fetches ? "gathers and reductions" : "reductions", free_compute(facts));
  finding.next_step = "Set zero_optimization.overlap_comm to true.";
  finding.changes = {{"zero_optimization.overlap_comm", "true"}};
  finding.gain_ms = gain;
  finding.gain_basis = "no more can be hidden than is exposed, nor behind more computation than is free";
  found.add_by_cost(facts, gain, std::move(finding));
}

void large_buckets(const Facts& facts, Found& found) {
  constexpr double kFew = 2, kBuckets = 8;
  if (!communicates(facts) || !facts.zero_keys || found.has("overlap_off") || !facts.overlap_comm ||
      deepspeed_on_cpu(facts))
    return;
  const double buckets = buckets_per_backward(facts);
  if (buckets <= 0 || buckets > kFew) return;
  const double exposed = facts.mean(&RankFacts::reduce_moving);
  const double backward = facts.path_ms(PathPart::backward);
  const double gain = std::min(exposed, backward);
  const std::int64_t wanted = round_elems(static_cast<double>(trained_elems(facts)) / kBuckets);
  if (wanted >= facts.zero.reduce_bucket_size) return;
  Finding finding;
  finding.id = "large_bucket";
  finding.title = "Reductions begin when the backward is nearly over: the bucket is large";
  finding.evidence = fmt::format(
      "{:.1f} buckets a backward ({} = {}, of {} trained elements); their reductions are exposed for {}.",
      buckets, "reduce_bucket_size", elements_text(facts.zero.reduce_bucket_size),
      elements_text(trained_elems(facts)), of_step(facts, exposed));
  finding.next_step = fmt::format(
      "Lower zero_optimization.reduce_bucket_size to about {}: an eighth of the model is reduced while the "
      "rest of the "
      "backward computes.",
      elements_text(wanted));
  finding.changes = {{"zero_optimization.reduce_bucket_size", std::to_string(wanted)}};
  finding.gain_ms = gain;
  finding.gain_basis = "no more is hidden than is exposed, nor behind more than the backward";
  found.add_by_cost(facts, gain, std::move(finding));
}

void small_buckets(const Facts& facts, Found& found) {
  constexpr double kMany = 16, kFactor = 8, kLatencyShare = 0.4;
  if (!communicates(facts) || !facts.zero_keys || found.has("overlap_off")) return;
  const double exposed = facts.mean(&RankFacts::reduce_moving), buckets = buckets_per_backward(facts);
  if (buckets < kMany || facts.share(exposed) < kNote) return;
  std::optional<LinkPace> link;
  try {
    const Pace pace = measure_pace(facts.store);
    link = pace.between ? pace.between : pace.inside;
  } catch (const std::invalid_argument&) {
    return;  // nothing to fit
  }
  if (!link || link->latency_us <= 0) return;
  // A ring pays its latency once for each other rank.
  const double latency_ms = buckets * static_cast<double>(facts.micro_steps) * link->latency_us * 1e-3 *
                            static_cast<double>(facts.summary.copy_ranks - 1);
  if (latency_ms < kLatencyShare * exposed) return;
  const double gain = std::min(exposed, latency_ms) * (1 - 1 / kFactor);
  const std::int64_t wanted = round_elems(static_cast<double>(trained_elems(facts)) / buckets * kFactor);
  if (wanted <= facts.zero.reduce_bucket_size) return;
  Finding finding;
  finding.id = "small_bucket";
  finding.title = "Many small reductions: their latency is what they cost";
  finding.evidence = fmt::format(
      "{:.0f} buckets a backward of {} elements each; at {:.0f} us a hop that is {:.1f} ms of a step, of {} "
      "exposed.",
      buckets, elements_text(round_elems(static_cast<double>(trained_elems(facts)) / buckets)),
      link->latency_us, latency_ms, of_step(facts, exposed));
  finding.next_step =
      fmt::format("Raise zero_optimization.reduce_bucket_size to about {}.", elements_text(wanted));
  finding.changes = {{"zero_optimization.reduce_bucket_size", std::to_string(wanted)}};
  finding.gain_ms = gain;
  finding.gain_basis = "the latency of the reductions that are saved";
  found.add_by_cost(facts, gain, std::move(finding));
}

/// Stage 2 reduces gradients in each micro-step, stage 1 once a step.
void accumulated_reductions(const Facts& facts, Found& found) {
  if (!communicates(facts) || !facts.zero_keys || facts.summary.stage != 2 || facts.micro_steps < 2) return;
  if (found.has("overlap_off")) return;
  const double exposed = facts.mean(&RankFacts::reduce_moving);
  const double saved = exposed * (1 - 1 / static_cast<double>(facts.micro_steps));
  const std::int64_t bytes = trained_elems(facts) * (travels_as_f32(facts) ? 4 : 2);
  Finding finding;
  finding.id = "accumulated_reductions";
  finding.title = "Accumulation saves no communication: stage 2 reduces gradients in every micro-step";
  finding.evidence =
      fmt::format("{} micro-steps of a step reduce all gradients each; reductions are exposed for {}.",
                  facts.micro_steps, of_step(facts, exposed));
  finding.next_step =
      fmt::format("Stage 1 reduces once a step; it keeps whole gradients, up to {} more on each rank.",
                  bytes_text(bytes));
  finding.changes = {{"zero_optimization.stage", "1"}};
  finding.cost_bytes = bytes * (facts.micro_steps - 1);
  finding.gain_ms = saved;
  finding.gain_basis = "the exposed reductions of all micro-steps but one";
  found.add_by_cost(facts, saved, std::move(finding));
}

/// [Note: the link as the bound]
/// Bytes move for longer than anything is computed: no order of gathers and buckets hides more than there is
/// computation. Only fewer bytes help.
void link_bound(const Facts& facts, Found& found) {
  if (!communicates(facts)) return;
  const double link = facts.mean(&RankFacts::link), compute = facts.mean(&RankFacts::compute);
  const double beyond = std::min(link - compute, facts.mean(&RankFacts::moving));
  if (beyond <= 0) return;
  Finding finding;
  finding.id = "link_bound";
  finding.title = "The link is the bound: bytes move for longer than the ranks compute";
  finding.evidence = fmt::format(
      "Of a step of {:.1f} ms the link is busy for {:.1f} ms and a rank computes for {:.1f} ms: {:.1f} ms of "
      "communication stay exposed, whatever the buckets are.",
      facts.step_ms, link, compute, beyond);
  finding.next_step = "Move fewer bytes for a token: a larger micro-batch, or a 16-bit data type.";
  if (facts.zero_keys && facts.summary.stage == 3 && !facts.zero.quantized_weights) {
    // Two of the stage's three volumes are gathers.
    const double saved = link * 2 / 3 * (travels_as_f32(facts) ? 0.75 : 0.5);
    finding.changes = {{"zero_optimization.zero_quantized_weights", "true"}};
    finding.gain_ms = std::min(facts.mean(&RankFacts::moving), saved);
    finding.gain_basis = "gathers as int8, no more than is exposed; quantizing takes no time";
    finding.next_step =
        "Set zero_optimization.zero_quantized_weights to true: gathers move int8. Weights are then rounded "
        "on their "
        "way: watch the loss. Or use a larger micro-batch; stage 2 moves a third less where its memory fits.";
  } else if (facts.zero_keys && facts.summary.stage < 3 && travels_as_f32(facts)) {
    finding.next_step =
        "Move fewer bytes for a token: a larger micro-batch, accumulation at stage 1 (one reduction a step), "
        "or bf16.";
  } else if (facts.summary.kind == Framework::fsdp2) {
    finding.next_step =
        "Move fewer bytes for a token: a larger micro-batch, set_requires_gradient_sync(False) while "
        "accumulating, a "
        "MixedPrecisionPolicy with bf16.";
  } else if (facts.summary.kind == Framework::ddp) {
    finding.next_step =
        "Move fewer bytes for a token: a larger micro-batch, no_sync() while accumulating, a bf16 "
        "communication hook.";
  }
  found.add_by_cost(facts, beyond, std::move(finding));
}

/// What no cause above has: named, with what the framework offers, and no setting that this stage lacks.
void exposed_communication(const Facts& facts, Found& found) {
  constexpr double kNotable = 0.05, kMuch = 0.15;
  if (!communicates(facts)) return;
  for (const char* cause : kCauses) {
    if (found.has(cause)) return;
  }
  const double exposed = facts.mean(&RankFacts::moving), waiting = facts.mean(&RankFacts::waiting);
  const double all = exposed + waiting;
  if (found.has("straggler") && facts.share(exposed) < kNotable) {
    if (facts.share(all) >= kNotable)
      found.follows("straggler",
                    fmt::format("{:.0f} % of a step is exposed communication", 100 * facts.share(all)));
    return;
  }
  if (facts.share(all) < kNotable || all < kLeastCostMs) return;
  const std::uint32_t rank = facts.ranks.front().rank;
  Finding finding;
  finding.id = "exposed_communication";
  finding.title = fmt::format("{:.0f} % of a step is exposed communication", 100 * facts.share(all));
  finding.evidence = fmt::format(
      "{:.1f} ms until the last rank has come, {:.1f} ms while bytes move; the link is busy for "
      "{:.1f} of {:.1f} ms.",
      waiting, exposed, facts.mean(&RankFacts::link), facts.step_ms);
  const bool zero = facts.zero_keys;
  if (zero) finding.evidence += facts.overlap_comm ? " overlap_comm is on." : " overlap_comm is off.";
  constexpr double kUnevenPct = 5;
  if (waiting > exposed && facts.summary.uneven_pct.value_or(0) >= kUnevenPct) {
    finding.evidence += fmt::format(
        " Micro-batches differ: if time went by their size (padding included), ranks would wait {:.0f} % of "
        "it for "
        "the largest of each micro-step.",
        *facts.summary.uneven_pct);
    finding.next_step =
        "Give ranks micro-batches of like lengths: sort or bucket samples by length, or pack them.";
  } else if (waiting > exposed) {
    finding.next_step =
        "Ranks wait for each other in turns: look at who comes last in the Timeline. No setting of the "
        "communication "
        "changes this.";
  } else if (facts.summary.kind == Framework::fsdp2) {
    finding.next_step =
        "Look at the waits of the groups in the Timeline: set_modules_to_forward_prefetch() and "
        "set_modules_to_backward_prefetch() start gathers earlier; smaller groups of fully_shard() overlap "
        "more.";
  } else if (facts.summary.kind == Framework::ddp) {
    finding.next_step =
        "Buckets are reduced during the backward: a smaller bucket_cap_mb starts the first one earlier; with "
        "gradient "
        "accumulation no_sync() reduces once a step.";
  } else if (deepspeed_on_cpu(facts)) {
    finding.next_step =
        "Measure on GPUs: on the CPU DeepSpeed has no streams, and overlap_comm changes nothing.";
  } else if (facts.summary.stage == 3) {
    finding.next_step =
        "The first gathers of a step, the last reduction and gathers that come one after the other have "
        "nothing to hide "
        "behind: a larger micro-batch computes longer for the same bytes.";
  } else {
    finding.next_step = fmt::format(
        "{:.1f} ms are after the backward (the last bucket, and the gather of what was updated): a larger "
        "micro-batch "
        "computes longer for the same bytes.",
        exposed);
  }
  finding.rank = rank;
  finding.cost_ms = all;
  finding.severity = facts.share(all) >= kMuch && all >= kLeastWarningMs ? Severity::warning : Severity::info;
  found.add(std::move(finding));
}

/// Bytes that the stage's expression does not have, and that a change would save.
void volume_above(const Facts& facts, Found& found) {
  constexpr double kMuch = 0.05;
  const Summary& summary = facts.summary;
  if (!communicates(facts) || summary.expected_elements_per_step <= 0 || found.has("trace_invalidated"))
    return;
  for (const VolumePart& part : summary.volume_parts) {
    const bool avoidable = part.cause == VolumeCause::unused || part.cause == VolumeCause::shared ||
                           part.cause == VolumeCause::repeated || part.cause == VolumeCause::all_reduced;
    if (!avoidable || part.elements_per_step < kMuch * summary.expected_elements_per_step) continue;
    Finding finding{Severity::info,
                    fmt::format("{:.0f} % more is communicated than {}: {}",
                                100 * part.elements_per_step / summary.expected_elements_per_step,
                                summary.comm_expression, name_of(part.cause)),
                    fmt::format("{} elements of a step are {}: {}.",
                                elements_text(static_cast<std::int64_t>(part.elements_per_step)),
                                name_of(part.cause), explain(part.cause)),
                    "Look at the Communication panel, which has the parts of the volume."};
    finding.id = "volume_above";
    finding.cost_bytes = static_cast<std::int64_t>(part.elements_per_step) * (travels_as_f32(facts) ? 4 : 2);
    if (part.cause == VolumeCause::all_reduced && facts.zero_keys && facts.summary.stage < 3 &&
        !facts.zero.reduce_scatter) {
      finding.next_step = "Set zero_optimization.reduce_scatter to true.";
      finding.changes = {{"zero_optimization.reduce_scatter", "true"}};
    }
    found.add(std::move(finding));
  }
}

}  // namespace shardscope::analysis::findings
