// Which settings can be asked of which framework, and that the others are refused by name with the reason.
#include "app/analysis/attached/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace shardscope::analysis::attached {
namespace {

using testing::AllOf;
using testing::HasSubstr;

instrumentation::RunTables tables_of(const std::string& framework, const std::string& device = "cpu") {
  instrumentation::RunTables tables;
  tables.framework = framework;
  tables.device = device;
  tables.stage = 3;
  return tables;
}

ReplaySettings zero_of_stage(std::uint32_t stage) {
  ReplaySettings settings;
  settings.zero.stage = stage;
  return settings;
}

std::string refusal(const ReplaySettings& zero, const Change& change) {
  try {
    (void)changed_settings(tables_of("DeepSpeed 0.19.8"), zero, {change});
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(AttachedSettings, OfDeepSpeedOnACpuEveryListedKeyCanBeAsked) {
  for (const std::string& key : supported_keys(Framework::deepspeed))
    EXPECT_EQ(why_not_asked(tables_of("DeepSpeed 0.19.8"), key), "") << key;
  EXPECT_THAT(why_not_asked(tables_of("DeepSpeed 0.19.8"), "bf16.enabled"), HasSubstr("another data type"));
  EXPECT_THAT(why_not_asked(tables_of("DeepSpeed 0.19.8"), "train_micro_batch_size_per_gpu"),
              HasSubstr("another micro-batch"));
  EXPECT_THAT(why_not_asked(tables_of("DeepSpeed 0.19.8"), "zero_optimization.offload_optimizer.device"),
              HasSubstr("device and host"));
}

TEST(AttachedSettings, OtherFrameworksAreRefusedWithTheirReason) {
  const std::string stage = "zero_optimization.stage";
  EXPECT_THAT(why_not_asked(tables_of("FSDP2, PyTorch 2.15.0"), stage), HasSubstr("no such setting"));
  EXPECT_THAT(why_not_asked(tables_of("DistributedDataParallel, PyTorch 2.15.0"), stage),
              HasSubstr("no such setting"));
  EXPECT_THAT(why_not_asked(tables_of("FSDP1"), stage), HasSubstr("flat parameter"));
  EXPECT_THAT(why_not_asked(tables_of("Megatron-Core 0.16.1"), stage), HasSubstr("Megatron-Core"));
  EXPECT_THAT(why_not_asked(tables_of("Colossal-AI 0.5.0"), stage), HasSubstr("Colossal-AI"));
  EXPECT_EQ(why_not_asked(tables_of("DeepSpeed 0.19.8", "cuda:0"), stage), "") << "gathers and memory are";
  EXPECT_THAT(why_no_times(tables_of("DeepSpeed 0.19.8", "cuda:0")), HasSubstr("on a GPU"));
  EXPECT_EQ(why_no_times(tables_of("DeepSpeed 0.19.8", "cpu")), "");
  EXPECT_EQ(why_no_settings(tables_of("")), "") << "a run of this runtime is none of these";
}

TEST(AttachedSettings, OfAStageThatIsGivenTwiceTheLastCounts) {
  const Change three{"zero_optimization.stage", "3"}, two{"zero_optimization.stage", "2"};
  const auto stage = [&](const std::vector<Change>& changes) {
    return changed_settings(tables_of("DeepSpeed 0.19.8"), zero_of_stage(2), changes).zero.stage;
  };
  EXPECT_EQ(stage({three, two}), 2U);
  EXPECT_EQ(stage({two, three}), 3U);
}

TEST(AttachedSettings, AChangeIsTakenOverOrSaysWhatIsWrongWithIt) {
  const ReplaySettings three = zero_of_stage(3), two = zero_of_stage(2), none = zero_of_stage(0);
  const ReplaySettings changed = changed_settings(
      tables_of("DeepSpeed 0.19.8"), three,
      {{"zero_optimization.stage3_prefetch_bucket_size", "7"}, {"zero_optimization.overlap_comm", "false"}});
  EXPECT_EQ(changed.zero.prefetch_bucket_size, 7);
  EXPECT_FALSE(changed.zero.overlap());
  EXPECT_THAT(refusal(two, {"zero_optimization.stage3_prefetch_bucket_size", "7"}),
              HasSubstr("it does nothing at stage 2"));
  EXPECT_THAT(refusal(three, {"zero_optimization.reduce_bucket_size", "0"}), HasSubstr("at least 1"));
  EXPECT_THAT(refusal(three, {"zero_optimization.overlap_comm", "perhaps"}), HasSubstr("true or false"));
  EXPECT_THAT(refusal(three, {"zero_optimization.stage", "4"}), HasSubstr("not a stage"));
  EXPECT_THAT(refusal(three, {"zero_optimization.stage", "0"}),
              HasSubstr("stage 0 reduces all gradients together"));
  EXPECT_THAT(refusal(none, {"zero_optimization.stage", "2"}),
              HasSubstr("stage 0 reduces all gradients together"));
  EXPECT_THAT(refusal(three, {"bf16.enabled", "true"}),
              AllOf(HasSubstr("bf16.enabled=true"), HasSubstr("what can be asked: zero_opt")));
  EXPECT_EQ(refusal(two, {"zero_optimization.stage", "3"}), "");
}

TEST(AttachedSettings, AnOffloadedRunKeepsItsStage) {
  ReplaySettings offloaded = zero_of_stage(2);
  offloaded.zero.offload_optimizer.device = plan::OffloadDevice::cpu;
  EXPECT_THAT(refusal(offloaded, {"zero_optimization.stage", "3"}), HasSubstr("offloaded"));
  EXPECT_EQ(refusal(offloaded, {"zero_optimization.reduce_bucket_size", "5"}), "");
}

}  // namespace
}  // namespace shardscope::analysis::attached
