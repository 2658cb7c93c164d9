// Which modules become leaves, and whose gradients wait for them.
#include "runtime/plan/leaf_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> leaves(const ModelSpec& spec, const ZeroConfig& zero) {
  std::vector<std::string> paths;
  for (const ModulePlan& module : build_model_plan(mark_leaf_modules(spec, zero)).modules) {
    if (module.leaf) paths.push_back(module.path);
  }
  return paths;
}

ZeroConfig stage3() {
  ZeroConfig zero;
  zero.stage = 3;
  return zero;
}

std::string error_of(const ModelSpec& spec, const ZeroConfig& zero) {
  try {
    (void)mark_leaf_modules(spec, zero);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(LeafModules, AreFoundByTypePathAndEnding) {
  const ModelSpec mlp = named_model("mlp");
  ZeroConfig zero = stage3();
  EXPECT_THAT(leaves(mlp, zero), IsEmpty());
  zero.leaf_module.classes = {"my.package.LayerNorm"};
  EXPECT_THAT(leaves(mlp, zero), ElementsAre("blk.0.ln", "blk.1.ln", "blk.2.ln"));
  zero.leaf_module = {};
  zero.leaf_module.names = {"blk.1"};
  zero.leaf_module.name_suffixes = {"2"};
  EXPECT_THAT(leaves(mlp, zero), ElementsAre("blk.0.fc2", "blk.1", "blk.2"));  // none inside a leaf
  zero.stage = 2;
  EXPECT_THAT(leaves(mlp, zero), IsEmpty());
}

TEST(LeafModules, WhatMatchesNothingIsAnError) {
  const ModelSpec mlp = named_model("mlp");
  ZeroConfig zero = stage3();
  zero.leaf_module.classes = {"Expert"};
  EXPECT_THAT(error_of(mlp, zero), HasSubstr("leaf_module.classes: \"Expert\" matches no module of mlp"));
  zero.leaf_module = {};
  zero.leaf_module.names = {"blk.7"};
  EXPECT_THAT(error_of(mlp, zero), HasSubstr("leaf_module.names: \"blk.7\""));
  zero.leaf_module = {};
  zero.leaf_module.name_suffixes = {"mlp"};
  EXPECT_THAT(error_of(mlp, zero), HasSubstr("name_suffixes"));
  zero.leaf_module = {};
  zero.leaf_module.names = {"blk"};
  EXPECT_THAT(error_of(mlp, zero), HasSubstr("is a list"));
  // DeepSpeed's defaults are in many files and match most models nowhere.
  zero.leaf_module = {};
  zero.leaf_module.classes = {"transformers.models.mixtral.modeling_mixtral.MixtralSparseMoeBlock"};
  EXPECT_EQ(error_of(mlp, zero), "no error");
}

// A block of the MLP: 128 + 16640 + 16448 = 33216 elements over LayerNorm, two Linear and itself: 8304. The
// root: 100417 over 3 * 4 blocks, two Linear and itself: 100417 / 15 = 6694.
TEST(LeafModules, GranularityGoesFromTheRootDown) {
  const ModelSpec mlp = named_model("mlp");
  ZeroConfig zero = stage3();
  zero.module_granularity_threshold = 6000;
  EXPECT_THAT(error_of(mlp, zero), HasSubstr("granularity of 6694"));
  zero.module_granularity_threshold = 6694;
  EXPECT_THAT(leaves(mlp, zero), ElementsAre(""));
  // A root that is a plain Sequential is a container, its blocks are not.
  ModelSpec contained = mlp;
  contained.root.type = "Sequential";
  EXPECT_THAT(error_of(contained, zero), HasSubstr("granularity of 8304"));
  zero.module_granularity_threshold = 8304;
  EXPECT_THAT(leaves(contained, zero), ElementsAre("blk.0", "blk.1", "blk.2"));
}

TEST(LeafModules, SharedGradientsDoNotWait) {
  ModelSpec spec;
  spec.name = "shared";
  spec.input = InputKind::vectors;
  spec.loss = LossKind::mse;
  spec.input_width = spec.output_width = 4;
  const auto linear = [](const char* name, const char* weight_of) {
    NodeSpec node;
    node.kind = NodeKind::linear;
    node.name = name;
    node.in = node.out = 4;
    node.weight_of = weight_of;
    return node;
  };
  NodeSpec block;
  block.name = "block";
  block.leaf = true;
  block.children = {linear("a", ""), linear("b", "")};
  spec.root.children = {block, linear("c", "block.a.weight")};
  const ModelPlan model = build_model_plan(spec);
  std::vector<std::string> waiting;
  const auto held = leaf_gradients(model);
  for (const ParamId id : held[1]) waiting.push_back(model.params[raw(id)].name);
  EXPECT_THAT(waiting, ElementsAre("block.a.bias", "block.b.weight", "block.b.bias"));
}

}  // namespace
}  // namespace shardscope::plan
