// DeepSpeed's keys that the runtime does not have: those that change nothing warn, the others are refused by
// name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/runtime/config/parse_text.h"

namespace shardscope::config {
namespace {

using namespace test;
using ::testing::HasSubstr;

TEST(Config, KeysThatChangeNothingWarnAndKeysThatWouldAreRefused) {
  const TrainingConfig config =
      parse(R"({"train_batch_size": 8, "comms_logger": {"enabled": true}, "amp": {"enabled": false}})");
  ASSERT_EQ(config.warnings.size(), 1U);
  EXPECT_THAT(config.warnings[0], HasSubstr("comms_logger: ignored"));
  EXPECT_THAT(error_of(R"({"train_batch_size": 8, "amp": {"enabled": true}})"), HasSubstr("amp"));
  EXPECT_THAT(error_of(R"({"train_batch_size": 8, "optimizer": {"type": "Lamb"}})"),
              HasSubstr("one of: AdamW, Adam"));
  EXPECT_THAT(error_of(R"({"train_batch_size": 8, "fp16": {"enabled": true}, "bf16": {"enabled": true}})"),
              HasSubstr("both"));
  EXPECT_THAT(error_of(R"({"train_batch_size": 8, "zero_optimization": {"stage": 4}})"),
              HasSubstr("at most 3"));
  EXPECT_THAT(
      error_of(
          R"({"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}})"),
      HasSubstr("needs stage 3, but stage is 2"));
}

TEST(Config, WhatTheRuntimeWouldNotDoIsRefused) {
  const struct {
    const char *text, *message;
  } cases[] = {
      {R"({"train_batch_size": 8, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp16"}})",
       "data_types.grad_accum_dtype: is fp16, but parameters are bf16"},
      {R"({"train_batch_size": 8, "data_types": {"grad_accum_dtype": "bf16"}})", "grad_accum_dtype"},
      {R"({"train_batch_size": 8, "communication_data_type": "int8"})", "communication_data_type"},
      {R"({"train_batch_size": 8, "fp32_allreduce": true})", "fp32_allreduce"},
      {R"({"train_batch_size": 8, "sequence_parallel_size": 2})", "set it to 1"},
      {R"({"train_batch_size": 8, "gradient_allreduce_op": "sum"})", "gradient_allreduce_op: is \"sum\""},
      {R"({"train_batch_size": 8, "gradient_allreduce_op": "max"})", "one of: mean, sum"},
      {R"({"train_batch_size": 8, "managed_gradient_accumulation": false})", "managed_gradient_accumulation"},
      {R"({"train_batch_size": 8, "expert_parallel": {"autoep_size": 2}})", "expert_parallel: is"},
      {R"({"train_batch_size": 8, "bf16": {"enabled": true}, "data_types": {"param_dtype": "fp16"}})",
       "data_types.param_dtype: is fp16, but parameters are bf16"},
      {R"({"train_batch_size": 8, "gradient_predivide_factor": 0})", "more than 0"},
      {R"({"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"fp32_optimizer_states": false}}})",
       "fp32_optimizer_states: is false"},
      {R"({"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_optimizer":
            {"device": "cpu", "super_offload": true}}})",
       "super_offload is not supported"},
  };
  for (const auto& refused : cases) EXPECT_THAT(error_of(refused.text), HasSubstr(refused.message));
  // Said, but harmless: the storage type by its own name, and what is off already.
  for (const char* text :
       {R"({"train_batch_size": 8, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "bf16"},
            "communication_data_type": "bf16"})",
        R"({"train_batch_size": 8, "fp16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"},
            "communication_data_type": "bf16"})",
        R"({"train_batch_size": 8, "gradient_allreduce_op": "mean", "managed_gradient_accumulation": true,
            "data_types": {"param_dtype": "fp32"}})",
        R"({"train_batch_size": 8, "sequence_parallel_size": 1, "fp32_allreduce": false})"}) {
    EXPECT_EQ(error_of(text), "no error");
    EXPECT_TRUE(parse(text).warnings.empty());
  }
}

/// Keys of DeepSpeed's that would change weights, traffic or the model are never passed over.
TEST(Config, WhatIsNotSupportedIsRefusedByName) {
  for (const char* key :
       {"amp", "autotuning", "compression_training", "curriculum_learning", "data_efficiency", "elasticity",
        "eigenvalue", "expert_parallel", "hybrid_engine", "mesh_param", "pipeline", "progressive_layer_drop",
        "quantize_training", "retain_graph", "sparse_attention", "sparse_gradients", "tensor_parallel",
        "torch_autocast"}) {
    const std::string text = std::string(R"({"train_batch_size": 8, ")") + key + R"(": {"enabled": true}})";
    EXPECT_THAT(error_of(text), HasSubstr(key));
  }
}

}  // namespace
}  // namespace shardscope::config
