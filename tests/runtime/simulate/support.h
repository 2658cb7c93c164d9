// What the tests of runtime/simulate share: hardware with round figures, and runs on it.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/simulate/simulation.h"

namespace shardscope::simulate::testing {

using Json = nlohmann::json;

/// 10^12 operations and 10^9 bytes per second, links of 10^9 bytes per second, 1 us latency, no overheads.
[[nodiscard]] Hardware round_hardware();
[[nodiscard]] SimulationOptions on_round_hardware();

/// A model and its configuration, and a simulation of it whose events are kept.
class Play {
 public:
  Play(const plan::ModelSpec& model, const Json& config, std::uint32_t world, SimulationOptions options);

  /// begin() and so many steps; everything handed over.
  void run(std::int64_t steps);
  [[nodiscard]] Simulation& simulation() { return *simulation_; }
  [[nodiscard]] const plan::ModelPlan& model() const noexcept { return model_; }
  [[nodiscard]] const config::TrainingConfig& config() const noexcept { return config_; }
  /// By rank, in order of time.
  std::vector<std::vector<Event>> events;
  /// Virtual time of each step.
  std::vector<std::int64_t> step_ns;
  /// By their number in events.
  std::vector<std::string> kernel_names;

 private:
  config::TrainingConfig config_;
  plan::ModelPlan model_;
  std::unique_ptr<Simulation> simulation_;
};

/// While it lives, `detail` is what is emitted.
class DetailGuard {
 public:
  explicit DetailGuard(instrumentation::Detail detail);
  ~DetailGuard();
  DetailGuard(const DetailGuard&) = delete;
  DetailGuard& operator=(const DetailGuard&) = delete;
};

}  // namespace shardscope::simulate::testing
