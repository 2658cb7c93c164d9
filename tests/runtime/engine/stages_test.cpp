// Stages 0 to 3 are the same computation: losses and weights agree bitwise in fp32.
#include <gtest/gtest.h>

#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::stages_test {
namespace {

struct Case {
  std::string model, data;
  std::uint32_t world;
};

class StagesAgree : public ::testing::TestWithParam<Case> {};

RunSpec spec_of(const Case& c, Json config, std::int64_t steps = 3) {
  RunSpec spec;
  spec.model = model_named(c.model);
  spec.config = std::move(config);
  spec.world = c.world;
  spec.data = c.data;
  spec.steps = steps;
  return spec;
}

TEST_P(StagesAgree, BitwiseInFp32) {
  const TrainingRun reference = train(spec_of(GetParam(), make_config(0)));
  for (const int stage : {1, 2, 3}) {
    EXPECT_EQ(first_difference(reference, train(spec_of(GetParam(), make_config(stage)))), "")
        << "stage " << stage;
  }
}

// Small buckets and overlap change when collectives run, not what they compute.
TEST_P(StagesAgree, BitwiseWithSmallBucketsAndWithoutOverlap) {
  const TrainingRun reference = train(spec_of(GetParam(), make_config(0)));
  for (const int stage : {0, 1, 2, 3}) {
    for (const bool overlap : {true, false}) {
      Json config = make_config(stage);
      config["zero_optimization"]["reduce_bucket_size"] = 3000;
      config["zero_optimization"]["overlap_comm"] = overlap;
      EXPECT_EQ(first_difference(reference, train(spec_of(GetParam(), config))), "")
          << "stage " << stage << " overlap " << overlap;
    }
  }
}

// Stages 0 and 1 accumulate before they reduce, 2 and 3 reduce before they accumulate (docs/zero.md
// S15), so with accumulation the pairs agree bitwise and each other to rounding.
TEST_P(StagesAgree, InPairsWithAccumulation) {
  const TrainingRun local = train(spec_of(GetParam(), make_config(0, 2)));
  const TrainingRun reduced = train(spec_of(GetParam(), make_config(2, 2)));
  EXPECT_EQ(first_difference(local, train(spec_of(GetParam(), make_config(1, 2)))), "");
  EXPECT_EQ(first_difference(reduced, train(spec_of(GetParam(), make_config(3, 2)))), "");
  for (std::size_t step = 0; step < local.ranks[0].steps.size(); ++step) {
    // 8 roundings of 2^-24 in a sum of 2 * 4 terms; the norm is a smooth function of them.
    EXPECT_NEAR(reduced.ranks[0].steps[step].grad_norm / local.ranks[0].steps[step].grad_norm, 1, 2e-5);
  }
}

// In 16 bits the reduction rounds once in every stage, so the agreement holds there as well.
TEST_P(StagesAgree, BitwiseIn16Bits) {
  for (const std::string type : {"bf16", "fp16"}) {
    const TrainingRun reference = train(spec_of(GetParam(), make_config(0, 1, type)));
    for (const int stage : {1, 2, 3}) {
      EXPECT_EQ(first_difference(reference, train(spec_of(GetParam(), make_config(stage, 1, type)))), "")
          << type << " stage " << stage;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, StagesAgree,
                         ::testing::Values(Case{"mlp", "golden:mlp", 1}, Case{"mlp", "golden:mlp", 2},
                                           Case{"mlp", "golden:mlp", 3}, Case{"mlp", "golden:mlp", 4},
                                           Case{"gpt", "golden:gpt", 1}, Case{"gpt", "golden:gpt", 2},
                                           Case{"gpt_tied", "golden:gpt", 3}, Case{"gpt", "golden:gpt", 4},
                                           Case{"mlp_reuse", "golden:mlp", 3},
                                           Case{"mlp_visit", "golden:mlp", 2},
                                           Case{"mlp_span", "golden:mlp", 3},
                                           Case{"gpt_functional", "golden:gpt", 3}),
                         [](const auto& c) { return c.param.model + "_" + std::to_string(c.param.world); });

const Json kNothing = Json::object();

Json with(int stage, const Json& zero, const Json& root = kNothing) {
  Json config = make_config(stage);
  config.update(root);
  config["zero_optimization"].update(zero);
  return config;
}

/// Elements gathered and collectives called by rank 0.
Volume volume(const Case& c, const Json& config) { return train(spec_of(c, config)).ranks[0].volume; }

// Who owns what, and in how many pieces it travels, changes no bit.
TEST(Settings, LayoutAndPiecesChangeNoBit) {
  for (const Case& c : {Case{"mlp", "golden:mlp", 3}, Case{"gpt", "golden:gpt", 4}}) {
    const TrainingRun reference = train(spec_of(c, make_config(0)));
    const Json round_robin{{"round_robin_gradients", true}, {"reduce_bucket_size", 3000}};
    const Json pieces{{"allgather_bucket_size", 1000}};
    for (const int stage : {1, 2}) {
      EXPECT_EQ(first_difference(reference, train(spec_of(c, with(stage, round_robin)))), "") << stage;
      EXPECT_EQ(first_difference(reference, train(spec_of(c, with(stage, pieces)))), "") << stage;
      const Volume whole = volume(c, make_config(stage)), cut = volume(c, with(stage, pieces));
      EXPECT_EQ(cut.gathered, whole.gathered);
      EXPECT_GT(cut.calls, whole.calls);
      // The compatible behaviour ignores the limit.
      const Json ignore{{"shardscope", {{"compat", {{"ignore_allgather_bucket_size", true}}}}}};
      EXPECT_EQ(volume(c, with(stage, pieces, ignore)).calls, whole.calls);
    }
    const Json sequential{{"stage3_allgather_sequential", true}};
    EXPECT_EQ(first_difference(reference, train(spec_of(c, with(3, sequential)))), "");
    // One parameter per collective, and no prefetch, so nothing is fetched in vain.
    EXPECT_GT(volume(c, with(3, sequential)).calls,
              volume(c, with(3, {{"stage3_prefetch_bucket_size", 1}})).calls);
  }
}

// Scaling before the sum: exact for a power of two, a rounding elsewhere, and the same in every stage.
TEST(Settings, GradientsAreScaledBeforeTheSumWhereAsked) {
  const Json prescale{{"prescale_gradients", true}};
  const Json predivide{{"gradient_predivide_factor", 3.0}};
  const Case two{"mlp", "golden:mlp", 2}, three{"mlp", "golden:mlp", 3};
  EXPECT_EQ(
      first_difference(train(spec_of(two, make_config(2))), train(spec_of(two, with(2, kNothing, prescale)))),
      "");
  const TrainingRun plain = train(spec_of(three, make_config(0)));
  for (const Json& root : {prescale, predivide}) {
    const TrainingRun scaled = train(spec_of(three, with(0, kNothing, root)));
    EXPECT_NE(first_difference(plain, scaled), "") << root;  // the key does something
    for (const int stage : {1, 2, 3}) {
      EXPECT_EQ(first_difference(scaled, train(spec_of(three, with(stage, kNothing, root)))), "")
          << root << stage;
    }
    for (std::size_t step = 0; step < plain.ranks[0].steps.size(); ++step) {
      // A few roundings of 2^-24 per element and a mean over thousands of them.
      EXPECT_NEAR(scaled.ranks[0].steps[step].grad_norm / plain.ranks[0].steps[step].grad_norm, 1, 1e-5);
    }
  }
}

// OneCycle schedules both betas; the same values written as constants give the same weights.
TEST(Settings, ScheduledMomentumReachesAdam) {
  const Case c{"mlp", "golden:mlp", 1};
  const auto cycle = [](bool momentum, double from, double to) {
    return Json{{"scheduler",
                 {{"type", "OneCycle"},
                  {"params",
                   {{"cycle_min_lr", 1e-3},
                    {"cycle_max_lr", 2e-3},
                    {"cycle_first_step_size", 4},
                    {"cycle_momentum", momentum},
                    {"cycle_min_mom", from},
                    {"cycle_max_mom", to}}}}}};
  };
  Json constant = cycle(false, 0.8, 0.9);
  constant["optimizer"] = make_config(0)["optimizer"];
  constant["optimizer"]["params"]["betas"] = {0.7, 0.99};
  const TrainingRun reference = train(spec_of(c, with(0, kNothing, constant)));
  EXPECT_EQ(first_difference(reference, train(spec_of(c, with(0, kNothing, cycle(true, 0.7, 0.7))))), "");
  EXPECT_NE(first_difference(reference, train(spec_of(c, with(0, kNothing, cycle(true, 0.7, 0.9))))), "");
}

TEST(FirstDifference, SeesOneBit) {
  const Case c{"mlp", "golden:mlp", 1};
  const TrainingRun a = train(spec_of(c, make_config(0), 1));
  TrainingRun b = a;
  EXPECT_EQ(first_difference(a, b), "");
  b.weights[3][5] = std::nextafter(b.weights[3][5], 1e9F);
  EXPECT_NE(first_difference(a, b), "");
}

}  // namespace
}  // namespace shardscope::engine::testing::stages_test
