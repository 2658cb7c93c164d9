// The section zero_optimization: what has no effect at a stage, sizes that follow the model, and ZenFlow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/runtime/config/parse_text.h"

namespace shardscope::config {
namespace {

using namespace test;
using ::testing::HasSubstr;

TEST(Config, WhatHasNoEffectIsSaid) {
  const auto warned = [](const std::string& text) {
    const TrainingConfig config = parse(text);
    return config.warnings.size() == 1 ? config.warnings[0] : std::to_string(config.warnings.size());
  };
  EXPECT_THAT(warned(in_zero(R"({"stage": 2, "contiguous_gradients": false})")), HasSubstr("ignored"));
  const auto switched = [&](const std::string& switches, const std::string& zero) {
    return warned(R"({"train_batch_size": 8, "zero_optimization": )" + zero +
                  R"(, "shardscope": {"compat": {)" + switches + "}}}");
  };
  const std::string buffers = R"("gradient_buffers": true)";
  EXPECT_EQ(switched(buffers, R"({"stage": 2, "contiguous_gradients": false})"), "0")
      << "then it has an effect";
  EXPECT_THAT(switched(buffers, R"({"stage": 0})"), HasSubstr("gradient_buffers: ignored"));
  EXPECT_THAT(switched(buffers, R"({"stage": 1, "legacy_stage1": true})"), HasSubstr("only the fp32 copies"));
  EXPECT_THAT(switched(R"("flat_gathers": true)", R"({"stage": 2})"), HasSubstr("stage is 2"));
  EXPECT_THAT(switched(R"("hpz_quantized_copies": true)", R"({"stage": 3, "zero_hpz_partition_size": 2})"),
              HasSubstr("zero_quantized_weights"));
  EXPECT_THAT(warned(in_zero(R"({"stage": 3, "round_robin_gradients": true})")), HasSubstr("stage is 3"));
  EXPECT_EQ(warned(in_zero(R"({"stage": 2, "round_robin_gradients": true})")), "0");
  EXPECT_THAT(warned(in_zero(R"({"stage": 2, "allgather_partitions": false})")),
              HasSubstr("reads it nowhere"));
  EXPECT_THAT(warned(in_zero(R"({"stage": 3, "override_module_apply": false})")), HasSubstr("torch modules"));
  EXPECT_EQ(warned(in_zero(R"({"stage": 2, "elastic_checkpoint": true})")), "0");
  EXPECT_THAT(warned(in_zero(R"({"stage": 3, "elastic_checkpoint": true})")),
              HasSubstr("any number of ranks"));
  EXPECT_EQ(warned(in_zero(R"({"stage": 3, "log_trace_cache_warnings": true})")), "0");
  EXPECT_THAT(warned(in_zero(R"({"stage": 2, "log_trace_cache_warnings": true})")), HasSubstr("stage is 2"));
  EXPECT_EQ(warned(in_zero(R"({"stage": 3, "zero_quantized_nontrainable_weights": true})")), "0");
  EXPECT_THAT(warned(in_zero(R"({"stage": 1, "zero_quantized_nontrainable_weights": true})")),
              HasSubstr("zero_quantized_nontrainable_weights: ignored: it belongs to stage 3"));
  EXPECT_THAT(warned(in_zero(R"({"stage": 2, "legacy_stage1": true})")), HasSubstr("layout of stage 1"));
  EXPECT_EQ(warned(in_zero(R"({"stage": 1, "legacy_stage1": true, "max_elements_per_comm": 1000})")), "0");
  EXPECT_THAT(warned(in_zero(R"({"stage": 1, "max_elements_per_comm": 1000})")), HasSubstr("legacy_stage1"));
  EXPECT_EQ(warned(in_zero(R"({"stage": 1, "max_elements_per_comm": 5e8})")), "0");
  for (const char* key : {"\"reduce_scatter\": false", "\"reduce_bucket_size\": 1000"}) {
    EXPECT_THAT(warned(in_zero(std::string(R"({"stage": 1, "legacy_stage1": true, )") + key + "}")),
                HasSubstr("the first layout of ZeRO-1"))
        << key;
    EXPECT_EQ(warned(in_zero(std::string(R"({"stage": 1, )") + key + "}")), "0") << key;
  }
  // The default preset does not do what the key asks for; DeepSpeed's does.
  const char* multi_rank = R"({"stage": 2, "use_multi_rank_bucket_allreduce": true})";
  EXPECT_THAT(warned(in_zero(multi_rank)), HasSubstr("use_multi_rank_bucket_allreduce: ignored"));
  EXPECT_EQ(warned(R"({"train_batch_size": 8, "shardscope": {"compat": "deepspeed"}, "zero_optimization": )" +
                   std::string(multi_rank) + "}"),
            "0");
  EXPECT_EQ(warned(in_zero(R"({"stage": 2, "use_multi_rank_bucket_allreduce": false})")), "0");
  EXPECT_THAT(warned(in_zero(R"({"stage": 3, "offload_optimizer": {"device": "cpu", "fast_init": true}})")),
              HasSubstr("fast_init: ignored"));
  EXPECT_THAT(warned(in_zero(R"({"stage": 3, "load_from_fp32_weights": false})")), HasSubstr("--resume"));
  EXPECT_THAT(warned(in_zero(R"({"stage": 3, "save_muon_momentum_buffer_in_memory": true})")),
              HasSubstr("Muon"));
  EXPECT_THAT(warned(R"({"train_batch_size": 8, "timers": {"throughput": {"enabled": true}}})"),
              HasSubstr("timers: ignored"));
  const TrainingConfig notes = parse(
      R"({"train_batch_size": 8, "zero_optimization": {"stage": 1}, "shardscope": {"compat": "notes"}})");
  EXPECT_TRUE(plan::uses_legacy_layout(notes.zero));
  EXPECT_TRUE(notes.warnings.empty());
}

TEST(Config, AutoSizesFollowTheModelsWidth) {
  const TrainingConfig config = parse(
      R"({"train_batch_size": 8, "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto",
          "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"}})");
  EXPECT_EQ(config.zero.reduce_bucket_size, 128 * 128);
  EXPECT_EQ(config.zero.prefetch_bucket_size, 128 * 128 * 9 / 10);
  EXPECT_EQ(config.zero.param_persistence_threshold, 1280);
}

std::string with_zenflow(const std::string& zenflow, const std::string& more = R"("device": "cpu")") {
  return R"({"train_batch_size": 16, "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 3,
             "offload_optimizer": {)" +
         more + R"(}, "zenflow": )" + zenflow + "}}";
}

TEST(Config, ZenFlow) {
  const TrainingConfig config = parse(with_zenflow(R"({"update_interval": 4, "overlap_step": true})"));
  ASSERT_TRUE(config.zero.zenflow.has_value());
  EXPECT_EQ(config.zero.zenflow->update_interval, 4);
  EXPECT_EQ(config.zero.zenflow->select_interval, plan::ZenFlowConfig::kAuto);
  // Every micro-step is a step.
  EXPECT_EQ(config.batch.accumulation_steps, 1);
  ASSERT_EQ(config.warnings.size(), 1U);
  EXPECT_THAT(config.warnings[0], HasSubstr("gradient_accumulation_steps"));
  const std::string once = effective_json(config);
  EXPECT_EQ(effective_json(parse(once)), once);

  EXPECT_THAT(error_of(with_zenflow("{}", "")), HasSubstr("the CPU steps what is not chosen"));
  EXPECT_THAT(error_of(with_zenflow("{}", R"("device": "cpu", "ratio": 0.5)")),
              HasSubstr("leave ratio at 1"));
  EXPECT_THAT(error_of(with_zenflow("{}", R"("device": "nvme", "nvme_path": "/tmp")")),
              HasSubstr("the CPU steps what is not chosen"));
  EXPECT_TRUE(parse(with_zenflow(R"({"offload": true})")).zero.zenflow->offload);
  EXPECT_EQ(parse(with_zenflow("{}", R"("device": "cpu"}, "offload_param": {"device": "cpu")"))
                .zero.offload_param.device,
            plan::OffloadDevice::cpu);
  for (const char* outside : {"0", "-0.1", "1.5"}) {
    EXPECT_THAT(error_of(with_zenflow("{\"topk_ratio\": " + std::string(outside) + "}")),
                HasSubstr("zenflow.topk_ratio: "));
  }
  EXPECT_THAT(error_of(with_zenflow(R"({"select_strategy": "step"})")), HasSubstr("needs it as a number"));
  EXPECT_THAT(error_of(with_zenflow(R"({"select_interval": 5})")), HasSubstr("once per epoch"));
}

}  // namespace
}  // namespace shardscope::config
