// Creates the optimizer of a configuration for this rank's parameters and gradients.
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

/// All arguments must outlive the result. Throws std::invalid_argument on contradictory ZenFlow intervals.
[[nodiscard]] std::unique_ptr<optim::OptimizerState> make_optimizer(const execution::Context& context,
                                                                    Parameters& parameters,
                                                                    const Gradients& gradients,
                                                                    const plan::Ownership& ownership);

/// AdamW settings of a parameter group in the update after `updates` earlier ones.
[[nodiscard]] kernels::AdamW adamw_of(const config::TrainingConfig& config, std::uint32_t param_group,
                                      std::int64_t updates);

}  // namespace shardscope::engine
