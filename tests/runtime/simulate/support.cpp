#include "tests/runtime/simulate/support.h"

#include "instrumentation/emitter.h"
#include "runtime/plan/leaf_modules.h"

namespace shardscope::simulate::testing {

Hardware round_hardware() {
  Hardware h;
  h.name = "round";
  h.ranks_per_node = 8;
  h.f32_tflops = h.f16_tflops = 1;
  h.memory_gb_per_s = 1;
  h.inside = h.between = h.host = h.nvme = {1, 1};
  h.host_memory_gb_per_s = 1;
  return h;
}

SimulationOptions on_round_hardware() {
  SimulationOptions options;
  options.hardware = round_hardware();
  return options;
}

Play::Play(const plan::ModelSpec& model, const Json& config, std::uint32_t world, SimulationOptions options) {
  config::ParseOptions parse;
  parse.world = world;
  config_ = config::parse_config(config.dump(), parse);
  model_ = plan::build_model_plan(plan::mark_leaf_modules(model, config_.zero));
  events.resize(world);
  simulation_ = std::make_unique<Simulation>(
      model_, config_, options,
      [this](const std::string& name) {
        for (std::uint32_t id = 0; id < kernel_names.size(); ++id) {
          if (kernel_names[id] == name) return id;
        }
        kernel_names.push_back(name);
        return static_cast<std::uint32_t>(kernel_names.size() - 1);
      },
      [this](std::uint32_t rank, const std::vector<Event>& some) {
        events[rank].insert(events[rank].end(), some.begin(), some.end());
      });
}

void Play::run(std::int64_t steps) {
  simulation_->begin();
  for (std::int64_t step = 0; step < steps; ++step) step_ns.push_back(simulation_->step());
  simulation_->finish();
}

DetailGuard::DetailGuard(instrumentation::Detail detail) {
  instrumentation::g_detail.store(static_cast<int>(detail));
}
DetailGuard::~DetailGuard() { instrumentation::g_detail.store(-1); }

}  // namespace shardscope::simulate::testing
