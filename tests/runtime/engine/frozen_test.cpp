// Frozen parameters: stages, worlds and types compute the same with them, they never change, and what learns
// gets the gradients it would get if everything learned.
#include <gtest/gtest.h>

#include "tests/runtime/engine/frozen_model.h"

namespace shardscope::engine::testing::frozen_test {
namespace {

struct Case {
  std::string model, data;
  std::uint32_t world;
};

RunSpec spec_of(const Case& c, Freeze freeze, Json config, std::int64_t steps = 2) {
  RunSpec spec;
  spec.model = frozen_model(c.model, freeze);
  spec.config = std::move(config);
  spec.world = c.world;
  spec.data = c.data;
  spec.steps = steps;
  return spec;
}

class FrozenStages : public ::testing::TestWithParam<Case> {};

TEST_P(FrozenStages, AgreeBitwiseAndLeaveFrozenWeightsAlone) {
  for (const Freeze freeze : kFreezings) {
    const plan::ModelPlan model = plan::build_model_plan(frozen_model(GetParam().model, freeze));
    for (const std::string type : {"fp32", "bf16"}) {
      const RunSpec whole = spec_of(GetParam(), freeze, make_config(0, 1, type));
      const TrainingRun before = untrained(whole);
      const TrainingRun reference = train(whole);
      EXPECT_EQ(wrongly_trained(model, before, reference), "") << name_of(freeze) << " " << type;
      for (const int stage : {1, 2, 3}) {
        const TrainingRun run = train(spec_of(GetParam(), freeze, make_config(stage, 1, type)));
        EXPECT_EQ(first_difference(reference, run), "")
            << name_of(freeze) << " " << type << " stage " << stage;
        for (const RankRun& rank : run.ranks) EXPECT_EQ(rank.used_after, 0U);
      }
    }
  }
}

TEST_P(FrozenStages, AgreeInPairsWithAccumulation) {
  for (const Freeze freeze : {Freeze::bottom, Freeze::adapters}) {
    for (const auto& [a, b] : {std::pair{0, 1}, std::pair{2, 3}}) {
      const TrainingRun first = train(spec_of(GetParam(), freeze, make_config(a, 3)));
      EXPECT_EQ(first_difference(first, train(spec_of(GetParam(), freeze, make_config(b, 3)))), "")
          << name_of(freeze) << " stages " << a << " and " << b;
    }
  }
}

// Without clipping an AdamW step depends on nothing but the parameter's own gradient.
TEST_P(FrozenStages, LearnAsTheyWouldInAWholeModel) {
  for (const int stage : {0, 3}) {
    Json config = make_config(stage);
    config["gradient_clipping"] = 0;
    RunSpec all = spec_of(GetParam(), Freeze::bottom, config, 1);
    all.model = model_named(GetParam().model);
    const TrainingRun whole = train(all);
    for (const Freeze freeze : kFreezings) {
      const TrainingRun part = train(spec_of(GetParam(), freeze, config, 1));
      EXPECT_EQ(part.ranks[0].steps[0].losses, whole.ranks[0].steps[0].losses);
      for (const plan::ParamPlan& param :
           plan::build_model_plan(frozen_model(GetParam().model, freeze)).params) {
        const bool bias_alone = freeze == Freeze::weights;  // summed by another kernel than with its weight
        if (!param.trainable || bias_alone) continue;
        EXPECT_EQ(part.weights[plan::raw(param.id)], whole.weights[plan::raw(param.id)])
            << name_of(freeze) << " " << param.name << " stage " << stage;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, FrozenStages,
                         ::testing::Values(Case{"mlp", "golden:mlp", 1}, Case{"gpt", "golden:gpt", 2},
                                           Case{"gpt_tied", "golden:gpt", 3}, Case{"mlp", "golden:mlp", 3},
                                           Case{"gpt_functional", "golden:gpt", 2}),
                         [](const auto& at) {
                           return at.param.model + "_" + std::to_string(at.param.world);
                         });

// Ways through stage 1 to 3 that keep parameters, gradients or states elsewhere.
TEST(Frozen, EveryWayOfAStageAgrees) {
  const Case c{"gpt", "golden:gpt", 4};
  struct Way {
    std::string name;
    int stage;
    Json zero;
  };
  const Json cpu = {{"device", "cpu"}, {"pin_memory", true}};
  const Json pageable = {{"device", "cpu"}, {"pin_memory", false}};
  const std::vector<Way> ways = {
      {"first layout of stage 1", 1, {{"legacy_stage1", true}, {"max_elements_per_comm", 4000}}},
      {"round robin", 2, {{"round_robin_gradients", true}}},
      {"optimizer on the host", 2, {{"offload_optimizer", cpu}}},
      {"both on the host", 3, {{"offload_optimizer", cpu}, {"offload_param", pageable}}},
      {"small sub-groups", 3, {{"sub_group_size", 1000}}},
      {"hpZ", 3, {{"zero_hpz_partition_size", 2}}},
      {"persistent", 3, {{"stage3_param_persistence_threshold", 2000}}},
  };
  for (const Freeze freeze : {Freeze::bottom, Freeze::adapters}) {
    const TrainingRun reference = train(spec_of(c, freeze, make_config(0), 3));
    for (const Way& way : ways) {
      Json config = make_config(way.stage);
      config["zero_optimization"].update(way.zero);
      config["shardscope"] = {{"ranks_per_node", 2}};
      EXPECT_EQ(first_difference(reference, train(spec_of(c, freeze, config, 3))), "")
          << name_of(freeze) << ", " << way.name;
    }
  }
}

// MiCS sums in another order.
TEST(Frozen, MicsAgreesToRounding) {
  for (const Freeze freeze : {Freeze::bottom, Freeze::adapters}) {
    const Case c{"gpt", "golden:gpt", 4};
    Json config = make_config(3);
    config["zero_optimization"]["mics_shard_size"] = 2;
    config["shardscope"] = {{"ranks_per_node", 2}};
    const RunSpec spec = spec_of(c, freeze, config, 3);
    const TrainingRun reference = train(spec_of(c, freeze, make_config(0), 3));
    const TrainingRun run = train(spec);
    for (std::uint32_t rank = 0; rank < c.world; ++rank) {
      ASSERT_EQ(run.ranks[rank].error, "");
      for (std::size_t step = 0; step < 3; ++step) {
        const float expected = reference.ranks[rank].steps[step].losses[0];
        EXPECT_NEAR(run.ranks[rank].steps[step].losses[0], expected, 2e-5F * expected);
      }
    }
    EXPECT_EQ(wrongly_trained(plan::build_model_plan(spec.model), untrained(spec), run), "");
  }
}

// No gradient reaches what is frozen, and none is missed.
TEST(Frozen, IsNoUnusedParameter) {
  for (const Freeze freeze : kFreezings) {
    for (const int stage : {0, 2, 3}) {
      Json config = make_config(stage);
      config["zero_optimization"]["ignore_unused_parameters"] = false;
      const TrainingRun run = train(spec_of({"mlp", "golden:mlp", 2}, freeze, config));
      EXPECT_EQ(run.ranks[0].error, "") << name_of(freeze) << " stage " << stage;
    }
  }
}

// Nothing waits in a frozen matrix, which would be a vote in each step: the rest of the two that learn would
// never wait for a vote of theirs.
TEST(Frozen, MatricesHaveNoVoteInZenFlow) {
  Json config = make_config(2);
  config["gradient_clipping"] = 0;
  RunSpec spec = spec_of({"mlp", "golden:mlp", 2}, Freeze::top, config, 5);
  spec.model = model_named("mlp");
  spec.model.root.trainable = false;
  spec.model.root.children.front().trainable_weight = true;
  spec.model.root.children.back().trainable_weight = true;
  const TrainingRun reference = train(spec);
  spec.config["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}, {"pin_memory", true}};
  const auto differs = [&](double auto_ratio) {
    spec.config["zero_optimization"]["zenflow"] = {{"topk_ratio", 0.3},        {"update_interval", "auto"},
                                                   {"auto_ratio", auto_ratio}, {"select_strategy", "step"},
                                                   {"select_interval", 2},     {"full_warm_up_rounds", 1},
                                                   {"overlap_step", false}};
    return first_difference(reference, train(spec));
  };
  EXPECT_EQ(differs(0.4), "") << "int(0.4 x 2) votes: every step is one of the rest too, which is AdamW";
  EXPECT_NE(differs(0.5), "") << "one vote";
}

// An optimizer without all of a run's parameters, and columns chosen among what it has.
TEST(Frozen, ZenFlowWithEveryColumnIsAdamW) {
  for (const Freeze freeze : {Freeze::bottom, Freeze::weights}) {
    const Case c{"mlp", "golden:mlp", 2};
    Json config = make_config(2);
    config["gradient_clipping"] = 0;
    const TrainingRun reference = train(spec_of(c, freeze, config));
    config["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}, {"pin_memory", true}};
    config["zero_optimization"]["zenflow"] = {{"topk_ratio", 1.0},
                                              {"update_interval", 2},
                                              {"select_strategy", "step"},
                                              {"select_interval", 2},
                                              {"overlap_step", false}};
    EXPECT_EQ(first_difference(reference, train(spec_of(c, freeze, config))), "") << name_of(freeze);
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::frozen_test
