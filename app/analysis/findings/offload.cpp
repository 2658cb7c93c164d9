// Work that is not the device's: the CPU optimizer, NVMe, a host that is late for its GPU.
#include <fmt/format.h>

#include <algorithm>

#include "app/analysis/findings/findings.h"
#include "app/analysis/quantity_text.h"

namespace shardscope::analysis::findings {
namespace {

using ev::Severity;

}  // namespace

void cpu_optimizer(const Facts& facts, Found& found) {
  constexpr double kMuch = 0.05;
  const double alone = facts.path_ms(PathPart::cpu_optimizer);
  if (facts.share(alone) < kMuch) return;
  Finding finding{Severity::info, "The device does nothing while the CPU updates the parameters",
                  fmt::format("The CPU optimizer is on the critical path for {}.", of_step(facts, alone)),
                  "Give the update more cores, or a part of it to the device."};
  finding.id = "cpu_optimizer";
  finding.cost_ms = alone;
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
    finding.next_step = fmt::format(
        "Where the device has {} more for each rank, set zero_optimization.offload_optimizer.device to "
        "none{}.",
        bytes_text(bytes),
        facts.summary.stage == 3 ? "; else give it a part with zero_optimization.offload_optimizer.ratio"
                                 : "");
    finding.changes = {{"zero_optimization.offload_optimizer.device", "\"none\""}};
    finding.cost_bytes = bytes;
    finding.gain_ms = alone;
    finding.gain_basis = "the update on the device takes no time";
  }
  found.add(std::move(finding));
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
  if (!offload.pipeline_read || !offload.pipeline_write) {
    finding.next_step =
        "Read and write beside the update: set pipeline_read and pipeline_write of offload_optimizer.";
    finding.changes = {{"zero_optimization.offload_optimizer.pipeline_read", "true"},
                       {"zero_optimization.offload_optimizer.pipeline_write", "true"}};
    finding.gain_ms = std::min(copies, facts.path_ms(PathPart::cpu_optimizer));
    finding.gain_basis = "no more is hidden than the update takes";
    if (facts.share(*finding.gain_ms) < kNote) {  // the disk is the bound
      finding.changes.clear();
      finding.gain_ms.reset();
      finding.gain_basis.clear();
      finding.next_step = "The disk is the bound: a faster one, several, or states in host memory.";
    }
  } else {
    finding.next_step = "The disk is the bound: a faster one, several, or states in host memory.";
  }
  found.add_by_cost(facts, copies, std::move(finding));
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
