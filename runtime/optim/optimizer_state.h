// AdamW over one rank's owned range: fp32 master weights, momentum and variance, wherever they are stored
// (device, host, NVMe). Element-wise, so shard boundaries do not matter: all stages and placements agree
// bitwise.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "runtime/base/state_kind.h"
#include "runtime/device/device.h"
#include "runtime/optim/param_sink.h"
#include "runtime/plan/partition.h"
#include "runtime/plan/zenflow.h"

namespace shardscope::optim {

class OptimizerState {
 public:
  OptimizerState() = default;
  virtual ~OptimizerState() = default;
  OptimizerState(const OptimizerState&) = delete;
  OptimizerState& operator=(const OptimizerState&) = delete;

  /// Before the first group of a step: gradients and parameters are ready for work queued on the compute
  /// stream from now on.
  virtual void begin_update() = 0;
  /// compat.gradient_buffers: queues the fp32 copy of the sub-group's gradients out of `owned`, those of the
  /// whole range on the device. The following update() reads and frees it. Does nothing if the host updates.
  virtual void copy_gradients(std::uint32_t /*group*/, kernels::ConstPtr /*owned*/) {}
  /// Queues the update of sub-group number `group` and of the parameters it holds. `step` names the step in
  /// events. Groups are updated in ascending order.
  virtual void update(std::uint32_t group, std::uint32_t step, const kernels::AdamW& settings) = 0;
  /// After the last group: work queued on the compute stream from now on sees the new parameters.
  virtual void finish_update() = 0;
  /// Queues writing the parameters from the master weights (after loading), with the effect of
  /// finish_update().
  virtual void publish_params() = 0;

  /// How states on NVMe are read and written, with the reason of a fallback; empty if there are none.
  [[nodiscard]] virtual std::string describe_swap() const { return {}; }

  /// The kinds that read() and write() accept at present, between two steps; the same on every rank.
  [[nodiscard]] virtual std::vector<base::StateKind> kinds() const {
    return {base::kStateKinds.begin(), base::kStateKinds.end()};
  }
  /// ZenFlow's state between two steps; nullopt for other optimizers.
  [[nodiscard]] virtual std::optional<plan::ZenFlowProgress> zenflow() const { return std::nullopt; }
  /// ZenFlow's chosen columns on this rank, by matrix, each matrix's preceded by their number.
  [[nodiscard]] virtual std::vector<std::int32_t> chosen_columns() const { return {}; }
  /// Restores ZenFlow's state; call before write() of the kinds() that exist then, and before
  /// publish_params(). Without columns the next step selects them. Throws std::invalid_argument if they do
  /// not match this rank's parameters.
  virtual void continue_zenflow(const plan::ZenFlowProgress&, const std::vector<std::int32_t>& /*columns*/) {}

  /// Elements [range) of the owned range to or from fp32 host memory. Between steps only; synchronous.
  virtual void read(base::StateKind kind, plan::Range range, float* to) = 0;
  virtual void write(base::StateKind kind, plan::Range range, const float* from) = 0;
};

/// All state in the device pool, initially zero; updates run on the compute stream, which owns the buffers.
/// In fp32 the parameters themselves are the master weights. `gradient` is that of the whole owned range, in
/// device memory; null if each update() follows copy_gradients(). All arguments must outlive the result;
/// `params` must be in place.
[[nodiscard]] std::unique_ptr<OptimizerState> make_device_optimizer(device::Device& device, ParamSink& params,
                                                                    kernels::ConstPtr gradient,
                                                                    std::vector<plan::Range> sub_groups);

}  // namespace shardscope::optim
