#include "runtime/simulate/virtual_rank.h"

#include "runtime/base/emulated_link.h"
#include "runtime/comm/communicator_core.h"
#include "runtime/simulate/virtual_device.h"
#include "runtime/simulate/virtual_transport.h"

namespace shardscope::simulate {

VirtualRank::VirtualRank(const plan::ModelPlan& model, const config::TrainingConfig& config,
                         const CostModel& cost, const RunGroups& groups, std::uint32_t rank,
                         EventCapture& emitted, const engine::Engine::NameKernel& name_kernel)
    : model_(model),
      config_(config),
      cost_(cost),
      recorder_(cost_, emitted),
      device_(make_virtual_device(recorder_)) {
  std::uint16_t next = 0;
  const auto make = [&](const std::string& name, const comm::Group& group) {
    const GroupShape& shape = groups.groups()[groups.of(rank)[next].group].shape;
    return std::make_unique<comm::CommunicatorCore>(
        group, rank, name, make_virtual_transport(recorder_, next++, shape), base::EmulatedLink{}, sequence_);
  };
  const auto of_world = [&](const char* name) {
    return make(name, groups.groups()[groups.of(rank)[next].group].group);
  };
  gather_ = of_world("gather");
  reduce_ = of_world("reduce");
  control_ = of_world("control");
  groups_ = std::make_unique<comm::ZeroCommunicators>(
      config.zero, groups.topology(), rank,
      [&](const std::string& name, const comm::Group& group) { return make(name, group); });
  engine_ = std::make_unique<engine::Engine>(
      execution::Context{model_, config_, *device_, *gather_, *reduce_, *control_, gates_, groups_.get()});
  engine_->name_kernels(name_kernel);
}

VirtualRank::~VirtualRank() = default;

Tape VirtualRank::begin() {
  engine_->set_weights([](plan::ParamId, plan::Range, float*) {});
  return recorder_.take();
}

Tape VirtualRank::step() {
  static_cast<void>(
      engine_->step([this](data::HostBatch& batch) { next_batch(batch); }, engine::StopRequest::go_on));
  return recorder_.take();
}

Tape VirtualRank::evaluate(std::int64_t batches) {
  static_cast<void>(engine_->evaluate([this](data::HostBatch& batch) { next_batch(batch); }, batches));
  return recorder_.take();
}

void VirtualRank::next_batch(data::HostBatch& batch) const {
  const plan::ModelSpec& spec = model_.spec;
  batch.B = config_.batch.micro_batch_size;
  if (spec.input == plan::InputKind::tokens) {
    batch.T = spec.context;
    batch.tokens.assign(static_cast<std::size_t>(batch.B * batch.T), 0);
    batch.targets = batch.tokens;
  } else {
    batch.T = 1;
    batch.inputs.assign(static_cast<std::size_t>(batch.B * spec.input_width), 0);
    batch.labels.assign(static_cast<std::size_t>(batch.B * spec.output_width), 0);
  }
}

}  // namespace shardscope::simulate
