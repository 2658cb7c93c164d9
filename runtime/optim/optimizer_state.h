// AdamW over one rank's owned range: fp32 master weights, momentum and variance, wherever they live (device,
// host, NVMe). Element-wise, so it does not matter where a shard begins: stages and places agree bitwise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "runtime/device/device.h"
#include "runtime/optim/param_sink.h"
#include "runtime/optim/state_kind.h"
#include "runtime/plan/partition.h"

namespace shardscope::optim {

class OptimizerState {
 public:
  OptimizerState() = default;
  virtual ~OptimizerState() = default;
  OptimizerState(const OptimizerState&) = delete;
  OptimizerState& operator=(const OptimizerState&) = delete;

  /// Before the first group of a step: gradients and parameters are ready for what is queued on the compute
  /// stream from now on.
  virtual void begin_update() = 0;
  /// Queues the update of sub-group number `group` and of the parameters it holds. `step` names the step in
  /// events. Groups are updated in ascending order.
  virtual void update(std::uint32_t group, std::uint32_t step, const kernels::AdamW& settings) = 0;
  /// After the last group: what is queued on the compute stream from now on sees the new parameters.
  virtual void finish_update() = 0;
  /// Queues making the parameters from the master weights (after loading), with the effect of
  /// finish_update().
  virtual void publish_params() = 0;

  /// How states on NVMe are read and written, and why not better; empty where none are there.
  [[nodiscard]] virtual std::string describe_swap() const { return {}; }

  /// Elements [range) of the owned range to or from fp32 host memory. Between steps only; return when done.
  virtual void read(StateKind kind, plan::Range range, float* to) = 0;
  virtual void write(StateKind kind, plan::Range range, const float* from) = 0;
};

/// All state in the device pool, zero at first; updates run on the compute stream, which owns the buffers. In
/// fp32 the parameters themselves are the master weights. `gradient` is that of the whole owned range, in
/// device memory. Everything named outlives the result; `params` has to be in place.
[[nodiscard]] std::unique_ptr<OptimizerState> make_device_optimizer(device::Device& device, ParamSink& params,
                                                                    kernels::ConstPtr gradient,
                                                                    std::vector<plan::Range> sub_groups);

}  // namespace shardscope::optim
