// The kernels that a step queues, by name: what is read or written once more costs a GPU the time for it, and
// no result tells.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "runtime/plan/activation_checkpointing.h"
#include "tests/runtime/engine/support.h"
#include "tests/runtime/simulate/support.h"

namespace shardscope::simulate::testing {
namespace {

using engine::testing::make_config;
using engine::testing::model_named;

/// By name, of all steps of rank 0.
std::map<std::string, int> kernels_of(const plan::ModelSpec& model, const Json& config) {
  const DetailGuard detail(instrumentation::Detail::kernels);
  SimulationOptions options;
  options.hardware = round_hardware();
  Play play(model, config, 1, options);
  play.run(1);
  std::map<std::string, int> found;
  for (const Event& e : play.events[0]) {
    if (e.kind == instrumentation::EventKind::kernel_begin) ++found[play.kernel_names.at(e.a)];
  }
  return found;
}

TEST(KernelsOfAStep, AGptHasNoneForResidualSumsNorForGelu) {
  const int layers = 4;  // gpt-mini
  const std::map<std::string, int> want = {{"embedding_forward", 2},
                                           {"layer_norm_forward", 2 * layers + 1},
                                           {"linear_forward", 3 * layers + 1},
                                           {"linear_gelu_forward", layers},
                                           {"attention_forward", layers},
                                           {"cross_entropy", 1},
                                           {"linear_backward_weight", 4 * layers + 1},
                                           {"linear_backward_input", 3 * layers + 1},
                                           {"linear_gelu_backward_input", layers},
                                           {"layer_norm_backward", 2 * layers + 1},
                                           {"attention_backward", layers},
                                           {"embedding_backward", 2}};
  for (const int stage : {0, 1, 2, 3}) {
    EXPECT_EQ(kernels_of(model_named("gpt-mini"), make_config(stage, 1, "bf16")), want) << "stage " << stage;
  }
}

/// A recomputation that stops early leaves out the last product of each block, and nothing else.
TEST(KernelsOfAStep, ARecomputationThatStopsEarlyLeavesOutOneProductOfEachBlock) {
  const int layers = 4;
  plan::ModelSpec model = model_named("gpt-mini");
  ASSERT_EQ(plan::checkpoint_blocks(model), layers);
  std::map<std::string, int> want = kernels_of(model, make_config(3, 1, "bf16"));
  // A block's first forward keeps nothing, so it has a GELU of its own behind a product.
  EXPECT_EQ(want["linear_forward"], (4 + 3) * layers + 1);
  want["linear_forward"] -= layers;
  model.checkpoint_early_stop = true;
  EXPECT_EQ(kernels_of(model, make_config(3, 1, "bf16")), want);
}

}  // namespace
}  // namespace shardscope::simulate::testing
