#include "runtime/simulate/simulation.h"

#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/plan/ownership.h"

namespace shardscope::simulate {
namespace {

plan::Topology topology_of(const config::TrainingConfig& config, const Hardware& hardware) {
  plan::Topology topology{config.world, std::min(config.world, hardware.ranks_per_node)};
  if (config.zero.ranks_per_node > 0) {
    topology.ranks_per_node = static_cast<std::uint32_t>(config.zero.ranks_per_node);
  }
  if (topology.world % topology.ranks_per_node != 0) {
    throw std::invalid_argument("simulate: " + std::to_string(topology.world) +
                                " ranks do not fill nodes of " + std::to_string(topology.ranks_per_node) +
                                "; give a multiple of it, or other hardware");
  }
  return topology;
}

void validate(const config::TrainingConfig& config, const Hardware& hardware) {
  using plan::OffloadDevice;
  if (!config.shardscope.data_parallel_groups.empty()) {
    throw std::invalid_argument(
        "shardscope.data_parallel_groups: a simulation has one copy of the model, and all copies do the "
        "same; "
        "simulate the ranks of one, without the key");
  }
  if (config.zero.zenflow && config.zero.zenflow->update_interval == plan::ZenFlowConfig::kAuto) {
    throw std::invalid_argument(
        "zero_optimization.zenflow.update_interval \"auto\": gradient values vote when the sum goes to the "
        "CPU, "
        "and a simulation has none; give a number of steps");
  }
  const bool nvme = config.zero.offload_param.device == OffloadDevice::nvme ||
                    config.zero.offload_optimizer.device == OffloadDevice::nvme;
  if (nvme && hardware.nvme.gb_per_s <= 0) {
    throw std::invalid_argument("zero_optimization.offload_*.device \"nvme\": hardware " + hardware.name +
                                " has no disks; give its \"nvme\" rate (docs/simulate.md) or use \"cpu\"");
  }
}

}  // namespace

Simulation::Simulation(const plan::ModelPlan& model, const config::TrainingConfig& config,
                       const SimulationOptions& options, engine::Engine::NameKernel name_kernel,
                       Playback::Take take)
    : model_(model),
      config_(config),
      cost_(options.hardware),
      groups_(config.zero, topology_of(config, options.hardware)),
      name_kernel_(std::move(name_kernel)),
      playback_(groups_, options.variation, options.hardware.overlap_slowdown, options.origin_ns,
                std::move(take)) {
  validate(config, options.hardware);
  const plan::Ownership ownership(
      model, config.zero, config.world,
      plan::kShardAlignmentBytes / static_cast<std::int64_t>(kernels::size_of(config.storage_type())));
  std::vector<std::uint32_t> like = representatives(model, config.zero, ownership, groups_);
  if (const std::size_t turns = config.shardscope.micro_batches.shapes.size(); turns > 0) {
    std::map<std::pair<std::uint32_t, std::size_t>, std::uint32_t>
        first;  // of those alike whose turn is, too
    for (std::uint32_t rank = 0; rank < like.size(); ++rank) {
      like[rank] = first.try_emplace({like[rank], rank % turns}, rank).first->second;
    }
  }
  if (options.engines == SimulationOptions::Engines::one_each) {
    for (std::uint32_t rank = 0; rank < like.size(); ++rank) like[rank] = rank;
  }
  std::map<std::uint32_t, std::size_t> index;
  for (const std::uint32_t representative : like) {
    const auto [it, added] = index.try_emplace(representative, rank_of_.size());
    if (added) rank_of_.push_back(representative);
    virtual_rank_of_.push_back(it->second);
  }
  tapes_.resize(config.world);
}

Simulation::~Simulation() = default;

void Simulation::begin() {
  for (const std::uint32_t rank : rank_of_) {
    virtual_ranks_.push_back(
        std::make_unique<VirtualRank>(model_, config_, cost_, groups_, rank, emitted_, name_kernel_));
    // Before the next one emits: this one's events are still in the ring.
    auto tape = std::make_shared<const Tape>(virtual_ranks_.back()->begin());
    for (std::size_t r = 0; r < tapes_.size(); ++r) {
      if (virtual_rank_of_[r] + 1 == virtual_ranks_.size()) tapes_[r] = tape;
    }
  }
  playback_.play(tapes_);
}

std::int64_t Simulation::step() {
  return play([](VirtualRank& rank) { return rank.step(); });
}

std::int64_t Simulation::evaluate() {
  return play([this](VirtualRank& rank) { return rank.evaluate(config_.shardscope.eval_batches); });
}

std::int64_t Simulation::play(const std::function<Tape(VirtualRank&)>& record) {
  const std::int64_t before = playback_.now_ns();
  std::vector<std::shared_ptr<const Tape>> made;
  made.reserve(virtual_ranks_.size());
  for (const auto& virtual_rank : virtual_ranks_)
    made.push_back(std::make_shared<const Tape>(record(*virtual_rank)));
  for (std::size_t r = 0; r < tapes_.size(); ++r) tapes_[r] = made[virtual_rank_of_[r]];
  playback_.play(tapes_);
  return playback_.now_ns() - before;
}

void Simulation::finish() { playback_.finish(); }

}  // namespace shardscope::simulate
