// Creates the loss scaler of a configuration.
#pragma once

#include "runtime/config/config.h"
#include "runtime/plan/loss_scale.h"

namespace shardscope::engine {

/// LossScaler::none() if fp16 is off (L1).
[[nodiscard]] plan::LossScaler make_scaler(const config::TrainingConfig& training);

}  // namespace shardscope::engine
