// Parameter groups in training. Who owns what changes no bit; a group's settings reach its parameters and no
// others.
#include "runtime/plan/param_groups.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/plan/memory_model.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::param_groups_test {
namespace {

/// Three groups of unequal sizes, the smallest first: biases, one matrix, the rest.
Json three_groups() {
  return Json::array(
      {{{"name", "no_decay"}, {"max_dims", 1}, {"weight_decay", 0.0}, {"lr", 2e-3}},
       {{"name", "first"}, {"params", {"inp.weight", "*wte*"}}, {"weight_decay", 0.3}, {"eps", 1e-6}},
       {{"name", "rest"}, {"betas", {0.8, 0.95}}, {"weight_decay", 0.1}}});
}

RunSpec spec_of(const std::string& model, int stage, std::uint32_t world, int accumulation,
                const std::string& type) {
  RunSpec spec;
  spec.model = model_named(model);
  spec.data = model.rfind("gpt", 0) == 0 ? "golden:gpt" : "golden:mlp";
  spec.config = make_config(stage, accumulation, type);
  spec.config["shardscope"]["param_groups"] = three_groups();
  spec.world = world;
  spec.steps = 3;
  return spec;
}

class Groups : public ::testing::TestWithParam<std::uint32_t> {};

// With accumulation in pairs: stages 0 and 1 accumulate before they reduce, 2 and 3 after (docs/zero.md S15).
TEST_P(Groups, StagesAgreeBitwise) {
  for (const std::string model : {"mlp", "gpt_tied"}) {
    for (const auto& [type, accumulation] : {std::pair{"fp32", 1}, {"fp32", 2}, {"bf16", 1}, {"fp16", 2}}) {
      std::vector<TrainingRun> runs;
      for (const int stage : {0, 1, 2, 3})
        runs.push_back(train(spec_of(model, stage, GetParam(), accumulation, type)));
      for (const std::size_t stage : {1U, 2U, 3U}) {
        const std::size_t like = stage == 1 || accumulation == 1 ? 0 : 2;
        EXPECT_EQ(first_difference(runs[like], runs[stage]), "")
            << model << ' ' << type << " stage " << stage;
      }
    }
  }
}

// Everything that changes where a group lies, or how it travels.
TEST_P(Groups, LayoutsAndPlacesAgreeBitwise) {
  const std::string type = "bf16";
  const TrainingRun whole = train(spec_of("mlp", 0, GetParam(), 1, type));
  const auto expect_same = [&](int stage, const char* what, const Json& zero,
                               const Json& ours = Json::object()) {
    RunSpec spec = spec_of("mlp", stage, GetParam(), 1, type);
    spec.config["zero_optimization"].update(zero);
    spec.config["shardscope"].update(ours);
    EXPECT_EQ(first_difference(whole, train(spec)), "") << what << " stage " << stage;
  };
  for (const int stage : {1, 2}) {
    expect_same(stage, "round robin", {{"round_robin_gradients", true}});
    expect_same(stage, "pieces", {{"allgather_bucket_size", 3000}, {"reduce_bucket_size", 4000}});
    expect_same(stage, "no overlap", {{"overlap_comm", false}});
    expect_same(stage, "host", {{"offload_optimizer", {{"device", "cpu"}}}});
    expect_same(stage, "deepspeed", Json::object(), {{"compat", "deepspeed"}});
  }
  for (const std::int64_t limit : {701, 7001, 1'000'000})
    expect_same(1, "legacy", {{"legacy_stage1", true}, {"max_elements_per_comm", limit}});
  expect_same(3, "sub-groups", {{"sub_group_size", 2000}});
  expect_same(3, "host",
              {{"offload_optimizer", {{"device", "cpu"}}}, {"offload_param", {{"device", "cpu"}}}});
  expect_same(3, "split",
              {{"sub_group_size", 2000}, {"offload_optimizer", {{"device", "cpu"}, {"ratio", 0.5}}}});
}

// The first step has the same gradients whatever the settings, so each group's parameters are those of a run
// in which all have its settings.
TEST_P(Groups, EachHasItsSettingsAndNoOther) {
  for (const int stage : {0, 1, 2, 3}) {
    RunSpec spec = spec_of("mlp", stage, GetParam(), 1, "fp32");
    spec.steps = 1;
    const TrainingRun grouped = train(spec);
    plan::ModelPlan model = plan::build_model_plan(spec.model);
    config::ParseOptions parse;
    parse.world = spec.world;
    plan::assign_param_groups(model, config::parse_config(spec.config.dump(), parse).group_rules());
    const Json groups = three_groups();
    for (std::uint32_t group = 0; group < groups.size(); ++group) {
      RunSpec alone = spec;
      alone.config["shardscope"].erase("param_groups");
      for (const char* key : {"lr", "weight_decay", "eps", "betas"}) {
        if (groups[group].contains(key)) alone.config["optimizer"]["params"][key] = groups[group][key];
      }
      const TrainingRun one = train(alone);
      for (const plan::ParamPlan& param : model.params) {
        const auto at = plan::raw(param.id);
        EXPECT_EQ(grouped.weights[at] == one.weights[at], param.group == group)
            << param.name << " group " << group << " stage " << stage;
      }
    }
  }
}

TEST_P(Groups, HoldAndMoveWhatTheirLayoutsSay) {
  for (const std::string type : {"fp32", "bf16"}) {
    for (const int stage : {1, 2}) {
      const RunSpec spec = spec_of("mlp", stage, GetParam(), 2, type);
      plan::ModelPlan model = plan::build_model_plan(spec.model);
      config::ParseOptions parse;
      parse.world = spec.world;
      plan::assign_param_groups(model, config::parse_config(spec.config.dump(), parse).group_rules());
      const plan::FlatLayout layout = plan::make_flat_layout(model, spec.world);
      ASSERT_EQ(layout.intervals.size(), 3U);
      const plan::StateBytes bytes = type == "fp32" ? plan::kFp32 : plan::kMixedPrecision;
      std::vector<std::int64_t> elems;
      for (const plan::ParamPlan& param : model.params) elems.push_back(param.elems);
      const auto expected =
          static_cast<std::size_t>(plan::model_states(elems, static_cast<std::uint32_t>(stage), spec.world,
                                                      bytes, 1, {}, plan::groups_of_params(model))
                                       .total());
      for (const RankRun& rank : train(spec).ranks) {
        ASSERT_EQ(rank.error, "");
        EXPECT_EQ(rank.volume.gathered, layout.flat_elems * spec.steps);
        EXPECT_GE(rank.state_bytes_after, expected);
        EXPECT_LE(rank.state_bytes_after, expected + 8 * device::Arena::kAlignment);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, Groups, ::testing::Values(1U, 2U, 3U, 5U));

TEST(GroupsRates, ASchedulesListGivesEachGroupItsRate) {
  RunSpec spec = spec_of("mlp", 2, 2, 1, "fp32");
  spec.steps = 1;
  // With a rate of 0 a group stays as it was.
  spec.config["scheduler"] = {
      {"type", "WarmupLR"},
      {"params", {{"warmup_min_lr", {0.0, 1e-3, 0.0}}, {"warmup_max_lr", {0.0, 1e-3, 0.0}}}}};
  const TrainingRun moved = train(spec);
  spec.steps = 0;
  const TrainingRun start = train(spec);
  plan::ModelPlan model = plan::build_model_plan(spec.model);
  config::ParseOptions parse;
  parse.world = spec.world;
  plan::assign_param_groups(model, config::parse_config(spec.config.dump(), parse).group_rules());
  for (const plan::ParamPlan& param : model.params) {
    const auto at = plan::raw(param.id);
    EXPECT_EQ(moved.weights[at] == start.weights[at], param.group != 1) << param.name;
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::param_groups_test
