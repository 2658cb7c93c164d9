// Results of a run's steps on all ranks, as JSON: for tests and for comparing runs without a collector.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/engine/engine.h"

namespace shardscope::engine {

class RunLog {
 public:
  /// Also stores the current time: call it when the step has returned.
  void add(StepResult result) {
    ended_.push_back(std::chrono::steady_clock::now());
    steps_.push_back(std::move(result));
  }
  void add(const Evaluation& evaluation) { evaluations_.push_back(evaluation); }
  [[nodiscard]] const std::vector<StepResult>& steps() const noexcept { return steps_; }
  /// Collective: rank 0 writes {"losses": [rank][step][micro-step], "grad_norm": [step], "loss_scale":
  /// [step], "learning_rate": [step], "skipped": [step], "ended_s": [step]}. `ended_s` is the time at which a
  /// step ended on rank 0, in seconds of CLOCK_MONOTONIC. If there were evaluations, also "evaluations":
  /// [{"step", "loss", "batches"}]. Throws std::runtime_error when the file cannot be written.
  void write(const std::string& path, comm::Communicator& comm) const;

 private:
  std::vector<StepResult> steps_;
  std::vector<std::chrono::steady_clock::time_point> ended_;  ///< by step
  std::vector<Evaluation> evaluations_;
};

}  // namespace shardscope::engine
