// `summary --json`: the fields of metrics.md section 4. Unknown values are null.
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/foreign_json.h"
#include "app/analysis/framework_json.h"
#include "app/analysis/summary.h"
#include "app/analysis/unmatched_ends_json.h"
#include "app/store/model_states.h"
#include "app/store/names.h"
#include "runtime/plan/decision_names.h"

namespace shardscope::analysis {
namespace {

using nlohmann::json;

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

template <typename T>
json maybe(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json numbers(const std::vector<double>& values) {
  json list = json::array();
  for (const double value : values) list.push_back(number(value));
  return list;
}

double ms(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }

json memory_json(const RankSummary& rank) {
  json pools = json::object();
  for (const auto& [pool, sample] : rank.memory_peak) {
    json categories = json::object();
    for (std::uint8_t i = 0; i < instrumentation::kMemoryCategoryCount; ++i) {
      if (sample.bytes[i] != 0) {
        categories[store::name_of(static_cast<instrumentation::MemoryCategory>(i))] = sample.bytes[i];
      }
    }
    pools[store::name_of(pool)] = {
        {"peak_bytes", sample.total()}, {"at_ns", sample.at_ns}, {"categories", categories}};
  }
  return pools;
}

json outside_json(const std::optional<OutsidePeak>& outside) {
  if (!outside) return nullptr;
  return {{"most_bytes", outside->bytes}, {"in_use_bytes", outside->in_use_bytes}, {"at_ns", outside->at_ns}};
}

/// Null if the samples were not recorded: unknown, not 0.
json processor_wait_json(const std::optional<ProcessorWaits>& waits) {
  if (!waits) return nullptr;
  return {
      {"waited_ms", ms(waits->waited_ns)}, {"over_ms", ms(waits->over_ns)}, {"switches", waits->switches}};
}

/// Null if no sample lies in the measured steps.
json gpu_state_json(const GpuState& state) {
  if (state.samples() == 0) return nullptr;
  return {{"samples", state.samples()},     {"sm_mhz", maybe(state.sm_mhz())},
          {"watts", maybe(state.watts())},  {"joules", maybe(state.joules())},
          {"over_ms", ms(state.over_ns())}, {"power_limited", state.power_limited()},
          {"too_hot", state.too_hot()}};
}

/// Null if GPU records cover no step: unknown, not idle.
json gpu_json(const std::optional<GpuActivity>& gpu) {
  if (!gpu) return nullptr;
  json streams = json::object();
  for (const auto& [lane, stream] : gpu->streams) {
    json idle = json::object();
    for (std::size_t i = 0; i < kGapCauses; ++i)
      idle[name_of(static_cast<GapCause>(i))] = ms(stream.idle_ns[i]);
    json delay = nullptr;
    if (stream.launches > 0) {
      const auto us = [](double ns) { return ns * 1e-3; };
      delay = {{"min", us(static_cast<double>(stream.delay_min_ns))},
               {"mean", us(static_cast<double>(stream.delay_sum_ns) / static_cast<double>(stream.launches))},
               {"max", us(static_cast<double>(stream.delay_max_ns))}};
    }
    streams[store::name_of(lane)] = {{"kernels", stream.kernels},
                                     {"copies", stream.copies},
                                     {"busy_ms", ms(stream.busy_ns)},
                                     {"idle_ms", idle},
                                     {"launch_to_start_us", delay}};
  }
  return {{"steps", gpu->steps},
          {"clock_residual_ns", maybe(gpu->clock_residual_ns)},
          {"streams", streams},
          {"records_dropped", gpu->dropped},
          {"not_placed", gpu->not_placed},
          {"without_launch", gpu->no_launch}};
}

/// With DeepSpeed's names, which has "numel" for elements.
json counts_json(const plan::FetchCounts& counts) {
  json out = json::object();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    out[plan::name_of(static_cast<plan::FetchCounter>(i))] = {{"count", counts[i].count},
                                                              {"numel", counts[i].elems}};
  }
  return out;
}

json fetch_counters_json(const std::optional<FetchCounterSums>& sums) {
  if (!sums) return nullptr;
  return {{"micro_steps", sums->micro_steps},
          {"total", counts_json(sums->total)},
          {"last_micro_step", counts_json(sums->last)}};
}

json invalidation_json(const Summary& s) {
  if (!s.first_invalidation) return nullptr;
  const TraceInvalidation& first = *s.first_invalidation;
  const auto module = [](std::uint32_t id) {
    return id == instrumentation::kNoId ? json(nullptr) : json(id);
  };
  return {{"rank", first.rank},
          {"cause", name_of(first.cause)},
          {"trace_step", first.trace_step},
          {"expected_module", module(first.expected)},
          {"got_module", module(first.got)},
          {"recorded_modules", maybe(first.recorded)},
          {"text", s.first_invalidation_text}};
}

json micro_batches_json(const std::optional<MicroBatchSums>& sums) {
  if (!sums) return nullptr;
  return {{"count", sums->count},
          {"tokens", sums->tokens},
          {"padding", sums->padding},
          {"padding_pct", sums->padding_pct()},
          {"samples", {sums->fewest_samples, sums->most_samples}},
          {"length", {sums->shortest, sums->longest}}};
}

json groups_json(const std::vector<GroupTime>& groups) {
  json out = json::array();
  for (const GroupTime& group : groups)
    out.push_back({{"ranks", group.ranks},
                   {"waiting_ms", ms(group.waiting_ns)},
                   {"moving_ms", ms(group.moving_ns)},
                   {"late", group.late == instrumentation::kNoId ? json(nullptr) : json(group.late)},
                   {"late_ms", ms(group.late_ns)}});
  return out;
}

json rank_json(const RankSummary& rank, std::int32_t stage) {
  const auto part = [&](std::int64_t ns) { return rank.time.known() ? json(ms(ns)) : json(nullptr); };
  json out = {{"rank", rank.rank},
              {"time_ms",
               {{"compute", part(rank.time.compute_ns)},
                {"exposed_comm", part(rank.time.exposed_comm_ns)},
                {"exposed_copy", rank.copies_known ? part(rank.time.exposed_copy_ns) : json(nullptr)},
                {"checkpoint", ms(rank.time.checkpoint_ns)},
                {"idle", part(rank.time.idle_ns)},
                {"unrecorded", ms(rank.time.unrecorded_ns)},
                {"total", ms(rank.time.total_ns)}}},
              {"waiting_ms", part(rank.waiting_ns)},
              {"moving_ms", part(rank.moving_ns)},
              {"others_waited_ms", part(rank.others_waited_ns)},
              {"entered_last", rank.entered_last},
              {"groups", groups_json(rank.groups)},
              {"time_steps", rank.time_steps},
              {"whole_steps", rank.whole_steps},
              {"overlap_pct", maybe(rank.time.overlap_pct())},
              {"checkpoints",
               {{"saves", rank.checkpoints.saves},
                {"save_ms", ms(rank.checkpoints.save_ns)},
                {"loads", rank.checkpoints.loads},
                {"load_ms", ms(rank.checkpoints.load_ns)}}},
              {"evaluations", {{"count", rank.evaluations.count}, {"ms", ms(rank.evaluations.ns)}}},
              {"fetch_wait_ms", rank.fetch_wait_ns ? json(ms(*rank.fetch_wait_ns)) : json(nullptr)},
              {"data_wait_ms", rank.data_wait_ns ? json(ms(*rank.data_wait_ns)) : json(nullptr)},
              {"clock_offset_ns", rank.clock_offset_ns},
              {"clock_residual_ns", rank.clock_residual_ns},
              {"clock_drift_ppb", rank.clock_drift ? json(rank.clock_drift->ppb) : json(nullptr)},
              {"clock_drift_bound_ppb", rank.clock_drift ? json(rank.clock_drift->bound_ppb) : json(nullptr)},
              {"memory", memory_json(rank)},
              {"outside_memory", outside_json(rank.outside)},
              {"fetch_counters", fetch_counters_json(rank.fetch_counters)},
              {"micro_batches", micro_batches_json(rank.micro_batches)},
              {"allocator_retries", rank.allocator_retries ? json(*rank.allocator_retries) : json(nullptr)},
              {"processor_wait", processor_wait_json(rank.processor_waits)},
              {"gpu_state", gpu_state_json(rank.gpu_state)},
              {"gpu", gpu_json(rank.gpu)}};
  out["model_state_peak_bytes"] =
      rank.model_state_peak ? json(store::model_state_bytes(*rank.model_state_peak, stage)) : json(nullptr);
  return out;
}

json links_json(const std::vector<GroupLink>& links) {
  json out = json::array();
  for (const GroupLink& link : links)
    out.push_back({{"ranks", link.ranks},
                   {"op", store::name_of(link.op)},
                   {"count", link.count},
                   {"bytes", link.bytes},
                   {"steps", link.steps},
                   {"busbw_gbs", maybe(link.busbw_gbs)},
                   {"low_gbs", link.interval ? json(link.interval->low) : json(nullptr)},
                   {"high_gbs", link.interval ? json(link.interval->high) : json(nullptr)},
                   {"no_interval", link.no_interval.empty() ? json(nullptr) : json(link.no_interval)}});
  return out;
}

json prefetch_json(const std::optional<Prefetch>& prefetch, std::uint32_t steps) {
  if (!prefetch) return nullptr;
  return {{"steps", steps},
          {"early", prefetch->early},
          {"just_in_time", prefetch->just_in_time},
          {"late", prefetch->late},
          {"late_wait_ms", ms(prefetch->late_wait_ns)},
          {"mistargeted", prefetch->mistargeted},
          {"unused", prefetch->unused},
          {"vain_bytes", prefetch->vain_bytes}};
}

/// Milliseconds per step over all measured steps.
json late_causes_json(const LateCauses& all) {
  json out = json::array();
  for (const LateCause& cause : all.causes)
    out.push_back({{"reason", name_of(cause.reason)},
                   {"steps", cause.steps},
                   {"of", all.of},
                   {"waited_ms", all.of > 0 ? cause.waited_ms / all.of : 0},
                   {"ranks", cause.ranks}});
  return out;
}
json path_json(const std::optional<PathSummary>& path) {
  if (!path) return nullptr;
  const auto by_part = [](const std::vector<std::pair<std::string, double>>& means) {
    json out = json::object();
    for (const auto& [part, mean_ms] : means) out[part] = mean_ms;
    return out;
  };
  json longest = json::array();
  for (const LongPathPiece& piece : path->longest) {
    longest.push_back({{"part", piece.part},
                       {"label", piece.label.empty() ? json(nullptr) : json(piece.label)},
                       {"rank", piece.rank},
                       {"step", piece.step},
                       {"begin_ns", piece.begin_ns},
                       {"ms", ms(piece.end_ns - piece.begin_ns)}});
  }
  return {{"steps", path->steps},
          {"longest", longest},
          {"ms_per_step", by_part(path->ms_per_step)},
          {"gain_ms_per_step", by_part(path->gain_ms_per_step)}};
}

json totals_json(const plan::SchedulerTotals& totals) {
  return {{"gathers", totals.gathers},
          {"on_demand", totals.on_demand},
          {"gathered_elems", totals.gathered_elems},
          {"peak_elems", totals.peak_elems}};
}

json scheduling_json(const Scheduling& scheduling) {
  if (!scheduling.missing.empty()) return {{"missing", scheduling.missing}};
  json out = {{"run", plan::to_string(scheduling.run)},
              {"other", plan::to_string(scheduling.other)},
              {"micro_step", scheduling.micro_step},
              {"boundaries", scheduling.gates.size()},
              {"text", scheduling.text()},
              {"run_totals", totals_json(scheduling.comparison.first)},
              {"other_totals", totals_json(scheduling.comparison.second)},
              {"caveat", scheduling.caveat},
              {"differences", json::array()}};
  for (const plan::SchedulerDifference& difference : scheduling.comparison.differences) {
    out["differences"].push_back(difference.text);
  }
  return out;
}

json param_groups_json(const std::vector<ParamGroupRow>& groups) {
  json out = json::array();
  for (const ParamGroupRow& row : groups) {
    const instrumentation::ParamGroupInfo& group = row.settings;
    out.push_back({{"name", group.name},
                   {"params", group.params},
                   {"elems", row.elems},
                   {"padding_elems", maybe(row.padding_elems)},
                   {"lr", group.lr},
                   {"betas", {group.beta1, group.beta2}},
                   {"eps", group.eps},
                   {"weight_decay", group.weight_decay}});
  }
  return out;
}

}  // namespace

std::string to_json(const Summary& s) {
  json out;
  const json config = parse_foreign(s.config_json);
  out["run"] = {{"world", s.world},   {"data_parallel_ranks", s.copy_ranks},
                {"stage", s.stage},   {"params", s.params},
                {"model", s.model},   {"config", config.is_discarded() ? json(nullptr) : config},
                {"device", s.device}, {"simulated", s.simulated}};
  out["run"]["emulated_link"] =
      s.link_gbps > 0 ? json{{"gbps", s.link_gbps}, {"latency_us", s.link_latency_us}} : json(nullptr);
  out["run"]["param_groups"] = param_groups_json(s.param_groups);
  add_framework(out["run"], s.framework, s.records, s.not_recorded);
  out["events"] = s.events;
  out["dropped"] = s.losses.dropped;
  out["shed"] = s.losses.shed;
  out["lost_messages"] = s.losses.lost_messages;
  out["damaged_events"] = s.losses.damaged_events;
  out["absent_events"] = s.losses.absent_events;
  out["unmatched_ends"] = unmatched_ends_json(s.unmatched_ends);
  out["problems"] = s.problems;
  out["kept"] = kept_json(s.kept);
  out["distributions"] = distributions_json(s.distributions);
  out["distributions_whole"] = s.distributions ? json(s.distributions->whole) : json(nullptr);
  out["not_finite_gradients"] = not_finite_json(s.not_finite);
  out["rank_drifts"] = drifts_json(s.rank_drifts);
  out["steps"] = s.steps;
  out["steps_measured"] = s.steps_measured;
  out["steps_lacking_events"] = s.lacking_steps;
  out["step_ms"] = {{"median", maybe(s.step_ms_median)}, {"p95", maybe(s.step_ms_p95)}};
  out["tokens_per_s"] = maybe(s.tokens_per_s);
  out["loss"] = numbers(s.loss);
  out["eval_loss"] = numbers(s.eval_loss);
  out["grad_norm"] = numbers(s.grad_norm);
  out["loss_scale"] = numbers(s.loss_scale);
  out["clip_factor"] = numbers(s.clip_factor);
  out["ranks"] = json::array();
  for (const RankSummary& rank : s.ranks) out["ranks"].push_back(rank_json(rank, s.stage));
  out["micro_batches"] = micro_batches_json(s.micro_batches);
  if (s.micro_batches) out["micro_batches"]["uneven_pct"] = maybe(s.uneven_pct);
  constexpr std::size_t kPairs = 64;
  out["waited_for"] = json::array();
  for (std::size_t i = 0; i < std::min(kPairs, s.waited_pairs.size()); ++i) {
    const WaitedPair& pair = s.waited_pairs[i];
    out["waited_for"].push_back({{"waiter", pair.waiter}, {"late", pair.late}, {"ms", ms(pair.ns)}});
  }
  out["waited_for_whole"] = s.waited_pairs_whole && s.waited_pairs.size() <= kPairs;
  out["late_causes"] = late_causes_json(s.late_causes);
  out["critical_path"] = path_json(s.critical_path);
  out["energy"] = s.energy ? json{{"watts", s.energy->watts},
                                  {"over_ms", ms(s.energy->over_ns)},
                                  {"tokens_per_joule", maybe(s.energy->tokens_per_joule)}}
                           : json(nullptr);
  out["efficiency"] = s.efficiency ? json{{"flop_per_token", s.efficiency->flop_per_token},
                                          {"formula", s.efficiency->formula},
                                          {"tflops_per_rank", maybe(s.efficiency->tflops_per_rank)},
                                          {"peak_tflops", maybe(s.efficiency->peak_tflops)},
                                          {"mfu_pct", maybe(s.efficiency->mfu_pct)}}
                                   : json(nullptr);
  out["memory_model"] = {
      {"expression", s.memory_model.expression},
      {"bytes_per_rank", s.memory_model.bytes_per_rank},
      {"measured_bytes_per_rank", maybe(s.memory_model.measured_bytes_per_rank)},
      {"measured_rank",
       s.memory_model.measured_bytes_per_rank ? json(s.memory_model.measured_rank) : json(nullptr)},
      {"excess_pct", maybe(s.memory_model.excess_pct)}};
  out["memory_model"]["unexplained_bytes"] =
      s.memory_model.unexplained_bytes ? json(*s.memory_model.unexplained_bytes) : json(nullptr);
  const auto named = [](const std::vector<MemoryPart>& parts) {
    json rows = json::array();
    for (const MemoryPart& part : parts) {
      rows.push_back(
          {{"cause", name_of(part.cause)}, {"bytes", part.bytes}, {"explained", explain(part.cause)}});
    }
    return rows;
  };
  out["memory_model"]["parts"] = named(s.memory_model.parts);
  json& offloaded = out["memory_model"]["offloaded"] = json::object();
  for (const MemoryModel::Offloaded& pool : s.memory_model.offloaded) {
    offloaded[store::name_of(pool.pool)] = {{"expression", pool.expression},
                                            {"bytes_per_rank", pool.bytes_per_rank},
                                            {"measured_bytes_per_rank", maybe(pool.measured_bytes_per_rank)},
                                            {"parts", named(pool.parts)},
                                            {"unexplained_bytes", maybe(pool.unexplained_bytes)}};
  }
  json ops = json::array();
  for (const OpRow& op : s.ops) {
    ops.push_back({{"op", store::name_of(op.op)},
                   {"count", op.count},
                   {"bytes", op.bytes},
                   {"elements", op.elems},
                   {"algbw_gbs", maybe(op.algbw_gbs)},
                   {"busbw_gbs", maybe(op.busbw_gbs)},
                   {"algbw_waiting_gbs", maybe(op.algbw_waiting_gbs)},
                   {"busbw_waiting_gbs", maybe(op.busbw_waiting_gbs)}});
  }
  json extras = json::object();
  for (const VolumePart& part : s.volume_parts) extras[name_of(part.cause)] = part.elements_per_step;
  out["comm"] = {{"elements_per_step", maybe(s.elements_per_step)},
                 {"elements_steps", s.elements_steps},
                 {"ops_steps", s.ops_steps},
                 {"expression", s.comm_expression},
                 {"expected_elements_per_step", s.expected_elements_per_step},
                 {"extras", extras},
                 {"unexplained_elements_per_step", maybe(s.unexplained_elements_per_step)},
                 {"ops", ops}};
  out["links"] = links_json(s.links);
  out["prefetch"] = prefetch_json(s.prefetch, s.prefetch_steps);
  out["trace"] = s.trace ? json{{"record", s.trace->record},
                                {"complete", s.trace->complete},
                                {"invalidated", s.trace->invalidated},
                                {"first_invalidation", invalidation_json(s)}}
                         : json(nullptr);
  out["eval_trace"] = s.eval_trace
                          ? json{{"record", s.eval_trace->record}, {"complete", s.eval_trace->complete}}
                          : json(nullptr);
  out["scheduling"] = s.scheduling ? scheduling_json(*s.scheduling) : json(nullptr);
  return to_text(out, 2);
}

}  // namespace shardscope::analysis
