// The optimizer that a configuration asks for, over this rank's parameters and gradients.
#pragma once

#include <memory>

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

}  // namespace shardscope::engine
