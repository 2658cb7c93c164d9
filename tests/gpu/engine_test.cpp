// Whole training runs on a GPU against the same runs on the CPU: every stage, world and type, offloaded and
// not. Ranks share the GPU, their collectives go through the host and are summed in the CPU's order; what is
// left are the matrix products and exp, which differ in their last bits.
#include "tests/gpu/gpu.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::gpu {
namespace {

using engine::testing::Json;
using engine::testing::make_config;
using engine::testing::RunSpec;

class CudaEngine : public OnGpu {
 protected:
  void compare(RunSpec spec, double relative, const std::string& what) {
    device.reset();
    const auto cpu = engine::testing::train(spec);
    spec.backend = kernels::Backend::cuda;
    const auto cuda = engine::testing::train(spec);
    for (std::uint32_t r = 0; r < spec.world; ++r) {
      ASSERT_EQ(cpu.ranks[r].error, "") << what;
      ASSERT_EQ(cuda.ranks[r].error, "") << what;
      ASSERT_EQ(cpu.ranks[r].steps.size(), cuda.ranks[r].steps.size());
      for (std::size_t s = 0; s < cpu.ranks[r].steps.size(); ++s) {
        const auto& want = cpu.ranks[r].steps[s];
        const auto& got = cuda.ranks[r].steps[s];
        ASSERT_EQ(want.losses.size(), got.losses.size());
        for (std::size_t m = 0; m < want.losses.size(); ++m) {
          EXPECT_NEAR(got.losses[m], want.losses[m], relative * std::fabs(want.losses[m]))
              << what << ", step " << s;
        }
        if (std::isfinite(want.grad_norm)) {
          EXPECT_NEAR(got.grad_norm, want.grad_norm, 10 * relative * want.grad_norm)
              << what << ", step " << s;
        } else {  // the loss scale was too large, as it is at first
          EXPECT_FALSE(std::isfinite(got.grad_norm)) << what << ", step " << s;
        }
        EXPECT_EQ(got.skipped, want.skipped) << what;
      }
      // What moves does not depend on the device.
      EXPECT_EQ(cpu.ranks[r].volume.gathered, cuda.ranks[r].volume.gathered) << what;
      EXPECT_EQ(cpu.ranks[r].volume.reduced, cuda.ranks[r].volume.reduced) << what;
      EXPECT_EQ(cpu.ranks[r].model_state_peak, cuda.ranks[r].model_state_peak) << what;
    }
  }

  RunSpec spec_of(int stage, std::uint32_t world, const std::string& type, const std::string& model) {
    RunSpec spec;
    spec.model = engine::testing::model_named(model);
    spec.config = make_config(stage, 1, type);
    spec.world = world;
    spec.data = model == "mlp" ? "golden:mlp" : "golden:gpt";
    return spec;
  }
};

/// Model and type: a test each, so that one that ends the program or the context leaves the others.
class CudaEngineRuns : public CudaEngine,
                       public ::testing::WithParamInterface<std::tuple<const char*, const char*>> {};

TEST_P(CudaEngineRuns, EveryStageAndWorld) {
  const auto [model, type] = GetParam();
  const double bound = std::string(type) == "fp32" ? 2e-5 : 1e-2;
  for (int stage = 0; stage <= 3; ++stage) {
    for (const std::uint32_t world : {1U, 2U, 3U}) {
      compare(spec_of(stage, world, type, model), bound,
              std::string(model) + " " + type + " stage " + std::to_string(stage) + " world " +
                  std::to_string(world));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CudaEngineRuns,
                         ::testing::Combine(::testing::Values("mlp", "gpt-mini"),
                                            ::testing::Values("fp32", "bf16", "fp16")),
                         [](const auto& test) {
                           const std::string model = std::get<0>(test.param);
                           return (model == "mlp" ? "mlp_" : "gpt_") + std::string(std::get<1>(test.param));
                         });

TEST_F(CudaEngine, Offloaded) {
  for (int stage = 1; stage <= 3; ++stage) {
    RunSpec spec = spec_of(stage, 2, "fp32", "mlp");
    spec.config["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}, {"pin_memory", true}};
    if (stage == 3)
      spec.config["zero_optimization"]["offload_param"] = {{"device", "cpu"}, {"pin_memory", true}};
    compare(spec, 2e-5, "offloaded, stage " + std::to_string(stage));
  }
}

TEST_F(CudaEngine, Quantized) {
  RunSpec spec = spec_of(3, 2, "fp32", "mlp");
  spec.config["zero_optimization"]["zero_quantized_weights"] = true;
  compare(spec, 1e-3, "qwZ");
}

}  // namespace
}  // namespace shardscope::gpu
