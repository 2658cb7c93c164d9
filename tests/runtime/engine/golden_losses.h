// Recorded DeepSpeed losses (tests/golden/losses.json and files of the same format) against the real engine.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shardscope::engine::testing {

/// One case at one stage.
struct LossOutcome {
  std::string title;
  std::string text;  ///< the largest deviation, or what differs
  bool agrees = false;
  bool compared = true;  ///< false: the right value is unknown; `text` has the reason
};

/// A number of ranks that can be run as threads here. Throws std::invalid_argument beyond 64.
[[nodiscard]] std::uint32_t threads_of(const nlohmann::json& world);

/// Trains every case at every stage recorded, on thread worlds, and compares losses and norms to 2e-5
/// relative (the file's own "tolerance") and the final sums of parameters to the bars it gives. A case may
/// have "config", keys of DeepSpeed's configuration: in 16 bits the bar is 5e-2, and loss scales are compared
/// exactly.
[[nodiscard]] std::vector<LossOutcome> check_losses(const nlohmann::json& file);

}  // namespace shardscope::engine::testing
