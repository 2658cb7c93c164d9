// A recomputation that leaves out the last product of its block changes no gradient: over models whose blocks
// end in a linear layer, in one that borrows its weight, in another visit, and lie within one another.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tests/runtime/model/support.h"

namespace shardscope::model {
namespace {

enum class Marked { blocks, every_group, every_node };

void mark(plan::NodeSpec& node, Marked which, bool below_a_list = false) {
  const bool group = node.kind == plan::NodeKind::sequential || node.kind == plan::NodeKind::residual;
  const bool module = group || node.kind == plan::NodeKind::linear || node.kind == plan::NodeKind::layer_norm;
  node.checkpoint = which == Marked::every_node    ? module
                    : which == Marked::every_group ? group && below_a_list
                                                   : below_a_list && node.kind == plan::NodeKind::sequential;
  const bool list = node.kind == plan::NodeKind::list;
  for (plan::NodeSpec& child : node.children)
    mark(child, which, list || (which != Marked::blocks && below_a_list));
}

/// Loss, then the gradient of every parameter that is trained.
std::vector<std::vector<float>> step_of(plan::ModelSpec spec,
                                        const std::optional<plan::ExecutorFault>& fault) {
  Trainer trainer(std::move(spec), kernels::DType::f32);
  trainer.hooks.initialise(InitScheme::hash, 0);
  if (fault) trainer.executor.inject_fault(*fault);
  const bool tokens = trainer.plan.spec.input == plan::InputKind::tokens;
  data::HostBatch host;
  data::open_stream(trainer.plan.spec, {tokens ? "golden:gpt" : "golden:mlp", 2, 0, 0, 1, 1})->next(host);
  std::vector<std::vector<float>> out{{trainer.micro_step(host, 0)}};
  for (const plan::ParamPlan& param : trainer.plan.params) {
    if (param.trainable) out.push_back(trainer.hooks.gradient(param.id));
  }
  return out;
}

void freeze_linear_layers_at_ends(plan::NodeSpec& node) {
  if (!node.children.empty() && node.children.back().kind == plan::NodeKind::linear &&
      node.kind == plan::NodeKind::residual)
    node.children.back().trainable = false;
  for (plan::NodeSpec& child : node.children) freeze_linear_layers_at_ends(child);
}

TEST(EarlyStop, ChangesNoGradient) {
  for (const char* name :
       {"gpt", "gpt_tied", "gpt_functional", "gpt_tied_reuse", "gpt_visit", "mlp", "mlp_reuse"}) {
    for (const bool frozen : {false, true}) {
      plan::ModelSpec plain = sample_model(name);
      if (frozen) freeze_linear_layers_at_ends(plain.root);
      const auto want = step_of(plain, {});
      for (const Marked which : {Marked::blocks, Marked::every_group, Marked::every_node}) {
        plan::ModelSpec stops = plain;
        mark(stops.root, which);
        stops.checkpoint_early_stop = true;
        EXPECT_EQ(step_of(stops, {}), want)
            << name << " frozen " << frozen << " marked " << static_cast<int>(which);
      }
    }
  }
}

/// A rank that runs two modules in the other order does so in its recomputation too, and its blocks end in
/// another one.
TEST(EarlyStop, OfARankThatSwapsBlocksOrSkipsOne) {
  const plan::ModelPlan known = plan::build_model_plan(sample_model("gpt"));
  const auto block = std::ranges::find(known.modules, std::string("h.0"), &plan::ModulePlan::path);
  ASSERT_NE(block, known.modules.end());
  for (const bool swaps : {false, true}) {
    const plan::ExecutorFault fault{.module = block->id, .swaps = swaps, .first = 0, .end = 1};
    plan::ModelSpec stops = sample_model("gpt");
    mark(stops.root, Marked::blocks);
    stops.checkpoint_early_stop = true;
    EXPECT_EQ(step_of(stops, fault), step_of(sample_model("gpt"), fault)) << "swaps " << swaps;
  }
}

}  // namespace
}  // namespace shardscope::model
