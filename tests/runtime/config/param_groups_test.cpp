// shardscope.param_groups: settings of each group, what they inherit, rates of schedules, and mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/runtime/config/parse_text.h"

namespace shardscope::config {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string with_groups(const std::string& groups, const std::string& more = "") {
  return R"({"train_batch_size": 8,
             "optimizer": {"type": "AdamW", "params": {"lr": 0.01, "weight_decay": 0.1, "betas": [0.8, 0.9]}},
             "shardscope": {"param_groups": )" +
         groups + "}" + more + "}";
}

constexpr const char* kTwo = R"([{"name": "no_decay", "params": ["*.bias", "ln*"], "max_dims": 1,
                                  "weight_decay": 0, "lr": 0.02, "betas": [0.7, 0.99], "eps": 1e-6}, {}])";

TEST(ParamGroups, HaveTheirOwnSettingsAndInheritTheOthers) {
  const TrainingConfig config = parse(with_groups(kTwo));
  ASSERT_EQ(config.param_groups.size(), 2U);
  const ParamGroup& first = config.param_groups[0];
  EXPECT_EQ(first.rule.name, "no_decay");
  EXPECT_THAT(first.rule.params, ElementsAre("*.bias", "ln*"));
  EXPECT_EQ(first.rule.max_dims, 1);
  EXPECT_EQ(first.optimizer.weight_decay, 0);
  EXPECT_EQ(first.optimizer.eps, 1e-6);
  EXPECT_EQ(config.learning_rate(3), 0.02);
  EXPECT_EQ(config.betas(3).beta1, 0.7);
  EXPECT_EQ(config.param_groups[1].rule.name, "group 1");
  EXPECT_EQ(config.param_groups[1].optimizer.weight_decay, 0.1);
  EXPECT_EQ(config.learning_rate(3, 1), 0.01);
  EXPECT_EQ(config.betas(3, 1).beta2, 0.9);
  EXPECT_EQ(config.group_rules().size(), 2U);
}

TEST(ParamGroups, WithoutTheKeyThereIsOneOfEverything) {
  const TrainingConfig config =
      parse(R"({"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 0.5}}})");
  EXPECT_EQ(config.param_groups.size(), 1U);
  EXPECT_TRUE(config.group_rules().empty());
  EXPECT_EQ(config.learning_rate(0), 0.5);
}

TEST(ParamGroups, ReadBackToTheSame) {
  const std::string schedule =
      R"(, "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": [0.5, 0.25], "warmup_num_steps": 10}})";
  const TrainingConfig config = parse(with_groups(kTwo, schedule));
  const std::string written = effective_json(config);
  const TrainingConfig again = parse(written);
  EXPECT_EQ(effective_json(again), written);
  EXPECT_EQ(again.param_groups[0].rule.params, config.param_groups[0].rule.params);
  EXPECT_EQ(again.learning_rate(100, 1), 0.25);
}

// DeepSpeed's schedules: a number is for all groups, a list has one for each; WarmupLR without warmup_max_lr
// goes to each group's own rate, WarmupCosineLR scales it.
TEST(ParamGroups, SchedulesMoveTheRateOfEach) {
  const auto rates = [](const std::string& scheduler, std::int64_t step) {
    const TrainingConfig config = parse(with_groups(kTwo, R"(, "scheduler": )" + scheduler));
    return std::pair(config.learning_rate(step, 0), config.learning_rate(step, 1));
  };
  EXPECT_EQ(rates(R"({"type": "WarmupLR", "params": {"warmup_num_steps": 10}})", 100), std::pair(0.02, 0.01));
  EXPECT_EQ(rates(R"({"type": "WarmupLR", "params": {"warmup_max_lr": 0.5, "warmup_num_steps": 10}})", 100),
            std::pair(0.5, 0.5));
  EXPECT_EQ(rates(R"({"type": "LRRangeTest", "params": {"lr_range_test_min_lr": [0.1, 0.2]}})", 0),
            std::pair(0.1, 0.2));
  const auto cosine =
      rates(R"({"type": "WarmupCosineLR", "params": {"total_num_steps": 400, "warmup_num_steps": 10}})", 50);
  EXPECT_DOUBLE_EQ(cosine.first, 2 * cosine.second);
  const TrainingConfig cycle = parse(with_groups(
      kTwo, R"(, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": [0.1, 0.2], "cycle_max_lr": 0.5,
              "cycle_min_mom": [0.8, 0.85]}})"));
  EXPECT_EQ(cycle.betas(0, 0).beta1, 0.8);
  EXPECT_EQ(cycle.betas(0, 1).beta1, 0.85);
}

TEST(ParamGroups, ARateThatAScheduleReplacesIsWarnedOf) {
  const auto warnings = [](const std::string& scheduler) {
    return parse(with_groups(kTwo, R"(, "scheduler": )" + scheduler)).warnings;
  };
  EXPECT_THAT(
      warnings(R"({"type": "WarmupLR", "params": {"warmup_max_lr": 0.5}})"),
      ElementsAre(HasSubstr("shardscope.param_groups[0].lr: without effect: WarmupLR sets the rate")));
  EXPECT_THAT(warnings(R"({"type": "WarmupLR"})"), ElementsAre());
  EXPECT_THAT(warnings(R"({"type": "WarmupCosineLR", "params": {"total_num_steps": 400}})"), ElementsAre());
}

TEST(ParamGroups, MistakesAreNamed) {
  const auto error = [](const std::string& groups, const std::string& more = "") {
    return error_of(with_groups(groups, more));
  };
  EXPECT_THAT(error("3"), HasSubstr("shardscope.param_groups: is 3, but must be a list of objects"));
  EXPECT_THAT(error("[]"), HasSubstr("shardscope.param_groups: has 0 groups"));
  EXPECT_THAT(error("[7]"), HasSubstr("shardscope.param_groups[0]: is 7, but must be an object"));
  EXPECT_THAT(error(R"([{"weight_decy": 0}])"), HasSubstr("weight_decay"));
  EXPECT_THAT(error(R"([{"params": []}])"), HasSubstr("shardscope.param_groups[0].params: is empty"));
  EXPECT_THAT(error(R"([{"betas": [0.9, 1]}])"), HasSubstr("shardscope.param_groups[0].betas"));
  EXPECT_THAT(error(R"([{"lr": -1}])"), HasSubstr("shardscope.param_groups[0].lr"));
  EXPECT_THAT(error(R"([{"name": "a"}, {"name": "a"}])"), HasSubstr("is the name of a group before it"));
  const auto schedule = [](const std::string& value) {
    return R"(, "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": )" + value + "}}";
  };
  EXPECT_THAT(error(kTwo, schedule("[0.1]")), HasSubstr("has 1 values, but the parameters are in 2 groups"));
  EXPECT_THAT(error(kTwo, schedule(R"([0.1, "x"])")), HasSubstr("value 1 is \"x\""));
  EXPECT_THAT(error(kTwo, R"(, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"},
                                "zenflow": {"topk_ratio": 0.1}})"),
              HasSubstr("ZenFlow updates all parameters as one group"));
}

}  // namespace
}  // namespace shardscope::config
