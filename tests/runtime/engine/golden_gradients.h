// Recorded gradients of the first step (grad_shard_first_step of tests/golden/stage12.json and files of the
// same format) against the real engine.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "tests/runtime/engine/golden_losses.h"

namespace shardscope::engine::testing {

/// Trains one step of every layout that records gradients, on thread worlds, stage 2, and compares each
/// rank's shard: elements exactly, the norm to 1e-5 relative (the legend's bar), the sum to what such a
/// deviation of the norm allows.
[[nodiscard]] std::vector<LossOutcome> check_gradient_shards(const nlohmann::json& file);

}  // namespace shardscope::engine::testing
