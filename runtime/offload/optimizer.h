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

/// AdamW on the worker stream over the tiles of `states`. Updated parameters are sent in pieces through
/// `params`, overlapping the update of the next piece: in 16 bits from two staging buffers of `staging`, in
/// fp32 directly from the master weights. `gradient`: host memory, of the elements in `states`.
[[nodiscard]] std::unique_ptr<optim::OptimizerState> make_host_optimizer(
    device::Device& device, optim::ParamSink& params, kernels::DType type, kernels::ConstPtr gradient,
    std::unique_ptr<StateStorage> states, device::Arena& staging);

/// The optimizer of `zero.offload_optimizer`, over all `sub_groups`; `type`: storage type of parameters and
/// gradients. Throws device::BackendError if memory or disk is too small. All arguments must outlive the
/// result.
[[nodiscard]] std::unique_ptr<optim::OptimizerState> make_optimizer(
    device::Device& device, optim::ParamSink& params, kernels::DType type,
    const optim::GradientParts& gradient, const std::vector<plan::Range>& sub_groups,
    const plan::ZeroConfig& zero);

}  // namespace shardscope::offload
