// The optimizer that a configuration asks for, over this rank's parameters and gradients.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/ops.h"
#include "runtime/config/config.h"
#include "runtime/engine/gradients.h"
#include "runtime/engine/parameters.h"
#include "runtime/execution/context.h"
#include "runtime/optim/optimizer_state.h"
#include "runtime/plan/ownership.h"

namespace shardscope::engine {

/// Everything named outlives the result. Throws std::invalid_argument on ZenFlow intervals that contradict
/// each other.
[[nodiscard]] std::unique_ptr<optim::OptimizerState> make_optimizer(const execution::Context& context,
                                                                    Parameters& parameters,
                                                                    const Gradients& gradients,
                                                                    const plan::Ownership& ownership);

/// Of a parameter group, in the update that follows `updates` others.
[[nodiscard]] kernels::AdamW adamw_of(const config::TrainingConfig& config, std::uint32_t param_group,
                                      std::int64_t updates);

}  // namespace shardscope::engine
