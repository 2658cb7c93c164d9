#include "tests/runtime/simulate/real_events.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>

#include "instrumentation/emitter.h"
#include "runtime/plan/activation_checkpointing.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::simulate::testing {

using engine::testing::RunSpec;

plan::ModelSpec model_of(const RealCase& c) {
  plan::ModelSpec spec = engine::testing::model_named(c.model);
  const Json ours = c.config.value("shardscope", Json::object());
  if (ours.value("activation_checkpointing", false)) {
    EXPECT_GT(plan::checkpoint_blocks(spec), 0U);
  }
  spec.checkpoint_early_stop = ours.value("checkpoint_early_stop", false);
  return spec;
}

std::vector<Queues> real_run(const RealCase& c, std::int64_t steps) {
  std::mutex mutex;
  std::vector<std::map<StreamId, std::unique_ptr<instrumentation::Ring>>> rings(c.world);
  const auto ring_of = [&](std::uint32_t rank, StreamId queue) {
    const std::lock_guard lock(mutex);
    auto& ring = rings[rank][queue];
    if (!ring) ring = std::make_unique<instrumentation::Ring>(1U << 17);
    return ring.get();
  };
  const auto capture = [&](device::Device& device,
                           const std::function<instrumentation::Ring*(StreamId)>& to) {
    device.synchronize();
    for (device::Stream* stream : device.started_streams()) {
      stream->run(
          [ring = to(stream->id())](const kernels::Exec&) { instrumentation::detail::t_ring = ring; });
    }
    device.synchronize();
    instrumentation::detail::t_ring = to(StreamId::host);
  };
  RunSpec spec;
  spec.model = model_of(c);
  spec.config = c.config;
  spec.world = c.world;
  spec.data = c.model.rfind("gpt", 0) == 0 ? "golden:gpt" : "golden:mlp";
  spec.steps = steps;
  spec.begin = [&](const execution::Context& context, engine::Engine& engine, data::BatchStream&) {
    engine.name_kernels(
        [names = std::make_shared<std::map<std::string, std::uint32_t>>()](const std::string& name) {
          return names->try_emplace(name, static_cast<std::uint32_t>(names->size())).first->second;
        });
    capture(context.device, [&](StreamId queue) { return ring_of(context.rank(), queue); });
  };
  spec.end = [&](const execution::Context& context, engine::Engine&, data::BatchStream&) {
    capture(context.device, [](StreamId) { return nullptr; });
  };
  const engine::testing::TrainingRun run = engine::testing::train(spec);
  std::vector<Queues> queues(c.world);
  for (std::uint32_t rank = 0; rank < c.world; ++rank) {
    EXPECT_EQ(run.ranks[rank].error, "") << "rank " << rank;
    for (auto& [queue, ring] : rings[rank]) {
      std::vector<Event>& events = queues[rank][static_cast<std::size_t>(queue)];
      static_cast<void>(ring->drain(events));
      EXPECT_EQ(ring->dropped(), 0U);
    }
  }
  return queues;
}

}  // namespace shardscope::simulate::testing
