// Work that is not the device's: the CPU optimizer, NVMe, a host that is late for its GPU.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/analysis/findings/findings.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/quantity_text.h"
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
  // No more is hidden than the update takes.
  if ((!offload.pipeline_read || !offload.pipeline_write) &&
      facts.share(std::min(copies, facts.path_ms(PathPart::cpu_optimizer))) >= kNote) {
    advise(finding, {{{"zero_optimization.offload_optimizer.pipeline_read", "true"},
                      {"zero_optimization.offload_optimizer.pipeline_write", "true"}},
                     "Read and write beside the update: set pipeline_read and pipeline_write of "
                     "offload_optimizer."});
  }
  found.add_by_cost(facts, copies, std::move(finding));
}

/// Parameters of stage 3 on NVMe: what computation waits for is the disk, not the link.
void nvme_params(const Facts& facts, Found& found) {
  const auto& offload = facts.zero.offload_param;
  if (!facts.zero_keys || facts.summary.stage != 3 || offload.device != plan::OffloadDevice::nvme) return;
  // A wait for a gather that no collective explains is one for what the gather is made of.
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
  finding.title = "Parameters are waited for that lie on NVMe";
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

/// Activations that are computed twice: what is saved is worth it only where the memory is needed. What
/// memory the step would take without it is what-if's to say.
void recomputation(const Facts& facts, Found& found) {
  const nlohmann::json config = parse_foreign(facts.summary.config_json);
  const nlohmann::json::json_pointer on("/shardscope/activation_checkpointing");
  if (!facts.own_runtime() || !config.is_object() || !config.contains(on) || config[on] != true) return;
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
  found.add_by_cost(facts, forward, std::move(finding), ev::Severity::info);
}

/// The GPU has nothing to do because the host has not launched it yet.
void host_bound(const Facts& facts, Found& found) {
  for (const RankSummary& rank : facts.summary.ranks) {
    if (!rank.gpu || rank.gpu->steps == 0) continue;
    const auto stream = rank.gpu->streams.find(ev::StreamId::gpu_compute);
    if (stream == rank.gpu->streams.end()) continue;
    const double late_ms =
        static_cast<double>(stream->second.idle_ns[static_cast<std::size_t>(GapCause::host_late)]) * 1e-6 /
        rank.gpu->steps;
    if (facts.share(late_ms) < kNote) continue;
    Finding finding;
    finding.id = "host_bound";
    finding.title = fmt::format("The GPU of rank {} waits for its host", rank.rank);
    finding.evidence = fmt::format(
        "Its compute stream is idle for {} because what came next had not been launched; {} kernels of a "
        "step take {:.1f} "
        "us each.",
        of_step(facts, late_ms), stream->second.kernels / rank.gpu->steps,
        stream->second.kernels > 0
            ? static_cast<double>(stream->second.busy_ns) * 1e-3 / static_cast<double>(stream->second.kernels)
            : 0.0);
    finding.next_step =
        "Fewer, larger kernels: a larger micro-batch, torch.compile or CUDA graphs in PyTorch; look for what "
        "the host "
        "waits for (.item(), prints, a loader).";
    finding.rank = rank.rank;
    return found.add_by_cost(facts, late_ms, std::move(finding));
  }
}

}  // namespace shardscope::analysis::findings
