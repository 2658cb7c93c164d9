// A simulated run: the engine of every rank (or of one rank for all equivalent ones) records its operations,
// Playback assigns their times.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/simulate/playback.h"
#include "runtime/simulate/virtual_rank.h"

namespace shardscope::simulate {

struct SimulationOptions {
  Hardware hardware;
  Variation variation;
  std::int64_t origin_ns = 0;
  /// One engine for all equivalent ranks, or one for each rank.
  enum class Engines : std::uint8_t { shared, one_each } engines = Engines::shared;
};

class Simulation {
 public:
  /// `model` and `config` must outlive it; config.world ranks. Events are filtered by the process's detail
  /// level. Throws std::invalid_argument for a configuration that cannot be simulated: states on NVMe if the
  /// hardware has no disks, ZenFlow with an update interval that depends on gradient values.
  Simulation(const plan::ModelPlan& model, const config::TrainingConfig& config,
             const SimulationOptions& options, engine::Engine::NameKernel name_kernel, Playback::Take take);
  ~Simulation();

  /// Times begin at `origin_ns` instead; before begin().
  void begin_at(std::int64_t origin_ns) { playback_.begin_at(origin_ns); }
  /// The engines allocate memory and set their weights. Throws BackendError if the hardware has too little
  /// memory.
  void begin();
  /// One optimizer step of every rank. Returns its duration in virtual nanoseconds.
  std::int64_t step();
  /// An evaluation of every rank, as configured, between two steps. Returns its duration in virtual
  /// nanoseconds.
  std::int64_t evaluate();
  /// Passes on the events played so far, for a run that is followed step by step.
  void hand_over() { playback_.hand_over_certain(); }
  /// Passes on the last events.
  void finish();

  [[nodiscard]] const RunGroups& groups() const noexcept { return groups_; }
  /// Number of engines, which are played for all ranks.
  [[nodiscard]] std::size_t engines() const noexcept { return virtual_ranks_.size(); }
  [[nodiscard]] std::int64_t now_ns() const noexcept { return playback_.now_ns(); }
  /// The operations of `rank` in the last begin(), step() or evaluate().
  [[nodiscard]] const Tape& tape(std::uint32_t rank) const { return *tapes_[rank]; }

 private:
  /// Calls `record` for each engine and plays the tapes for all ranks. Returns the duration.
  std::int64_t play(const std::function<Tape(VirtualRank&)>& record);

  const plan::ModelPlan& model_;
  const config::TrainingConfig& config_;
  const CostModel cost_;
  const RunGroups groups_;
  const engine::Engine::NameKernel name_kernel_;
  EventCapture emitted_;
  std::vector<std::size_t> virtual_rank_of_;  ///< by rank
  std::vector<std::uint32_t> rank_of_;        ///< by virtual rank
  std::vector<std::unique_ptr<VirtualRank>> virtual_ranks_;
  std::vector<std::shared_ptr<const Tape>> tapes_;  ///< by rank, of the piece played last
  Playback playback_;
};

}  // namespace shardscope::simulate
