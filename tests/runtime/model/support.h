// What the tests of the model share: models by file, and one device with an executor on it.
#pragma once

#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/data/stream.h"
#include "runtime/device/device.h"
#include "runtime/model/executor.h"
#include "tests/runtime/model/whole_model_hooks.h"

namespace shardscope::model {

[[nodiscard]] inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + " cannot be opened");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// samples/models/NAME.json; tests run in the project's root.
[[nodiscard]] inline plan::ModelSpec sample_model(const std::string& name) {
  return plan::parse_model_spec(read_text("samples/models/" + name + ".json"));
}

/// A model that trains on one rank.
struct Trainer {
  Trainer(plan::ModelSpec spec, kernels::DType type)
      : plan(plan::build_model_plan(std::move(spec))),
        device(device::make_cpu_device(nullptr)),
        hooks(plan, type),
        executor(plan, *device, type, hooks) {}

  /// Forward and backward of one micro-batch; returns its loss.
  float micro_step(const data::HostBatch& host, std::int64_t iteration, float loss_scale = 1) {
    const Batch batch = batch_of(host);
    float loss = 0;
    hooks.begin_backward();
    executor.forward(batch, iteration, loss_scale, &loss);
    executor.backward();
    device->compute().synchronize();
    return loss;
  }

  /// Valid until the next call.
  Batch batch_of(const data::HostBatch& host) {
    positions.resize(host.tokens.size());
    for (std::size_t i = 0; i < positions.size(); ++i) {
      positions[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(host.T));
    }
    const auto ignored = std::ranges::count_if(host.targets, [](std::int32_t target) { return target < 0; });
    return {host.B,
            host.T,
            host.tokens.data(),
            host.targets.data(),
            host.inputs.data(),
            host.labels.data(),
            positions.data(),
            ignored};
  }

  plan::ModelPlan plan;
  std::unique_ptr<device::Device> device;
  WholeModelHooks hooks;
  std::vector<std::int32_t> positions;
  Executor executor;
};

}  // namespace shardscope::model
