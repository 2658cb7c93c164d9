// One rank's engine on a virtual device: returns the operations queued in each step.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "instrumentation/gate.h"
#include "runtime/config/config.h"
#include "runtime/engine/engine.h"
#include "runtime/simulate/groups.h"
#include "runtime/simulate/recorder.h"

namespace shardscope::simulate {

class VirtualRank {
 public:
  /// All arguments must outlive it. Throws what the engine's constructor throws, and device::BackendError if
  /// the hardware has too little memory.
  VirtualRank(const plan::ModelPlan& model, const config::TrainingConfig& config, const CostModel& cost,
              const RunGroups& groups, std::uint32_t rank, EventCapture& emitted,
              const engine::Engine::NameKernel& name_kernel);
  ~VirtualRank();
  VirtualRank(const VirtualRank&) = delete;
  VirtualRank& operator=(const VirtualRank&) = delete;

  /// Before the first step: the engine allocates memory and sets its weights.
  [[nodiscard]] Tape begin();
  [[nodiscard]] Tape step();
  /// Tape of an evaluation of `batches` micro-batches, after a step.
  [[nodiscard]] Tape evaluate(std::int64_t batches);

 private:
  void next_batch(data::HostBatch& batch, std::int64_t micro_step) const;
  [[nodiscard]] std::int64_t tokens_of_all(std::int64_t first_micro_step) const;

  const plan::ModelPlan& model_;
  const config::TrainingConfig& config_;
  const CostModel& cost_;
  const std::uint32_t rank_;
  std::int64_t micro_step_ = 0;  ///< of training
  Recorder recorder_;
  std::atomic<std::uint32_t> sequence_{0};
  instrumentation::GateKeeper gates_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<comm::Communicator> gather_, reduce_, control_;
  std::unique_ptr<comm::ZeroCommunicators> groups_;
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace shardscope::simulate
