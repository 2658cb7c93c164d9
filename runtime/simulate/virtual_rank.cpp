#include "runtime/simulate/virtual_rank.h"

#include "instrumentation/event_fields.h"
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
      rank_(rank),
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
  const std::int64_t first = micro_step_;
  static_cast<void>(engine_->step([this](data::HostBatch& batch) { next_batch(batch, micro_step_++); },
                                  engine::StopRequest::go_on));
  Tape tape = recorder_.take();
  if (config_.shardscope.micro_batches.shapes.empty()) return tape;
  // In the simulated exchange every rank contributes this rank's value, but token counts differ by rank.
  for (Event& event : tape.events) {
    if (event.kind != instrumentation::EventKind::step_end) continue;
    auto fields = instrumentation::as<instrumentation::EventKind::step_end>(event);
    fields.tokens = tokens_of_all(first);
    Event changed = instrumentation::make<instrumentation::EventKind::step_end>(fields);
    changed.ticks = event.ticks;
    changed.stream = event.stream;
    event = changed;
  }
  return tape;
}

Tape VirtualRank::evaluate(std::int64_t batches) {
  std::int64_t batch_number = 0;
  static_cast<void>(
      engine_->evaluate([&](data::HostBatch& batch) { next_batch(batch, batch_number++); }, batches));
  return recorder_.take();
}

std::int64_t VirtualRank::tokens_of_all(std::int64_t first_micro_step) const {
  std::int64_t sum = 0;
  for (std::int64_t micro = first_micro_step; micro < micro_step_; ++micro) {
    for (std::uint32_t rank = 0; rank < config_.world; ++rank) {
      const plan::MicroBatchShape& shape = config_.shardscope.micro_batches.shape(micro, rank);
      sum += shape.samples * shape.tokens;
    }
  }
  return sum;
}

void VirtualRank::next_batch(data::HostBatch& batch, std::int64_t micro_step) const {
  const plan::ModelSpec& spec = model_.spec;
  const bool tokens = spec.input == plan::InputKind::tokens;
  const plan::MicroBatches& sizes = config_.shardscope.micro_batches;
  const plan::MicroBatchShape shape =
      sizes.shapes.empty() ? plan::MicroBatchShape{config_.batch.micro_batch_size, tokens ? spec.context : 1}
                           : sizes.shape(micro_step, rank_);
  batch.B = shape.samples;
  batch.T = shape.tokens;
  if (tokens) {
    batch.tokens.assign(static_cast<std::size_t>(batch.B * batch.T), 0);
    batch.targets = batch.tokens;
  } else {
    batch.inputs.assign(static_cast<std::size_t>(batch.B * spec.input_width), 0);
    batch.labels.assign(static_cast<std::size_t>(batch.B * spec.output_width), 0);
  }
}

}  // namespace shardscope::simulate
