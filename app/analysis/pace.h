// Measured speed of the hardware of a recorded run, in the terms of the simulator's cost model: `what-if`
// fits it before it replays the run with other settings (docs/simulate.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/digest.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// Size and duration of one collective or copy.
struct Transfer {
  double bytes = 0;  ///< over the slowest link, in the busbw convention
  double hops = 1;   ///< number of latencies
  double ns = 0;
};

struct LinkPace {
  double gb_per_s = 0, latency_us = 0;  ///< time = hops x latency + bytes / rate
  std::uint64_t transfers = 0;
  double error_pct = 0;  ///< mean of |fitted - measured| over the mean of measured
};

/// Latencies of a collective of `ranks` ranks in the cost model: one per level of a binary tree.
[[nodiscard]] double hops_of(std::uint32_t ranks) noexcept;

/// Least-squares fit of latency and rate to the medians of equal transfers, both non-negative, scaled to the
/// sum of the medians. nullopt if no transfer moved bytes.
[[nodiscard]] std::optional<LinkPace> fit_link(const std::vector<Transfer>& transfers);

/// Milliseconds per step: medians over the measured steps of means over ranks. Links: from transfers of all
/// measured steps that did not share the link, or from all if every one did.
struct Pace {
  double step_ms = 0;
  double work_ms = 0;       ///< forward and backward: computation without the optimizer
  double optimizer_ms = 0;  ///< on the device
  double worker_ms = 0;     ///< the optimizer of offloaded states, on the CPU
  std::optional<LinkPace> inside, between, host;
  std::optional<LinkPace> nvme;  ///< reads and writes between host memory and local disks
  std::vector<double> slowness;  ///< by rank: computation over the mean; empty: all within 1 %
};

/// The link that bounds the collectives of these steps: between nodes if any was, else inside a node.
[[nodiscard]] std::optional<LinkPace> measure_link(const store::Store& store,
                                                   const std::vector<const StepDigest*>& steps);

/// The pace of a run with tables and a completed step. Throws std::invalid_argument: what is missing.
[[nodiscard]] Pace measure_pace(const store::Store& store);

/// The hardware rates of one rank, as input of a simulated run.
struct Rates {
  double matrix_tflops = 1, memory_gb_per_s = 100, host_memory_gb_per_s = 10;
  LinkPace inside, between, host;
  std::optional<LinkPace> nvme{};  ///< nullopt: no disks
};

/// One iteration of calibration: scales each of `rates` by the ratio of `wanted` to `modelled` in its part.
/// `modelled` is the pace of a run simulated with `rates`.
[[nodiscard]] Rates calibrate(const Rates& rates, const Pace& wanted, const Pace& modelled);
/// Largest relative error of work, optimizer and worker; ignores parts that are missing or below a thousandth
/// of the step.
[[nodiscard]] double relative_error(const Pace& wanted, const Pace& modelled);

/// Formats a hardware file (docs/simulate.md).
[[nodiscard]] std::string hardware_file(const Rates& rates, const std::string& description,
                                        std::uint32_t ranks_per_node);

}  // namespace shardscope::analysis
