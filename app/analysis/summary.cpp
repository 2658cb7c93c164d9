#include "app/analysis/summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "app/analysis/communication.h"
#include "app/analysis/decision_text.h"
#include "app/analysis/digest.h"
#include "app/analysis/efficiency.h"
#include "app/analysis/free_parts.h"
#include "app/analysis/group_transfers.h"
#include "app/analysis/memory.h"
#include "app/analysis/missing_reason.h"
#include "app/analysis/own_times.h"
#include "app/analysis/piece_label.h"
#include "app/analysis/statistics.h"
#include "app/analysis/why_late.h"
#include "app/analysis/zero_settings.h"
#include "runtime/plan/memory_model.h"

namespace shardscope::analysis {
namespace ev = shardscope::instrumentation;
namespace {

void describe_run(const store::Store& store, Summary& summary) {
  summary.events = store.event_count();
  summary.losses = store::losses_of(store);
  summary.kept = kept_of(store);
  summary.not_finite = not_finite_gradients(store);
  summary.unmatched_ends = store.unmatched_ends();
  summary.recorded_detail = store.recorded_detail();
  if (!store.has_tables()) return;
  const ev::RunTables& tables = store.tables();
  summary.world = tables.world;
  summary.copy_ranks = copy_size(tables);
  summary.stage = tables.stage;
  summary.params = tables.elems;
  summary.model = tables.model;
  summary.config_json = tables.config_json;
  summary.param_groups = param_groups(tables);
  summary.device = tables.device;
  summary.framework = tables.framework;
  summary.kind = framework_of(tables);
  summary.records = tables.records;
  summary.not_recorded = tables.not_recorded;
  summary.link_gbps = tables.link_gbps;
  summary.link_latency_us = tables.link_latency_us;
  summary.simulated = tables.simulated;
}

/// Step times, throughput and the training curves.
void measure_steps(const store::Store& store, Summary& summary) {
  std::vector<double> measured;
  double measured_tokens = 0, measured_s = 0;
  bool tokens_known = true;
  for (const store::StepRow& row : store.steps()) {
    if (row.end_ns == store::kOpen) continue;
    const bool warm_up = summary.steps == 0;
    ++summary.steps;
    const double ms = static_cast<double>(row.end_ns - row.begin_ns - row.paused_ns) * 1e-6;
    summary.step_ms.push_back(ms);
    summary.loss.push_back(row.loss);
    summary.eval_loss.push_back(row.eval_loss);
    summary.grad_norm.push_back(row.grad_norm);
    summary.loss_scale.push_back(row.loss_scale);
    summary.clip_factor.push_back(row.clip_factor);
    if (warm_up) continue;
    measured.push_back(ms);
    measured_s += ms * 1e-3;
    measured_tokens += static_cast<double>(row.tokens);
    tokens_known = tokens_known && row.tokens > 0;
  }
  if (measured.empty() && summary.steps == 1) {
    measured = summary.step_ms;
    measured_s = summary.step_ms.front() * 1e-3;
    for (const store::StepRow& row : store.steps()) {
      if (row.end_ns != store::kOpen) measured_tokens = static_cast<double>(row.tokens);
    }
    tokens_known = measured_tokens > 0;
  }
  summary.steps_measured = static_cast<std::uint32_t>(measured.size());
  if (measured.empty()) return;
  summary.step_ms_median = quantile(measured, 0.5);
  summary.step_ms_p95 = quantile(measured, 0.95);
  if (tokens_known && measured_s > 0) summary.tokens_per_s = measured_tokens / measured_s;
}

/// Whether copies were recorded in all of the step's recorded time; time at a level without computation is in
/// none of the figures.
bool copies_recorded(const store::Store& store, const RankStep& step) {
  if (!step.recorded.lowest || *step.recorded.lowest >= ev::Detail::params) return true;
  const auto lacking = [&](ev::Detail needed) {
    return unrecorded(store, step.rank, step.begin_ns, step.end_ns, needed);
  };
  return lacking(ev::Detail::params).subtract(lacking(ev::Detail::modules)).length() == 0;
}

/// Sums by rank. One pass over the steps, since there may be thousands of ranks.
class RankSums {
 public:
  RankSums(const store::Store& store, const Digest& digest) : store_(store), digest_(digest) {
    for (const store::RankRow& row : store.ranks()) begin(row);
    for (std::size_t i = 0; i < digest.steps().size(); ++i) {
      const StepDigest& step = digest.steps()[i];
      const bool measured = i >= digest.first_measured();
      for (const RankStep& of_rank : step.ranks) {
        const auto found = index_.find(of_rank.rank);
        if (found == index_.end()) continue;
        count(of_rank, measured, ranks_[found->second]);
        if (measured) measure(of_rank, ranks_[found->second]);
      }
      if (!measured) continue;
      for (const Lateness& late : step.late) {
        const auto found = index_.find(late.rank);
        if (found == index_.end()) continue;
        ranks_[found->second].result.others_waited_ns += late.others_waited_ns;
        ranks_[found->second].result.entered_last += late.collectives;
      }
    }
  }

  [[nodiscard]] std::vector<RankSummary> take() {
    std::vector<RankSummary> out;
    for (Sums& sums : ranks_) out.push_back(finish(sums));
    return out;
  }

 private:
  struct Sums {
    RankSummary result;
    TimePartition unknown;
    std::optional<std::int64_t> unknown_data_wait_ns;
    RetryCount retries;
    GroupTimes groups;
    bool copies_known = true;
  };

  void begin(const store::RankRow& row) {
    index_.emplace(row.rank, ranks_.size());
    RankSummary& result = ranks_.emplace_back().result;
    result.rank = row.rank;
    result.clock_offset_ns = row.clock_offset_ns;
    result.clock_residual_ns = row.largest_clock_residual_ns;
    result.clock_drift = row.clock_drift;
    result.checkpoints = digest_.checkpoints(row.rank);
    result.evaluations = digest_.evaluations(row.rank);
  }

  /// Sums counts, which include the first step.
  static void count(const RankStep& step, bool measured, Sums& sums) {
    RankSummary& result = sums.result;
    sums.retries.add(step, measured);
    if (step.micro_batches.count > 0) {
      if (!result.micro_batches) result.micro_batches.emplace();
      result.micro_batches->add(step.micro_batches);
    }
    if (!step.fetch_counters) return;
    if (!result.fetch_counters) result.fetch_counters.emplace();
    result.fetch_counters->add(*step.fetch_counters);
  }

  void measure(const RankStep& step, Sums& sums) const {
    RankSummary& result = sums.result;
    if (step.recorded.whole(ev::Detail::modules)) ++result.whole_steps;
    if (step.time.known()) {
      ++result.time_steps;
      sums.copies_known = sums.copies_known && copies_recorded(store_, step);
      result.time.add(step.time);
      result.waiting_ns += step.exposed.waiting_ns;
      result.moving_ns += step.exposed.moving_ns;
      sums.groups.add(step);
      result.fetch_wait_ns = result.fetch_wait_ns.value_or(0) + step.fetch_wait_ns;
    } else {
      sums.unknown.add(step.time);
    }
    if (auto& waited = step.time.known() ? result.data_wait_ns : sums.unknown_data_wait_ns; step.data_wait_ns)
      waited = waited.value_or(0) + *step.data_wait_ns;
    if (step.processor_waits) {
      if (!result.processor_waits) result.processor_waits.emplace();
      result.processor_waits->add(*step.processor_waits);
    }
    result.gpu_state.add(step.gpu_state);
    if (!step.gpu) return;
    if (!result.gpu) result.gpu.emplace();
    result.gpu->add(*step.gpu);
  }

  [[nodiscard]] RankSummary finish(Sums& sums) const {
    RankSummary& result = sums.result;
    if (result.time_steps == 0) {
      result.time = sums.unknown;
      result.data_wait_ns = sums.unknown_data_wait_ns;
    }
    result.allocator_retries = sums.retries.count();
    result.groups = sums.groups.all(digest_);
    for (std::uint8_t pool = 0; pool < ev::kMemoryPoolCount; ++pool) {
      const auto which = static_cast<ev::MemoryPool>(pool);
      if (const auto peak = store_.memory_peak(result.rank, which)) result.memory_peak[which] = *peak;
    }
    result.outside = outside_peak(store_, result.rank);
    // Transfers are recorded at the same level of detail as memory events.
    result.copies_known =
        sums.copies_known && (!result.memory_peak.empty() || result.time.exposed_copy_ns > 0);
    // On a CPU rank the device pool is host memory in an arena of its own.
    result.model_state_peak =
        measured_model_states(store_, result.rank, ev::MemoryPool::device, &result.model_states_in_part);
    return std::move(result);
  }

  const store::Store& store_;
  const Digest& digest_;
  std::vector<Sums> ranks_;  ///< in the order of the store's rows
  std::unordered_map<std::uint32_t, std::size_t> index_;
};

/// Micro-batches over all ranks, and the imbalance between ranks.
void summarize_micro_batches(const Digest& digest, Summary& summary) {
  for (const RankSummary& rank : summary.ranks) {
    if (!rank.micro_batches) continue;
    if (!summary.micro_batches) summary.micro_batches.emplace();
    summary.micro_batches->add(*rank.micro_batches);
  }
  Unevenness uneven;
  for (const StepDigest& step : digest.steps()) {
    uneven.mean += step.uneven.mean;
    uneven.most += step.uneven.most;
  }
  summary.uneven_pct = uneven.pct();
}

/// During a pause the GPUs are idle, and tokens/s are without pauses: no energy is given then.
std::optional<EnergyUse> energy_use(const store::Store& store, const Summary& summary) {
  if (summary.ranks.empty()) return std::nullopt;
  const auto paused = [](const store::StepRow& step) { return step.paused_ns > 0; };
  if (std::ranges::any_of(store.steps(), paused)) return std::nullopt;
  EnergyUse out{.watts = 0, .over_ns = INT64_MAX, .tokens_per_joule = {}};
  for (const RankSummary& rank : summary.ranks) {
    const std::optional<double> watts = rank.gpu_state.watts();
    if (!watts) return std::nullopt;
    out.watts += *watts;
    out.over_ns = std::min(out.over_ns, rank.gpu_state.over_ns());
  }
  if (summary.tokens_per_s && out.watts > 0) out.tokens_per_joule = *summary.tokens_per_s / out.watts;
  return out;
}

/// Whether the lowest rank, whose collectives are counted, recorded all of them in this step. Collectives are
/// emitted from detail `modules` on: without modules and collectives in a step their number is unknown.
bool collectives_known(const StepDigest& step) {
  const RankStep& lowest = step.ranks.front();
  return lowest.recorded.whole(ev::Detail::modules) && (!step.ops.empty() || lowest.time.known());
}

/// Means over the steps that could be replayed, so that no part gains more than its time; if none could be,
/// over those with a critical path.
void summarize_path(const Digest& digest, Summary& summary) {
  std::vector<const StepDigest*> steps;
  for (std::size_t i = digest.first_measured(); i < digest.steps().size(); ++i) {
    if (digest.steps()[i].path) steps.push_back(&digest.steps()[i]);
  }
  const auto replayed = [](const StepDigest* step) { return was_replayed(step->path_gains); };
  const bool gains_known = std::ranges::any_of(steps, replayed);
  if (gains_known) std::erase_if(steps, std::not_fn(replayed));
  if (steps.empty()) return;
  PathSummary out{
      .steps = static_cast<std::uint32_t>(steps.size()), .ms_per_step = {}, .gain_ms_per_step = {}};
  const auto mean_ms = [&](std::int64_t ns) { return static_cast<double>(ns) * 1e-6 / out.steps; };
  for (std::size_t part = 0; part < kPathParts; ++part) {
    std::int64_t taken = 0, gained = 0;
    bool known = gains_known;
    for (const StepDigest* const step : steps) {
      taken += (*step->path)[part];
      gained += step->path_gains[part];
      known = known && step->path_gains[part] != kNotReplayed;
    }
    if (taken == 0) continue;
    const char* name = name_of(static_cast<PathPart>(part));
    out.ms_per_step.emplace_back(name, mean_ms(taken));
    if (known) out.gain_ms_per_step.emplace_back(name, mean_ms(gained));
  }
  summary.critical_path = std::move(out);
}

/// Sums of waits over the measured steps, for all pairs of ranks.
void summarize_pairs(const Digest& digest, Summary& summary) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> sums;
  for (std::size_t i = digest.first_measured(); i < digest.steps().size(); ++i) {
    const StepDigest& step = digest.steps()[i];
    summary.waited_pairs_whole = summary.waited_pairs_whole && step.pairs_whole;
    for (const WaitedFor& one : step.pairs) sums[{one.waiter, one.late}] += one.ns;
  }
  for (const auto& [who, ns] : sums) summary.waited_pairs.push_back({who.first, who.second, ns});
  std::ranges::stable_sort(summary.waited_pairs, std::greater{}, &WaitedPair::ns);
}

/// Named extras per step, and the unexplained rest.
void explain_volume(const Digest& digest, Summary& summary) {
  VolumeParts sums{};
  std::size_t steps = 0;
  for (std::size_t i = digest.first_measured(); i < digest.steps().size(); ++i) {
    const StepDigest& step = digest.steps()[i];
    if (!step.volume || !collectives_known(step)) continue;
    ++steps;
    for (std::size_t cause = 0; cause < kVolumeCauses; ++cause) sums[cause] += (*step.volume)[cause];
  }
  if (steps == 0 || !summary.elements_per_step) return;
  double left = *summary.elements_per_step - summary.expected_elements_per_step;
  for (std::size_t cause = 0; cause < kVolumeCauses; ++cause) {
    const double part = sums[cause] / static_cast<double>(steps);
    if (part == 0) continue;
    summary.volume_parts.push_back({static_cast<VolumeCause>(cause), part});
    left -= part;
  }
  // Avoids "-0" and rounding errors of the means.
  const bool nothing = std::abs(left) < 1e-9 * *summary.elements_per_step;
  summary.unexplained_elements_per_step = nothing ? 0 : left;
}

/// Expected volume, as a mean over steps; `steps`: number of counted steps by number of micro-steps. The
/// formula is that of the most frequent number.
void expect_volume(const store::Store& store, const Digest& digest,
                   std::map<std::int64_t, std::uint32_t> steps, Summary& summary) {
  if (!store.has_tables()) {
    summary.comm_expression = plan::step_volume({0}, {}).text;
    return;
  }
  if (steps.empty()) {
    for (std::size_t i = digest.first_measured(); i < digest.steps().size(); ++i)
      ++steps[digest.steps()[i].micro_steps];
  }
  if (steps.empty()) steps[0] = 1;
  double sum = 0;
  std::uint32_t count = 0, most = 0;
  for (const auto& [micro_steps, with] : steps) {
    const VolumeModel model(store.tables(), micro_steps);
    sum += with * model.expected();
    count += with;
    if (with < most) continue;
    most = with;
    summary.comm_expression = model.expression();
  }
  summary.expected_elements_per_step = sum / count;
}

void summarize_communication(const store::Store& store, const Digest& digest, Summary& summary) {
  std::map<ev::CollectiveOp, OpTotals> totals;
  double elements = 0, explained_elements = 0;
  std::uint32_t explained = 0;
  std::map<std::int64_t, std::uint32_t> counted_steps, explained_steps;  // by micro-steps
  const bool recorded = records(summary, ev::Capability::collectives);
  for (std::size_t i = digest.first_measured(); recorded && i < digest.steps().size(); ++i) {
    const StepDigest& step = digest.steps()[i];
    if (!collectives_known(step)) continue;
    ++summary.ops_steps;
    elements += step.elements();
    ++counted_steps[step.micro_steps];
    if (step.volume) {
      ++explained_steps[step.micro_steps];
      ++explained;
      explained_elements += step.elements();
    }
    for (const auto& [op, of_step] : step.ops) totals[op].add(of_step);
  }
  // If some steps have an explained volume, use only those: the parts must sum to the total.
  summary.elements_steps = explained > 0 ? explained : summary.ops_steps;
  if (summary.elements_steps > 0)
    summary.elements_per_step = (explained > 0 ? explained_elements : elements) / summary.elements_steps;
  for (const auto& [op, sum] : totals) summary.ops.push_back(row_of(op, sum));
  expect_volume(store, digest, explained > 0 ? explained_steps : counted_steps, summary);
  explain_volume(digest, summary);
}

bool any_recorded(const store::Store& store, std::initializer_list<ev::EventKind> kinds) {
  for (const store::RankRow& row : store.ranks()) {
    for (const ev::EventKind kind : kinds) {
      if (store.instant_count(row.rank, kind) > 0) return true;
    }
  }
  return false;
}

/// Other stages have no fetch scheduler: their counts are 0, not unknown.
void summarize_scheduler(const store::Store& store, const Digest& digest, Summary& summary) {
  using ev::EventKind;
  for (const StepDigest& step : digest.steps()) summary.lacking_steps += step.lacks_events() ? 1 : 0;
  const auto known = [&](std::initializer_list<EventKind> kinds) {
    return summary.stage != 3 || any_recorded(store, kinds);
  };
  // Without waits a late prefetch looks like one in time.
  if (records(summary, ev::Capability::fetch_waits) &&
      known({EventKind::fetch_decision, EventKind::prefetch_issued, EventKind::prefetch_outcome})) {
    Prefetch sum;
    for (const StepDigest& step : digest.steps()) {
      if (!step.prefetch_whole()) continue;
      ++summary.prefetch_steps;
      sum.add(step.prefetch);
    }
    if (summary.prefetch_steps > 0 || digest.steps().empty() || summary.stage != 3) summary.prefetch = sum;
  }
  if (known({EventKind::trace_mode, EventKind::trace_invalidated}))
    summary.trace = {digest.trace_record(), digest.trace_complete(), digest.trace_invalidated()};
  summary.eval_trace = digest.eval_trace();
}

}  // namespace

Summary summarize(const store::Store& store, const Digest& digest) {
  Summary summary;
  describe_run(store, summary);
  measure_steps(store, summary);
  summary.ranks = RankSums(store, digest).take();
  // What the program does not record is 0 in the digest, but unknown.
  if (!records(summary, ev::Capability::fetch_waits))
    for (RankSummary& rank : summary.ranks) rank.fetch_wait_ns.reset();
  summarize_micro_batches(digest, summary);
  summarize_pairs(digest, summary);
  summary.late_causes = late_causes(digest);
  if (!store.own_times().empty()) {
    summary.rank_drifts = rank_drifts(store.own_times(), store.steps());
  } else if (const auto times = own_times_of(store, digest); !times.empty()) {
    summary.rank_drifts = rank_drifts(times, store.steps());
  }
  summarize_path(digest, summary);
  if (summary.critical_path) {
    for (const Digest::LongPiece& one : digest.longest_pieces())
      summary.critical_path->longest.push_back({name_of(one.piece.part), piece_label(store, one.piece),
                                                one.piece.rank, one.step, one.piece.at.begin,
                                                one.piece.at.end});
  }
  if (store.has_tables()) summary.efficiency = efficiency_of(store.tables(), summary.tokens_per_s);
  summary.energy = energy_use(store, summary);
  summary.memory_model = model_memory(store, summary);
  summarize_communication(store, digest, summary);
  summarize_scheduler(store, digest, summary);
  for (const store::RankRow& row : store.ranks()) {
    if (summary.first_invalidation) break;
    if (store.instant_count(row.rank, ev::EventKind::trace_invalidated) == 0) continue;
    if (const auto event = store.first_instant(row.rank, ev::EventKind::trace_invalidated)) {
      summary.first_invalidation = read_invalidation(row.rank, *event);
      summary.first_invalidation_text = explain(store, *summary.first_invalidation);
    }
  }
  return summary;
}

Summary summarize(const store::Store& store) { return summarize(store, digest_of(store)); }

Summary summarize(const store::Store& store, const store::RecordingInfo& info, const Digest& digest) {
  Summary summary = summarize(store, digest);
  summary.problems = info.problems;
  summary.distributions = distributions(store, info);
  return summary;
}

Summary summarize(const store::Store& store, const store::RecordingInfo& info) {
  return summarize(store, info, digest_of(store));
}

Summary whole_summary(const store::Store& store, const store::RecordingInfo& info, const Digest& digest) {
  Summary summary = summarize(store, info, digest);
  if (summary.stage == 3) summary.scheduling = compare_scheduling(store);
  summary.links = group_links(store, digest);
  return summary;
}

Summary whole_summary(const store::Store& store, const store::RecordingInfo& info) {
  return whole_summary(store, info, digest_of(store));
}

}  // namespace shardscope::analysis
