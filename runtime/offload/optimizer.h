// The optimizer of a configuration: on the device, on the host, or (ratio) partly on each.
#pragma once

#include <memory>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/offload/state_storage.h"
#include "runtime/optim/gradient_parts.h"
#include "runtime/optim/optimizer_state.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::offload {

/// AdamW on the worker stream over the tiles of `states`. Updated parameters leave in pieces through
/// `params`, beside the update of the next piece: in 16 bits from two staging buffers of `staging`, in fp32
/// straight from the master weights. `gradient`: host memory, of the elements that `states` holds.
[[nodiscard]] std::unique_ptr<optim::OptimizerState> make_host_optimizer(
    device::Device& device, optim::ParamSink& params, kernels::DType type, kernels::ConstPtr gradient,
    std::unique_ptr<StateStorage> states, device::Arena& staging);

/// What `zero.offload_optimizer` asks for, over all `sub_groups`; `type`: storage type of parameters and
/// gradients. Throws device::BackendError when memory or disk does not suffice. What is named outlives the
/// result.
[[nodiscard]] std::unique_ptr<optim::OptimizerState> make_optimizer(
    device::Device& device, optim::ParamSink& params, kernels::DType type,
    const optim::GradientParts& gradient, const std::vector<plan::Range>& sub_groups,
    const plan::ZeroConfig& zero);

}  // namespace shardscope::offload
