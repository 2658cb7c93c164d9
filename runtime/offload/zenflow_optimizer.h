// ZenFlow (docs/zero.md O5): AdamW on the device, every step, for the columns with the largest gradients and
// for all parameters that are no matrices; other gradients are summed in host memory and applied there once
// per interval, with overlap_step during the steps of the next one.
//
// [Note: two optimizers over one range]
// Host memory holds fp32 master weights, momentum and variance of the whole owned range, and the host updates
// all of it. Chosen elements have packed states, on the device or with zenflow.offload in separate host
// memory; meanwhile the host's are stale, and the host's updates of them are never visible: after every
// publication the device overwrites its elements. When columns are chosen again the states of the old ones
// are copied back, those of the new ones are packed. (DeepSpeed keeps 16-bit parameters on the device only
// and clears the moments.) So if the host updates in every step without deferring, the result is bitwise that
// of plain AdamW, whatever is chosen.
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
  /// Index of each matrix by ParamId, from 0; unused for other parameters.
  std::vector<std::uint32_t> matrix_of;
  bool pin_memory = true;
  /// Elements per transferred piece between device and host, also the granularity of a deferred update.
  std::int64_t piece_elems = std::int64_t{1} << 18;
  /// Sums over all ranks, in place; for the votes of the auto interval.
  std::function<void(std::span<double>)> sum_over_ranks;
};

/// Memory: on the device three fp32 values, a gradient and a parameter per chosen element (with
/// offload_chosen the three on the host, and two pieces of them on the device); on the host five fp32 values
/// per owned element, four without overlap_step. read() returns the states after the update in flight,
/// without the sum of the current interval.
[[nodiscard]] std::unique_ptr<optim::OptimizerState> make_zenflow_optimizer(ZenFlowInput input);

}  // namespace shardscope::offload
