// Work outside of the device: CPU optimizer, NVMe, a host that is late for its GPU.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "app/analysis/findings/findings.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/gpu_activity.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/spans.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::analysis::findings {
void cpu_optimizer(const Facts& facts, Found& found) {
  const double alone = facts.path_ms(PathPart::cpu_optimizer);
  Finding finding;
  finding.id = "cpu_optimizer";
  finding.title = "The device does nothing while the CPU updates the parameters";
  finding.evidence = fmt::format("The CPU optimizer is on the critical path for {}.", of_step(facts, alone));
  finding.next_step = finding.otherwise = "Give the update more cores, or a part of it to the device.";
  if (facts.zero_keys && facts.zero.offload_optimizer.device == plan::OffloadDevice::cpu) {
    std::int64_t bytes = 0;
    for (const RankSummary& rank : facts.summary.ranks) {
      const auto states = [&](ev::MemoryPool pool) -> std::int64_t {
        const auto peak = rank.memory_peak.find(pool);
        if (peak == rank.memory_peak.end()) return 0;
        const auto of = [&](ev::MemoryCategory category) {
          return peak->second.bytes[static_cast<std::size_t>(category)];
        };
        return of(ev::MemoryCategory::master_weight) + of(ev::MemoryCategory::momentum) +
               of(ev::MemoryCategory::variance);
      };
      bytes = std::max(bytes, states(ev::MemoryPool::host) + states(ev::MemoryPool::pinned));
    }
    advise(
        finding,
        {{{"zero_optimization.offload_optimizer.device", "\"none\""}},
         fmt::format(
             "Where the device has {} more for each rank, set zero_optimization.offload_optimizer.device to "
             "none{}.",
             bytes_text(bytes),
             facts.summary.stage == 3 ? "; else give it a part with zero_optimization.offload_optimizer.ratio"
                                      : "")});
    finding.cost_bytes = bytes;
  }
  look_at_path(facts, finding, PathPart::cpu_optimizer);
  found.add_by_cost(facts, alone, std::move(finding));
}

void nvme_wait(const Facts& facts, Found& found) {
  const auto& offload = facts.zero.offload_optimizer;
  if (!facts.zero_keys || offload.device != plan::OffloadDevice::nvme) return;
  const double copies = facts.path_ms(PathPart::copy);
  Finding finding;
  finding.id = "nvme_wait";
  finding.title = "The update waits for the disk";
  finding.evidence = fmt::format("Reads and writes of optimizer states are on the critical path for {}.",
                                 of_step(facts, copies));
  finding.next_step = finding.otherwise =
      "The disk is the bound: a faster one, several, or states in host memory.";
  // No more than the update's time can be hidden.
  if ((!offload.pipeline_read || !offload.pipeline_write) &&
      facts.share(std::min(copies, facts.path_ms(PathPart::cpu_optimizer))) >= kNote) {
    advise(finding, {{{"zero_optimization.offload_optimizer.pipeline_read", "true"},
                      {"zero_optimization.offload_optimizer.pipeline_write", "true"}},
                     "Read and write beside the update: set pipeline_read and pipeline_write of "
                     "offload_optimizer."});
  }
  found.add_by_cost(facts, copies, std::move(finding));
}

/// Stage 3's parameters on NVMe: computation waits for the disk, not for the link.
void nvme_params(const Facts& facts, Found& found) {
  const auto& offload = facts.zero.offload_param;
  if (!facts.zero_keys || facts.summary.stage != 3 || offload.device != plan::OffloadDevice::nvme) return;
  // A wait for a gather that exceeds its collective is a wait for the gather's input.
  const double waited =
      std::max(0.0, facts.mean(&RankFacts::fetch_wait) - facts.mean(&RankFacts::gather_moving) -
                        facts.mean(&RankFacts::waiting));
  const std::uint64_t behind = [&] {
    std::uint64_t count = 0;
    for (const store::RankRow& rank : facts.store.ranks())
      count += facts.store.instant_count(rank.rank, ev::EventKind::fetch_decision,
                                         static_cast<std::uint8_t>(plan::PrefetchStop::offloaded));
    return count;
  }();
  Finding finding;
  finding.id = "nvme_params";
  finding.title = "Computation waits for parameters on NVMe";
  finding.evidence = fmt::format(
      "Computation waits for {} without a collective that moves; prefetching stopped {} times because the "
      "next "
      "parameter was not read yet. buffer_count is {}.",
      of_step(facts, waited), behind, offload.buffer_count);
  for (const std::int64_t factor : {2, 4}) {
    advise(finding, setting({{"zero_optimization.offload_param.buffer_count",
                              std::to_string(offload.buffer_count * factor)}},
                            "Each buffer is host memory of buffer_size elements."));
  }
  finding.otherwise =
      "The disk is the bound: a faster one, several, or parameters in host memory (offload_param.device "
      "cpu).";
  found.add_by_cost(facts, waited, std::move(finding));
}

namespace {

/// Recomputation chosen by a script: from the passes of its modules.
void attached_recomputation(const Facts& facts, Found& found) {
  const double repeated = facts.mean(&RankFacts::recompute);
  Finding finding;
  finding.id = "recomputation";
  finding.title = "The backward computes activations a second time";
  finding.evidence = fmt::format("Modules whose forward is repeated in the backward compute for {}.",
                                 of_step(facts, repeated));
  finding.next_step =
      "Where the device has room for the activations, checkpoint fewer modules (torch.utils.checkpoint, "
      "gradient_checkpointing_disable() of a model of Transformers).";
  look_at_worst(facts, finding, [](const RankStep& step) { return step.recompute_ns; });
  found.add_by_cost(facts, repeated, std::move(finding), ev::Severity::info);
}

/// The longest module that is recomputed in the step with most computation.
void look_at_recomputed(const Facts& facts, Finding& finding) {
  look_at_worst(facts, finding, [](const RankStep& step) { return step.time.compute_ns; });
  std::int64_t longest = 0;
  for_each_span(facts.store, {finding.rank, ev::StreamId::compute}, finding.at_ns, finding.until_ns,
                [&](const store::Span& span) {
                  if (span.kind != ev::EventKind::module_begin || span.end_ns == store::kOpen ||
                      ev::as<ev::EventKind::module_begin>(span).pass != ev::Pass::recompute ||
                      span.end_ns - span.begin_ns <= longest)
                    return;
                  longest = span.end_ns - span.begin_ns;
                  finding.at_ns = span.begin_ns;
                  finding.until_ns = span.end_ns;
                });
}

}  // namespace

/// Activations computed twice: worth it only if the memory is needed. What-if predicts the memory without it.
void recomputation(const Facts& facts, Found& found) {
  if (!facts.own_runtime()) return attached_recomputation(facts, found);
  const nlohmann::json config = parse_foreign(facts.summary.config_json);
  const nlohmann::json::json_pointer on("/shardscope/activation_checkpointing");
  if (!config.is_object() || !config.contains(on) || config[on] != true) return;
  const double forward = facts.path_ms(PathPart::forward);
  Finding finding;
  finding.id = "recomputation";
  finding.title = "The backward computes activations a second time";
  finding.evidence = fmt::format(
      "shardscope.activation_checkpointing is on: the backward repeats a forward, which takes {}.",
      of_step(facts, forward));
  advise(finding,
         {{{"shardscope.activation_checkpointing", "false"}},
          "Where the device has room for the activations, set shardscope.activation_checkpointing to "
          "false."});
  const nlohmann::json::json_pointer stops("/shardscope/checkpoint_early_stop");
  if (!config.contains(stops) || config[stops] != true) {
    advise(
        finding,
        {{{"shardscope.checkpoint_early_stop", "true"}},
         "Set shardscope.checkpoint_early_stop to true: a recomputation then leaves out the last product of "
         "its block, which nobody reads. Losses stay; memory does not grow."});
  }
  finding.otherwise = "Leave it on: it costs nothing that could be seen.";
  look_at_recomputed(facts, finding);
  found.add_by_cost(facts, forward, std::move(finding), ev::Severity::info);
}

namespace {

std::int64_t late_in_step(const RankStep& step) {
  if (!step.gpu) return 0;
  const auto stream = step.gpu->streams.find(ev::StreamId::gpu_compute);
  return stream == step.gpu->streams.end()
             ? 0
             : stream->second.idle_ns[static_cast<std::size_t>(GapCause::host_late)];
}

/// The rank whose GPU waits longest for its host in the typical steps.
struct LateHost {
  std::uint32_t rank = 0;
  double late_ms = 0;  ///< per step
  double kernels = 0;  ///< of the compute stream, per step
  double kernel_us = 0;
};
std::optional<LateHost> latest_host(const Facts& facts) {
  struct Sums {
    std::int64_t late_ns = 0, busy_ns = 0;
    std::uint64_t kernels = 0, steps = 0;
  };
  std::map<std::uint32_t, Sums> ranks;
  for (const std::size_t index : facts.typical) {
    for (const RankStep& step : facts.digest.steps()[index].ranks) {
      if (!step.gpu) continue;
      const auto stream = step.gpu->streams.find(ev::StreamId::gpu_compute);
      if (stream == step.gpu->streams.end()) continue;
      Sums& sums = ranks[step.rank];
      sums.late_ns += late_in_step(step);
      sums.busy_ns += stream->second.busy_ns;
      sums.kernels += stream->second.kernels;
      ++sums.steps;
    }
  }
  std::optional<LateHost> out;
  for (const auto& [rank, sums] : ranks) {
    const double steps = static_cast<double>(sums.steps),
                 late_ms = static_cast<double>(sums.late_ns) * 1e-6 / steps;
    if (out && late_ms <= out->late_ms) continue;
    out = {.rank = rank, .late_ms = late_ms, .kernels = static_cast<double>(sums.kernels) / steps};
    if (sums.kernels > 0)
      out->kernel_us = static_cast<double>(sums.busy_ns) * 1e-3 / static_cast<double>(sums.kernels);
  }
  return out;
}

/// What a rank recorded of its idle device (host_late) in the typical steps.
struct RecordedIdle {
  double mean_ms = 0;  ///< over the typical steps for which it is recorded; 0 if there are none
  std::uint32_t worst_step = ev::kNoId;
};
RecordedIdle recorded_idle(const Facts& facts, std::uint32_t rank) {
  RecordedIdle out;
  std::int64_t most = -1;
  std::vector<std::uint32_t> typical;
  for (const std::size_t index : facts.typical) typical.push_back(facts.digest.steps()[index].step);
  double sum = 0;
  std::size_t steps = 0;
  for (const ev::Event& event : facts.store.instants_of(rank, ev::EventKind::host_late)) {
    const auto fields = ev::as<ev::EventKind::host_late>(event);
    if (!std::ranges::binary_search(typical, fields.step)) continue;
    sum += static_cast<double>(fields.idle_ns) * 1e-6;
    ++steps;
    if (fields.idle_ns <= most) continue;
    most = fields.idle_ns;
    out.worst_step = fields.step;
  }
  if (steps > 0) out.mean_ms = sum / static_cast<double>(steps);
  return out;
}

}  // namespace

/// The device is idle because the host has not launched its work yet.
void host_bound(const Facts& facts, Found& found) {
  Finding finding;
  finding.id = "host_bound";
  if (const std::optional<LateHost> late = latest_host(facts)) {
    finding.rank = late->rank;
    finding.title = fmt::format("The GPU of rank {} waits for its host", late->rank);
    finding.evidence = fmt::format(
        "Its compute stream is idle for {} because what came next had not been launched; {:.0f} kernels of a "
        "step take {:.1f} us each.",
        of_step(facts, late->late_ms), late->kernels, late->kernel_us);
    finding.next_step =
        "Fewer, larger kernels: a larger micro-batch, torch.compile or CUDA graphs in PyTorch; look for what "
        "the host waits for (.item(), prints, a loader).";
    look_at_worst(facts, finding, late_in_step);
    return found.add_by_cost(facts, late->late_ms, std::move(finding));
  }
  double late_ms = 0;
  std::uint32_t worst_step = ev::kNoId;
  for (const RankSummary& rank : facts.summary.ranks) {
    const RecordedIdle idle = recorded_idle(facts, rank.rank);
    if (idle.mean_ms <= late_ms) continue;
    late_ms = idle.mean_ms;
    worst_step = idle.worst_step;
    finding.rank = rank.rank;
  }
  look_at_worst_step(facts, finding, [&](const StepDigest& step) { return step.step == worst_step ? 1 : 0; });
  finding.title = fmt::format("The device of rank {} waits for its host", finding.rank);
  finding.evidence =
      fmt::format("Its compute stream is idle for {} because what came next had not been queued.",
                  of_step(facts, late_ms));
  finding.next_step = "Fewer, larger kernels: a larger micro-batch.";
  if (facts.summary.simulated) {
    finding.evidence +=
        " The run is simulated: its host takes launch_us of the hardware file for each kernel, copy and "
        "collective.";
    finding.next_step += " If the host is faster than that, correct launch_us of the hardware file.";
  }
  found.add_by_cost(facts, late_ms, std::move(finding));
}

}  // namespace shardscope::analysis::findings
