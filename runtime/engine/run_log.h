// What a run's steps gave, of every rank, as JSON: for tests and for comparing runs without a collector.
#pragma once

#include <string>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/engine/engine.h"

namespace shardscope::engine {

class RunLog {
 public:
  void add(StepResult result) { steps_.push_back(std::move(result)); }
  [[nodiscard]] const std::vector<StepResult>& steps() const noexcept { return steps_; }
  /// Collective: rank 0 writes {"losses": [rank][step][micro-step], "grad_norm": [step], "loss_scale":
  /// [step], "learning_rate": [step], "skipped": [step]}. Throws std::runtime_error when the file cannot be
  /// written.
  void write(const std::string& path, comm::Communicator& comm) const;

 private:
  std::vector<StepResult> steps_;
};

}  // namespace shardscope::engine
