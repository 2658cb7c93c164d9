// How fast the machines of a recorded run were, as the cost model of simulated runs takes it: what `what-if`
// fits before it plays the run with other settings (docs/simulate.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/digest.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// One collective or copy: what it had to move and how long it took.
struct Transfer {
  double bytes = 0;  ///< that crossed the slowest link: busbw convention
  double hops = 1;   ///< latencies it paid
  double ns = 0;
};

struct LinkPace {
  double gb_per_s = 0, latency_us = 0;  ///< time = hops x latency + bytes / rate
  std::uint64_t transfers = 0;
  double error_pct = 0;  ///< mean of |fitted - seen| over the mean of seen
};

/// Latencies that a collective of so many ranks pays, in the cost model: one a level of a binary tree.
[[nodiscard]] double hops_of(std::uint32_t ranks) noexcept;

/// The line through the transfers, by least squares over the median of those alike, with neither part below 0
/// and with the sum of the medians kept. Empty without a transfer that moved anything.
[[nodiscard]] std::optional<LinkPace> fit_link(const std::vector<Transfer>& transfers);

/// Milliseconds of a step, medians over the measured steps of the mean over ranks; for links the transfers of
/// all measured steps that had the link for themselves, or all where none had.
struct Pace {
  double step_ms = 0;
  double work_ms = 0;       ///< forward and backward: computation without the optimizer
  double optimizer_ms = 0;  ///< on the device
  double worker_ms = 0;     ///< the optimizer of offloaded states, on the CPU
  std::optional<LinkPace> inside, between, host;
  std::optional<LinkPace> nvme;  ///< between host memory and local disks, of reads and writes
  std::vector<double> slowness;  ///< by rank: computation over the mean of the ranks; empty: all within 1 %
};

/// The link that bounds collectives of these steps: between nodes where any was, else inside one.
[[nodiscard]] std::optional<LinkPace> measure_link(const store::Store& store,
                                                   const std::vector<const StepDigest*>& steps);

/// Pace of a run with tables and a completed step. Throws std::invalid_argument: what is missing.
[[nodiscard]] Pace measure_pace(const store::Store& store);

/// The rates of one rank's hardware that a simulated run needs.
struct Rates {
  double matrix_tflops = 1, memory_gb_per_s = 100, host_memory_gb_per_s = 10;
  LinkPace inside, between, host;
  std::optional<LinkPace> nvme{};  ///< nothing: there are no disks
};

/// One step of calibration: scales each of `rates` by the ratio of `wanted` to `modelled` in its own part,
/// where `modelled` is the pace of a run simulated with `rates`.
[[nodiscard]] Rates calibrate(const Rates& rates, const Pace& wanted, const Pace& modelled);
/// Largest relative difference of work, optimizer and worker between the two; parts that are not there, or
/// are below a thousandth of the step, do not count.
[[nodiscard]] double relative_error(const Pace& wanted, const Pace& modelled);

/// As a hardware file (docs/simulate.md).
[[nodiscard]] std::string hardware_file(const Rates& rates, const std::string& description,
                                        std::uint32_t ranks_per_node);

}  // namespace shardscope::analysis
