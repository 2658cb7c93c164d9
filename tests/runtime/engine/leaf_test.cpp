// Leaf modules on the engine: parameters fetched at once, gradients reduced at the module's end.
#include <gtest/gtest.h>

#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::leaf_test {
namespace {

RunSpec spec_of(const std::string& model, std::uint32_t world, const Json& zero, int accumulation = 1) {
  RunSpec spec;
  spec.model = model_named(model);
  spec.data = model.rfind("gpt", 0) == 0 ? "golden:gpt" : "golden:mlp";
  spec.config = make_config(3, accumulation);
  spec.config["zero_optimization"].update(zero);
  spec.world = world;
  spec.steps = 3;
  return spec;
}

RunSpec stage0(RunSpec spec) {
  spec.config["zero_optimization"] = {{"stage", 0}};
  return spec;
}

// What is fetched and reduced together changes no bit.
TEST(LeafModules, AgreeWithStage0Bitwise) {
  const Json by_name{{"leaf_module", {{"names", {"blk.1"}}, {"name_suffixes", {"0.fc2"}}}}};
  const Json by_size{{"stage3_module_granularity_threshold", 20'000}};
  for (const std::string model : {"mlp", "mlp_reuse", "mlp_visit"}) {
    for (const Json& zero : {by_name, by_size}) {
      const RunSpec spec = spec_of(model, 3, zero);
      EXPECT_EQ(first_difference(train(stage0(spec)), train(spec)), "") << model << zero;
    }
  }
  for (const std::string model : {"gpt", "gpt_tied", "gpt_functional"}) {
    const RunSpec spec = spec_of(model, 2, by_size);
    EXPECT_EQ(first_difference(train(stage0(spec)), train(spec)), "") << model;
  }
}

TEST(LeafModules, FetchAndReduceTogether) {
  // Without prefetch every module with parameters is a gather in forward and one in backward.
  const Json each{{"stage3_prefetch_bucket_size", 0}};
  Json leaf = each;
  leaf["leaf_module"] = {{"name_suffixes", {"blk.0", "blk.1", "blk.2"}}};
  RunSpec spec = spec_of("mlp", 2, each);
  const Volume apart = train(spec).ranks[0].volume;
  spec = spec_of("mlp", 2, leaf);
  const Volume together = train(spec).ranks[0].volume;
  EXPECT_EQ(together.gathered, apart.gathered);
  EXPECT_EQ(together.reduced, apart.reduced);
  // Three blocks of three modules with parameters: two gathers fewer for each in forward and in backward.
  EXPECT_EQ(together.calls, apart.calls - spec.steps * 3 * 2 * 2);
}

/// A block whose second half is skipped in some iterations, as a router would.
plan::ModelSpec routed() {
  return plan::parse_model_spec(R"({
    "name": "routed", "input": {"kind": "vectors", "width": 10}, "loss": {"kind": "mse", "width": 1},
    "root": {"kind": "sequential", "children": [
      {"kind": "linear", "name": "in", "in": 10, "out": 8},
      {"kind": "sequential", "name": "experts", "type": "Experts", "children": [
        {"kind": "linear", "name": "a", "in": 8, "out": 8},
        {"kind": "conditional", "skip_iterations": [1, 4],
         "children": [{"kind": "linear", "name": "b", "in": 8, "out": 8}]}]},
      {"kind": "linear", "name": "out", "in": 8, "out": 1}]}})");
}

// A gradient that did not come is reduced as zero: the same traffic in every iteration, whatever ran inside.
TEST(LeafModules, MissingGradientsGoAsZero) {
  for (const int accumulation : {1, 2}) {
    RunSpec spec = spec_of("mlp", 3, {{"stage3_prefetch_bucket_size", 0}}, accumulation);
    spec.model = routed();
    const TrainingRun reference = train(stage0(spec));
    const TrainingRun plain = train(spec);
    spec.config["zero_optimization"]["leaf_module"] = {{"classes", {"Experts"}}};
    const TrainingRun leaf = train(spec);
    if (accumulation == 1) {
      EXPECT_EQ(first_difference(reference, leaf), "");
    }
    EXPECT_EQ(first_difference(plain, leaf), "");
    const plan::ModelPlan model = plan::build_model_plan(spec.model);
    std::int64_t padded = 0;
    for (const plan::ParamPlan& param : model.params) {
      padded += 3 * plan::partition_param(param.elems, 3).shard_elems;
    }
    EXPECT_EQ(leaf.ranks[0].volume.reduced, padded * accumulation * spec.steps);
    EXPECT_LT(plain.ranks[0].volume.reduced, leaf.ranks[0].volume.reduced);
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::leaf_test
