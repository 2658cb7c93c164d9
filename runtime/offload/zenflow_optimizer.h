// ZenFlow (docs/zero.md O5): AdamW on the device, every step, for the columns with the largest gradients
// and for what is no matrix; all other gradients are summed in host memory and stepped there once per
// interval, with overlap_step beside the steps of the next one.
//
// [Note: two optimizers over one range]
// Host memory holds fp32 master weights, momentum and variance of the whole owned range and steps all of it.
// Chosen elements have theirs packed, on the device or with zenflow.offload in host memory beside; while they
// are there the host's are stale, and what the host makes of them is never seen: after every publication the
// device writes its elements over it. When columns are chosen anew the states move: the old ones back into
// their places, the new ones out. (DeepSpeed keeps 16-bit parameters on the device only and clears the
// moments.) So where the host steps every time and does not defer, the result is that of plain AdamW to the
// bit, whatever is chosen.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/optim/optimizer_state.h"
#include "runtime/plan/zenflow.h"

namespace shardscope::offload {

struct ZenFlowInput {
  device::Device& device;
  optim::ParamSink& params;
  kernels::DType type;         ///< of parameters
  kernels::ConstPtr gradient;  ///< of the whole owned range, device memory
  std::int64_t elems = 0;      ///< of the owned range
  std::vector<plan::ColumnSlice> slices;
  plan::ZenFlowSettings settings;
  std::size_t matrices = 0;  ///< parameters that vote, over all ranks
  /// Their number by ParamId, from 0; of others anything.
  std::vector<std::uint32_t> matrix_of;
  bool pin_memory = true;
  /// Elements of a piece on its way between device and host, the least that a deferred update is cut into.
  std::int64_t piece_elems = std::int64_t{1} << 18;
  /// Sums over all ranks, in place; for the votes of the auto interval.
  std::function<void(std::span<double>)> sum_over_ranks;
};

/// Memory: on the device three fp32 values, a gradient and a parameter per chosen element (with
/// offload_chosen the three on the host, and two pieces of them on the device); on the host five fp32 values
/// per owned element, four without overlap_step. A sum that waits and an update in flight are in no read():
/// it returns the states after the update in flight, without the sum of the interval that runs.
[[nodiscard]] std::unique_ptr<optim::OptimizerState> make_zenflow_optimizer(ZenFlowInput input);

}  // namespace shardscope::offload
