// Exposed communication: causes with a setting, the link as the bound, and the rest.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "app/analysis/findings/findings.h"
#include "app/analysis/missing_reason.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/spans.h"
#include "app/analysis/stream_waits.h"

namespace shardscope::analysis::findings {
namespace {

using ev::Severity;

constexpr std::array kCauses{
    "overlap_off",        "large_bucket",   "small_bucket",   "accumulated_reductions",
    "serialized_buckets", "large_prefetch", "short_prefetch", "link_bound",
    "tiny_gathers",       "nvme_params",    "late_prefetch"};

bool deepspeed_on_cpu(const Facts& facts) {
  return facts.summary.kind == Framework::deepspeed && facts.summary.device == "cpu";
}

/// Buckets that a rank reduces per backward in the typical steps.
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

/// Computation that does not hide any communication yet.
double free_compute(const Facts& facts) {
  return std::max(
      0.0, facts.mean(&RankFacts::compute) - (facts.mean(&RankFacts::link) - facts.mean(&RankFacts::moving)));
}

/// Durations of the waits for reductions, in a step of a rank, after which the same backward continued.
std::vector<std::int64_t> waits_inside_backward(const store::Store& store, const RankStep& rank) {
  std::vector<store::Span> modules, waits;
  for_each_span(store, {rank.rank, ev::StreamId::compute}, rank.begin_ns, rank.end_ns,
                [&](const store::Span& span) {
                  if (span.kind == ev::EventKind::module_begin) modules.push_back(span);
                  if (span.kind == ev::EventKind::reduce_wait_begin && span.end_ns != store::kOpen)
                    waits.push_back(span);
                });
  std::ranges::stable_sort(modules, {}, &store::Span::begin_ns);
  std::vector<std::int64_t> out;
  for (const store::Span& wait : waits) {
    const auto next = std::ranges::lower_bound(modules, wait.end_ns, {}, &store::Span::begin_ns);
    if (next != modules.end() && ev::as<ev::EventKind::module_begin>(*next).pass != ev::Pass::forward)
      out.push_back(wait.end_ns - wait.begin_ns);
  }
  return out;
}

/// The same by the records of its GPU.
std::vector<std::int64_t> gpu_waits_inside_backward(const store::Store& store, const RankStep& rank) {
  std::vector<std::int64_t> out;
  for (const Interval& wait : reduction_waits_inside_backward(store, rank.rank, {rank.begin_ns, rank.end_ns}))
    out.push_back(wait.end - wait.begin);
  return out;
}

/// Adds bucket sizes that are these fractions of the trained elements and satisfy `wanted`.
template <typename Wanted>
void add_bucket_sizes(const Facts& facts, Finding& finding, std::initializer_list<double> parts,
                      const Wanted& wanted) {
  for (const double part : parts) {
    const std::int64_t size = round_elems(static_cast<double>(trained_elems(facts)) / part);
    if (wanted(size))
      advise(finding, setting({{"zero_optimization.reduce_bucket_size", std::to_string(size)}}));
  }
}

}  // namespace

std::int64_t trained_elems(const Facts& facts) {
  std::int64_t elems = 0;
  for (const ev::ParamInfo& param : facts.store.tables().params) elems += param.frozen ? 0 : param.elems;
  return elems;
}

bool communicates(const Facts& facts) { return facts.summary.copy_ranks > 1 && !facts.ranks.empty(); }

double element_bytes(const Facts& facts, CommunicatedTensor what) {
  using Op = ev::CollectiveOp;
  std::int64_t bytes = 0, elems = 0;
  for (const std::size_t step : facts.typical) {
    for (const auto& [op, totals] : facts.digest.steps()[step].ops) {
      const bool reduces =
          op == Op::all_reduce || op == Op::reduce_scatter || op == Op::reduce || op == Op::all_to_all;
      if (reduces != (what == CommunicatedTensor::gradients)) continue;
      bytes += totals.bytes;
      elems += totals.elems;
    }
  }
  if (elems > 0) return static_cast<double>(bytes) / static_cast<double>(elems);
  const ev::RunTables& tables = facts.store.tables();
  return static_cast<double>(what == CommunicatedTensor::gradients ? tables.grad_bytes : tables.param_bytes);
}

bool travels_as_f32(const Facts& facts) {
  const CommunicatedTensor most =
      facts.summary.stage == 3 ? CommunicatedTensor::parameters : CommunicatedTensor::gradients;
  return facts.store.tables().param_bytes == 4 && element_bytes(facts, most) > 3;
}

void overlap_off(const Facts& facts, Found& found) {
  if (!communicates(facts) || !facts.zero_keys || facts.overlap_comm || deepspeed_on_cpu(facts)) return;
  // Communication after the optimizer has no computation to hide behind.
  const bool fetches = facts.summary.stage == 3;
  const double exposed = fetches ? facts.mean(&RankFacts::moving) : facts.mean(&RankFacts::reduce_moving);
  const double gain = std::min(exposed, free_compute(facts));
  Finding finding;
  finding.id = "overlap_off";
  finding.title = "Communication waits for computation: overlap_comm is off";
  finding.evidence = fmt::format(
      "{} are {} that no computation hides; {:.1f} ms of computation could hide them.",
      of_step(facts, exposed), fetches ? "gathers and reductions" : "reductions", free_compute(facts));
  advise(finding, setting({{"zero_optimization.overlap_comm", "true"}}));
  found.add_by_cost(facts, gain, std::move(finding));
}

void large_buckets(const Facts& facts, Found& found) {
  constexpr double kFew = 2;
  if (!communicates(facts) || !facts.zero_keys || found.has("overlap_off") || !facts.overlap_comm ||
      deepspeed_on_cpu(facts))
    return;
  const double buckets = buckets_per_backward(facts);
  if (buckets <= 0 || buckets > kFew) return;
  const double exposed = facts.mean(&RankFacts::reduce_moving);
  const double backward = facts.path_ms(PathPart::backward);
  const double gain = std::min(exposed, backward);
  Finding finding;
  finding.id = "large_bucket";
  finding.title = "Reductions begin when the backward is nearly over: the bucket is large";
  finding.evidence = fmt::format(
      "{:.1f} buckets a backward ({} = {}, of {} trained elements); their reductions are exposed for {}.",
      buckets, "reduce_bucket_size", elements_text(facts.zero.reduce_bucket_size),
      elements_text(trained_elems(facts)), of_step(facts, exposed));
  add_bucket_sizes(facts, finding, {8, 4, 16, 32},
                   [&](std::int64_t size) { return size < facts.zero.reduce_bucket_size; });
  if (finding.options.empty()) return;
  found.add_by_cost(facts, gain, std::move(finding));
}

void small_buckets(const Facts& facts, Found& found) {
  constexpr double kMany = 16, kLatencyShare = 0.4;
  if (!communicates(facts) || !facts.zero_keys || found.has("overlap_off")) return;
  const double exposed = facts.mean(&RankFacts::reduce_moving), buckets = buckets_per_backward(facts);
  if (buckets < kMany || facts.share(exposed) < kNote) return;
  const std::optional<LinkPace> link = link_of(facts);
  if (!link || link->latency_us <= 0) return;
  // The latency is per hop; a collective has as many hops as its tree has levels (pace.h).
  const double latency_ms = buckets * static_cast<double>(facts.micro_steps) * link->latency_us * 1e-3 *
                            hops_of(facts.summary.copy_ranks);
  if (latency_ms < kLatencyShare * exposed) return;
  Finding finding;
  finding.id = "small_bucket";
  finding.title = "Many small reductions: their cost is latency";
  finding.evidence = fmt::format(
      "{:.0f} buckets a backward of {} elements each; at {:.0f} us a hop that is {:.1f} ms of a step, of {} "
      "exposed.",
      buckets, elements_text(round_elems(static_cast<double>(trained_elems(facts)) / buckets)),
      link->latency_us, latency_ms, of_step(facts, exposed));
  add_bucket_sizes(facts, finding, {buckets / 8, 32, 8, 2}, [&](std::int64_t size) {
    return size > facts.zero.reduce_bucket_size &&
           std::ranges::none_of(finding.options, [&](const Advice& one) {
             return one.changes.front().value == std::to_string(size);
           });
  });
  if (finding.options.empty()) return;
  found.add_by_cost(facts, std::min(exposed, latency_ms), std::move(finding));
}

/// Whether contiguous_gradients has any effect: this runtime reduces gradients in place, unless it emulates
/// DeepSpeed's buffers.
bool has_contiguous_gradients(const Facts& facts) {
  if (!facts.zero.contiguous_gradients || plan::uses_legacy_layout(facts.zero)) return false;
  return facts.summary.kind == Framework::deepspeed || plan::holds_gradient_buffers(facts.zero);
}

/// [Note: buckets that wait for their buffers]
/// The backward waits for a reduction and then continues: no buffer was free for the next bucket. A wait
/// after its last module is for the end of the reductions, which every micro-step has: a forward or nothing
/// follows.
void serialized_buckets(const Facts& facts, Found& found) {
  constexpr std::size_t kSteps = 3;
  if (!communicates(facts) || !facts.zero_keys || !facts.overlap_comm || found.has("overlap_off") ||
      deepspeed_on_cpu(facts))
    return;
  // On a GPU a stream of an attached program waits by an event, for which there is no span.
  const bool by_gpu = !records(facts.summary, ev::Capability::reduce_waits);
  std::int64_t waited = 0;
  double rank_steps = 0, waits = 0;
  for (std::size_t i = facts.typical.size(); i-- > 0 && facts.typical.size() - i <= kSteps;) {
    for (const RankStep& rank : facts.digest.steps()[facts.typical[i]].ranks) {
      ++rank_steps;
      for (const std::int64_t wait_ns :
           by_gpu ? gpu_waits_inside_backward(facts.store, rank) : waits_inside_backward(facts.store, rank)) {
        waited += wait_ns;
        ++waits;
      }
    }
  }
  if (rank_steps == 0) return;
  const double wait_ms = static_cast<double>(waited) * 1e-6 / rank_steps;
  // A rank that waits for another to enter waits in its bucket as well: neither link nor buffers cause that.
  // On a GPU such a wait is within the reduction's kernel, and which part of the exposed time it is is not
  // known.
  const bool for_others = by_gpu ? found.has("straggler") || found.has("data_starvation")
                                 : facts.mean(&RankFacts::waiting) > facts.mean(&RankFacts::moving);
  if (for_others) return;
  Finding finding;
  finding.id = "serialized_buckets";
  finding.title = "The backward waits for reductions before it can go on";
  finding.evidence = fmt::format(
      "overlap_comm is on, yet {:.0f} times in a step the {} came after a wait for a bucket's "
      "buffer: {}.",
      waits / rank_steps, by_gpu ? "GPU's next kernel of the backward" : "next module",
      of_step(facts, wait_ms));
  if (has_contiguous_gradients(facts))
    advise(finding, setting({{"zero_optimization.contiguous_gradients", "false"}}));
  add_bucket_sizes(facts, finding, {8, 32, 2},
                   [&](std::int64_t size) { return size != facts.zero.reduce_bucket_size; });
  finding.otherwise =
      "The link does not keep up with the backward: a larger micro-batch computes longer for the same bytes.";
  found.add_by_cost(facts, wait_ms, std::move(finding));
}

namespace {

/// What findings above explain of the exposed communication: the sum of their costs, and the one that
/// explains the most.
struct Explained {
  double ms = 0;
  std::string ids;  ///< of all of them
  const Finding* most = nullptr;
};
Explained explained_by(const Found& found) {
  Explained out;
  double most = -1;
  for (const char* cause : kCauses) {
    const Finding* one = found.find(cause);
    if (one == nullptr) continue;
    const double ms = one->cost_ms.value_or(0);
    out.ms += ms;
    out.ids += (out.ids.empty() ? "" : ", ") + one->id;
    if (ms > most) out.most = one;
    most = std::max(most, ms);
  }
  return out;
}

/// Ranks are late in turns: adds why they were to the evidence; returns what to do.
std::string in_turns(const Facts& facts, Finding& finding) {
  const std::optional<LateCause> why = why_late(facts.summary);
  if (why) finding.evidence += " By steps: " + text_of(facts.summary.late_causes, *why) + ".";
  if (why && why->reason == LateReason::data)
    return "Ranks wait for their data in turns: load further ahead, so that a slow batch is there in "
           "time.";
  if (why && why->reason == LateReason::processor)
    return "Look for what else runs on the host (top, ps -eLo psr,pcpu,comm), and give ranks cores of their "
           "own. No setting of the communication changes this.";
  return "Ranks wait for each other in turns: look at which rank enters last in the Timeline. No setting of "
         "the "
         "communication changes this.";
}

}  // namespace

/// The exposed rest without a cause above: only with options that framework and stage have.
void exposed_communication(const Facts& facts, Found& found) {
  constexpr double kNotable = 0.05, kMuch = 0.15;
  if (!communicates(facts)) return;
  // What would remain if a slow link were as fast as the others.
  const double seen_moving = facts.mean(&RankFacts::moving), seen_waiting = facts.mean(&RankFacts::waiting);
  const double exposed = std::max(0.0, seen_moving - found.slow_link_part.moving),
               not_of_link = std::max(0.0, seen_waiting - found.slow_link_part.waiting);
  const double by_slow_link = seen_moving + seen_waiting - exposed - not_of_link;
  // The others wait for a straggler: that is its cost, not counted twice.
  const Finding* const straggler = found.find("straggler");
  const double by_straggler =
      straggler == nullptr ? 0 : std::min(not_of_link, straggler->cost_ms.value_or(0));
  const double waiting = not_of_link - by_straggler, all = exposed + waiting;
  if (by_slow_link > 0 && (facts.share(all) < kNotable || all < kLeastCostMs)) {
    if (facts.share(by_slow_link) >= kNote)
      found.follows("slow_link", fmt::format("{:.0f} % of a step is exposed communication",
                                             100 * facts.share(seen_moving + seen_waiting)));
    return;
  }
  // With a cause it is that finding's consequence, unless the cause explains less than half of it.
  const Explained explained = explained_by(found);
  const double rest = all - explained.ms;
  if (explained.most != nullptr && (facts.share(rest) < kMuch || rest < explained.ms)) {
    if (facts.share(all) >= kNotable)
      found.follows(explained.most->id,
                    fmt::format("{:.0f} % of a step is exposed communication", 100 * facts.share(all)));
    return;
  }
  if (straggler != nullptr && facts.share(exposed) < kNotable) {
    if (facts.share(exposed + not_of_link) >= kNotable)
      found.follows("straggler", fmt::format("{:.0f} % of a step is exposed communication",
                                             100 * facts.share(exposed + not_of_link)));
    return;
  }
  if (facts.share(all) < kNotable || all < kLeastCostMs) return;
  const std::uint32_t rank = facts.ranks.front().rank;
  Finding finding;
  finding.id = "exposed_communication";
  finding.title = fmt::format("{:.0f} % of a step is exposed communication{}", 100 * facts.share(rest),
                              explained.most != nullptr ? " besides other findings"
                              : by_slow_link > 0        ? " besides the slow link"
                              : by_straggler > 0        ? " besides waiting for the straggler"
                                                        : "");
  finding.evidence = fmt::format(
      "{:.1f} ms until the last rank has entered, {:.1f} ms while bytes move; the link is busy for "
      "{:.1f} of {:.1f} ms.",
      seen_waiting, seen_moving, facts.mean(&RankFacts::link), facts.step_ms);
  if (by_slow_link > 0)
    finding.evidence += fmt::format(
        " {:.1f} ms of it are of the slow link (finding slow_link) and not counted here: {:.1f} ms of "
        "waiting "
        "and {:.1f} ms of transfers would remain.",
        by_slow_link, waiting, exposed);
  if (by_straggler > 0)
    finding.evidence += fmt::format(
        " {:.1f} ms of the waiting are for the straggler (finding straggler) and not counted here.",
        by_straggler);
  finding.evidence += worst_of(exposed_modules(facts, Collectives::all), kExposedCollectives);
  // Ranks that lose their processors in turns wait for each other in turns: that is of the host.
  const double processor = facts.mean(&RankFacts::processor);
  const bool contended = straggler == nullptr && waiting > exposed && processor > waiting;
  const bool zero = facts.zero_keys;
  if (zero) finding.evidence += facts.overlap_comm ? " overlap_comm is on." : " overlap_comm is off.";
  if (explained.most != nullptr) {
    finding.evidence +=
        fmt::format(" {:.1f} ms more at the most are of other findings ({}).", explained.ms, explained.ids);
  }
  constexpr double kUnevenPct = 5;
  if (waiting > exposed && facts.summary.uneven_pct.value_or(0) >= kUnevenPct) {
    finding.evidence += fmt::format(
        " Micro-batches differ: if time went by their size (padding included), ranks would wait {:.0f} % of "
        "it for "
        "the largest of each micro-step.",
        *facts.summary.uneven_pct);
    finding.next_step =
        "Give ranks micro-batches of like lengths: sort or bucket samples by length, or pack them.";
  } else if (contended) {
    finding.evidence += fmt::format(
        " Threads of a rank waited for a processor for {:.1f} ms of a step (summed over them): more threads "
        "than cores want to run on the host, so that ranks come late in turns.",
        processor);
    finding.next_step =
        "Look for what else runs on the host (top, ps -eLo psr,pcpu,comm), and measure again without it. No "
        "setting of the communication changes this.";
  } else if (waiting > exposed) {
    finding.next_step = in_turns(facts, finding);
  } else if (facts.summary.kind == Framework::fsdp2 &&
             facts.mean(&RankFacts::reduce_moving) > facts.mean(&RankFacts::gather_moving)) {
    finding.next_step = fmt::format(
        "{:.1f} ms of it are reductions and {:.1f} ms gathers, so that earlier gathers gain little: a larger "
        "micro-batch computes longer for the same bytes.",
        facts.mean(&RankFacts::reduce_moving), facts.mean(&RankFacts::gather_moving));
  } else if (facts.summary.kind == Framework::fsdp2) {
    finding.next_step = finding.otherwise =
        "Look at the waits of the groups in the Timeline: smaller groups of fully_shard() overlap more, and "
        "a larger micro-batch computes longer for the same bytes.";
    for (Advice& option : earlier_group_options(facts)) advise(finding, std::move(option));
    for (Advice& option : reshard_off_options(facts)) advise(finding, std::move(option));
  } else if (facts.summary.kind == Framework::ddp) {
    finding.next_step = finding.otherwise =
        "Buckets are reduced during the backward, the last one after it: a larger micro-batch computes "
        "longer for the same bytes.";
    for (Advice& option : bucket_cap_options(facts, BucketSizes::all)) advise(finding, std::move(option));
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
  finding.cost_ms = rest;
  const double own = (contended ? exposed : all) - explained.ms;
  // On a CPU each call of FSDP2 returns when its collective has ended: that is of the machine, no fault of
  // the run.
  const bool by_calls = facts.summary.kind == Framework::fsdp2 && facts.summary.device == "cpu";
  if (by_calls)
    finding.evidence +=
        " On a CPU each call holds the host until its collective has ended, so that nothing hides it: "
        "measure "
        "on GPUs.";
  const bool much = facts.share(own) >= kMuch && own >= kLeastWarningMs;
  finding.severity = much && !by_calls ? Severity::warning : Severity::info;
  found.add(std::move(finding));
}

/// Bytes beyond the stage's formula that a change would save.
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
    look_at_worst_step(facts, finding, [&](const StepDigest& step) {
      return step.volume ? (*step.volume)[static_cast<std::size_t>(part.cause)] : 0;
    });
    finding.cost_bytes = static_cast<std::int64_t>(
        part.elements_per_step * element_bytes(facts, part.cause == VolumeCause::all_reduced
                                                          ? CommunicatedTensor::gradients
                                                          : CommunicatedTensor::parameters));
    finding.bytes_of = BytesOf::communication;
    if (part.cause == VolumeCause::all_reduced && facts.zero_keys && facts.summary.stage < 3 &&
        !facts.zero.reduce_scatter) {
      advise(finding, setting({{"zero_optimization.reduce_scatter", "true"}}));
    }
    found.add(std::move(finding));
  }
}

}  // namespace shardscope::analysis::findings
