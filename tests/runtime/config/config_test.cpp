// DeepSpeed files: what is read, what is refused, and what the messages say.
#include "runtime/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace shardscope::config {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::string& text, std::uint32_t world = 4) {
  ParseOptions options;
  options.world = world;
  options.file = "ds.json";
  try {
    static_cast<void>(parse_config(text, options));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TrainingConfig parse(const std::string& text, std::uint32_t world = 4) {
  ParseOptions options;
  options.world = world;
  options.hidden_size = 128;
  options.total_steps = 500;
  return parse_config(text, options);
}

struct BatchCase {
  const char* text;
  std::int64_t train, micro, steps;
};

TEST(Config, BatchSizesFollowDeepSpeedsRules) {
  // World 4; deepspeed/runtime/config.py, _set_batch_related_parameters.
  const BatchCase cases[] = {
      {R"({"train_batch_size": 32})", 32, 8, 1},
      {R"({"train_micro_batch_size_per_gpu": 3})", 12, 3, 1},
      {R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2})", 32, 2, 4},
      {R"({"train_batch_size": 32, "gradient_accumulation_steps": 4})", 32, 2, 4},
      {R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3})", 24, 2, 3},
      {R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3})",
       24, 2, 3},
      {R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto"})", 16, 4, 1},
      {R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": "auto"})",
       8, 2, 1},
  };
  for (const BatchCase& expected : cases) {
    const TrainingConfig config = parse(expected.text);
    EXPECT_EQ(config.batch.train_batch_size, expected.train) << expected.text;
    EXPECT_EQ(config.batch.micro_batch_size, expected.micro) << expected.text;
    EXPECT_EQ(config.batch.accumulation_steps, expected.steps) << expected.text;
    EXPECT_EQ(config.zero.gradient_accumulation_steps, expected.steps);
  }
}

TEST(Config, InconsistentBatchSizesAreNamed) {
  EXPECT_THAT(error_of(R"({"train_batch_size": 30, "train_micro_batch_size_per_gpu": 2})"),
              HasSubstr("30 is not micro batch x accumulation steps x ranks = 2 x 3 x 4"));
  EXPECT_THAT(error_of(R"({"train_batch_size": 2})"), HasSubstr("train_batch_size"));
  EXPECT_THAT(error_of("{}"), HasSubstr("train_batch_size: missing"));
  EXPECT_THAT(error_of(R"({"train_batch_size": 0})"), HasSubstr("at least 1"));
}

TEST(Config, SyntaxErrorsNameLineAndColumn) {
  EXPECT_THAT(error_of("{\n  \"train_batch_size\": 8,\n  \"fp16\": {,}\n}"),
              HasSubstr("ds.json:3:12: not valid JSON"));
  EXPECT_THAT(error_of(""), HasSubstr("ds.json:1:1"));
  EXPECT_THAT(error_of("{\"a\": 1, \"a\": 2}"), HasSubstr("given twice"));
  EXPECT_THAT(error_of(std::string(100000, '[')), HasSubstr("nested deeper"));
}

TEST(Config, CommentsAreReadOver) {
  const std::string text =
      "// a run, \"quoted\" {\n{ /* two\n lines */ \"train_batch_size\": 8, // ranks: 4\n"
      "  \"zero_optimization\"/*:*/: {\"stage\": 2/**/, // }\n    \"overlap_comm\": true}\n} // end";
  const TrainingConfig config = parse(text);
  EXPECT_EQ(config.batch.train_batch_size, 8);
  EXPECT_EQ(config.zero.stage, 2U);
  EXPECT_TRUE(config.zero.overlap());
  // "//" inside a string is no comment.
  EXPECT_EQ(
      parse(R"({"train_batch_size": 8, "_why": "see https://example.org /* x"})").batch.micro_batch_size, 2);
  // Messages still count the lines and columns of the file as it is.
  std::string wrong = text;
  wrong.replace(wrong.find("true"), 4, "1");
  EXPECT_THAT(error_of(wrong), HasSubstr("ds.json:5:5: zero_optimization.overlap_comm: is 1"));
  EXPECT_THAT(error_of("{\"a\": /* 1\n */ 1, /**/ \"a\": 2}"), HasSubstr("ds.json:1:2: a: is given twice"));
  // The parser ends a comment at a carriage return too.
  EXPECT_EQ(parse("{ // here\r\"train_batch_size\": 8}").batch.train_batch_size, 8);
  EXPECT_THAT(error_of("{ // here\n  /* no end"), HasSubstr("ds.json:2:"));
  EXPECT_THAT(error_of("{ // here\n  /* there */ \"a\" 1}"), HasSubstr("ds.json:2:19: not valid JSON"));
}

// The parser takes a zero byte for the end of the text: what follows would be read by nobody.
TEST(Config, AZeroByteIsRefusedWhereItStands) {
  const std::string zero(1, '\0');
  const std::string text = R"({"train_batch_size": 8})";
  for (const std::string& wrong :
       {text + zero, text + zero + zero, text + "\n" + zero + R"(, "optimizer": {}})",
        "{ // here" + zero + R"("train_batch_size": 8})"}) {
    EXPECT_THAT(error_of(wrong), HasSubstr("not valid JSON: holds a zero byte"));
  }
  EXPECT_THAT(error_of(text + "\n" + zero), HasSubstr("ds.json:2:1: "));
}

// Where DeepSpeed's default is None, null says it; elsewhere it is no value.
TEST(Config, NullIsTheDefaultOnlyWhereDeepSpeedHasIt) {
  const auto zero = [](const std::string& key) {
    return R"({"train_batch_size": 8, "zero_optimization": {"stage": 1, )" + key + "}}";
  };
  EXPECT_THAT(error_of(R"({"train_batch_size": 8, "zero_optimization": {"stage": null}})"),
              HasSubstr("zero_optimization.stage: is null; give a value, or leave the key out"));
  for (const char* key : {"reduce_scatter", "reduce_bucket_size", "leaf_module", "mics_shard_size"}) {
    EXPECT_THAT(error_of(zero('"' + std::string(key) + "\": null")),
                HasSubstr(std::string(key) + ": is null"));
  }
  for (const char* key :
       {"optimizer", "scheduler", "zero_optimization", "gradient_clipping", "fp16", "shardscope"}) {
    EXPECT_THAT(error_of(R"({"train_batch_size": 8, ")" + std::string(key) + "\": null}"),
                HasSubstr(std::string(key) + ": is null"));
  }
  for (const char* key :
       {"overlap_comm", "offload_param", "offload_optimizer", "zenflow", "zeropp_loco_param"}) {
    EXPECT_EQ(parse(zero('"' + std::string(key) + "\": null")).zero.stage, 1U) << key;
  }
  EXPECT_EQ(parse(R"({"train_batch_size": 8, "train_micro_batch_size_per_gpu": null,
                      "gradient_accumulation_steps": null, "communication_data_type": null,
                      "data_types": {"grad_accum_dtype": null}, "flops_profiler": null})")
                .batch.micro_batch_size,
            2);
}

TEST(Config, ANumberBeyondItsRangeIsRefusedWithItsKey) {
  const auto zero = [](const std::string& size) {
    return "{\"train_batch_size\": 8,\n \"zero_optimization\": {\"reduce_bucket_size\": " + size + "}}";
  };
  EXPECT_EQ(parse(zero("5e8")).zero.reduce_bucket_size, 500'000'000);
  EXPECT_EQ(parse(zero("9223372036854775807")).zero.reduce_bucket_size,
            std::numeric_limits<std::int64_t>::max());
  for (const char* size : {"1e30", "9223372036854775808", "18446744073709551616", "9.3e18"}) {
    EXPECT_THAT(error_of(zero(size)),
                ::testing::AllOf(HasSubstr("ds.json:2:24: zero_optimization.reduce_bucket_size: is "),
                                 HasSubstr("but must be at most 9223372036854775807")))
        << size;
  }
  EXPECT_THAT(error_of(zero("-1e30")), HasSubstr("must be at least 1"));
  // Beyond a double: the parser has no value to show.
  EXPECT_EQ(
      error_of(zero("1e999")),
      "ds.json:2:46: zero_optimization.reduce_bucket_size: is 1e999, which is beyond every number that a "
      "configuration can hold; give a smaller one");
  EXPECT_THAT(error_of(R"({"_a": "1e999", /* 1e999 */ "train_batch_size": 8, "optimizer": {"type": "Adam",
                           "params": {"betas": [0.9, -1e400]}}})"),
              HasSubstr("optimizer.params.betas[1]: is -1e400, which is beyond"));
}

TEST(Config, UnknownKeysNameTheNearestOne) {
  const std::string text =
      "{\n  \"train_batch_size\": 8,\n  \"zero_optimization\": {\n    \"overlap_com\": true\n  }\n}";
  EXPECT_THAT(
      error_of(text),
      HasSubstr("ds.json:4:5: zero_optimization.overlap_com: unknown key; did you mean \"overlap_comm\"?"));
  EXPECT_THAT(error_of(R"({"train_batch_size": 8, "optimzer": {}})"),
              HasSubstr("did you mean \"optimizer\"?"));
  EXPECT_THAT(error_of(R"({"train_batch_size": 8, "qqqqqqqqqqqq": 1})"), HasSubstr("docs/configuration.md"));
}

TEST(Config, KeysThatChangeNothingWarnAndKeysThatWouldAreRefused) {
  const TrainingConfig config =
      parse(R"({"train_batch_size": 8, "wall_clock_breakdown": true, "amp": {"enabled": false}})");
  ASSERT_EQ(config.warnings.size(), 1U);
  EXPECT_THAT(config.warnings[0], HasSubstr("wall_clock_breakdown: ignored"));
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

std::string in_zero(const std::string& zero) {
  return R"({"train_batch_size": 8, "zero_optimization": )" + zero + "}";
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
        "quantize_training", "sparse_attention", "sparse_gradients", "tensor_parallel", "torch_autocast"}) {
    const std::string text = std::string(R"({"train_batch_size": 8, ")") + key + R"(": {"enabled": true}})";
    EXPECT_THAT(error_of(text), HasSubstr(key));
  }
}

TEST(Config, WhatHasNoEffectIsSaid) {
  const auto warned = [](const std::string& text) {
    const TrainingConfig config = parse(text);
    return config.warnings.size() == 1 ? config.warnings[0] : std::to_string(config.warnings.size());
  };
  EXPECT_THAT(warned(in_zero(R"({"stage": 2, "contiguous_gradients": false})")), HasSubstr("ignored"));
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
  EXPECT_THAT(warned(R"({"train_batch_size": 8, "log_level": "info"})"), HasSubstr("log_level: ignored"));
  const TrainingConfig notes = parse(
      R"({"train_batch_size": 8, "zero_optimization": {"stage": 1}, "shardscope": {"compat": "notes"}})");
  EXPECT_TRUE(plan::uses_legacy_layout(notes.zero));
  EXPECT_TRUE(notes.warnings.empty());
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

TEST(Config, DefaultsAreDeepSpeeds) {
  const TrainingConfig config = parse(R"({"train_batch_size": 8, "zero_optimization": {"stage": 3}})");
  EXPECT_TRUE(config.zero.overlap());
  EXPECT_EQ(config.zero.prefetch_bucket_size, 50'000'000);
  EXPECT_EQ(config.zero.param_persistence_threshold, 100'000);
  EXPECT_EQ(config.gradient_clipping, 1.0);
  EXPECT_EQ(config.storage_type(), kernels::DType::f32);
  EXPECT_FALSE(parse(R"({"train_batch_size": 8, "zero_optimization": {"stage": 2}})").zero.overlap());
  // Adam is AdamW unless adam_w_mode says otherwise, and FusedAdam decays nothing by default.
  const TrainingConfig adam =
      parse(R"({"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-4}}})");
  EXPECT_TRUE(adam.optimizer.decoupled);
  EXPECT_EQ(adam.optimizer.weight_decay, 0);
  EXPECT_FALSE(
      parse(R"({"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"adam_w_mode": false}}})")
          .optimizer.decoupled);
}

TEST(Config, AutoSizesFollowTheModelsWidth) {
  const TrainingConfig config = parse(
      R"({"train_batch_size": 8, "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto",
          "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"}})");
  EXPECT_EQ(config.zero.reduce_bucket_size, 128 * 128);
  EXPECT_EQ(config.zero.prefetch_bucket_size, 128 * 128 * 9 / 10);
  EXPECT_EQ(config.zero.param_persistence_threshold, 1280);
}

TEST(Config, FloatsWithoutAFractionAreCounts) {
  EXPECT_EQ(parse(R"({"train_batch_size": 8, "zero_optimization": {"reduce_bucket_size": 5e8}})")
                .zero.reduce_bucket_size,
            500'000'000);
  EXPECT_THAT(error_of(R"({"train_batch_size": 8, "zero_optimization": {"reduce_bucket_size": 1.5}})"),
              HasSubstr("whole number"));
}

TEST(Config, CompatibilityPresetsAndSwitches) {
  const TrainingConfig preset = parse(R"({"train_batch_size": 8, "shardscope": {"compat": "deepspeed"}})");
  EXPECT_TRUE(preset.zero.compat.multi_rank_bucket_allreduce);
  EXPECT_TRUE(preset.zero.compat.stage3_skips_fp16_only);
  EXPECT_FALSE(parse(R"({"train_batch_size": 8, "shardscope": {"compat": {
                   "preset": "deepspeed", "stage3_skips_fp16_only": false}}})")
                   .zero.compat.stage3_skips_fp16_only);
  const TrainingConfig one = parse(
      R"({"train_batch_size": 8, "shardscope": {"compat": {"preset": "deepspeed", "multi_rank_bucket_allreduce": false}}})");
  EXPECT_FALSE(one.zero.compat.multi_rank_bucket_allreduce);
  EXPECT_TRUE(one.zero.compat.update_scale_before_unscale);
  const TrainingConfig link = parse(
      R"({"train_batch_size": 8, "shardscope": {"comm": {"emulated_link": {"gbps": 10, "latency_us": 5}}}})");
  EXPECT_EQ(link.shardscope.link.gbps, 10);
}

// docs/zero.md P1: what DeepSpeed's stage-3 constructor gets from an empty section, and what its class
// signature says where the notes take that (0.9).
TEST(Config, AnEmptyZeroSectionHasDeepSpeedsDefaults) {
  for (const char* compat : {"shardscope", "deepspeed", "notes"}) {
    const TrainingConfig config = parse(R"({"train_micro_batch_size_per_gpu": 2, "zero_optimization": {},
                                            "shardscope": {"compat": ")" +
                                        std::string(compat) + "\"}}");
    const plan::ZeroConfig& zero = config.zero;
    const bool notes = config.shardscope.compat == plan::Compat::notes;
    EXPECT_EQ(zero.reduce_bucket_size, 500'000'000);
    EXPECT_EQ(zero.prefetch_bucket_size, 50'000'000);
    EXPECT_EQ(zero.max_reuse_distance, 1'000'000'000);
    EXPECT_EQ(zero.max_live_parameters, 1'000'000'000);
    EXPECT_EQ(zero.param_persistence_threshold, 100'000);
    EXPECT_EQ(zero.model_persistence_threshold, std::numeric_limits<std::int64_t>::max()) << "sys.maxsize";
    EXPECT_EQ(zero.sub_group_size, notes ? 1'000'000'000'000 : 1'000'000'000);
    EXPECT_EQ(zero.hpz_partition_size, 1);
    EXPECT_EQ(zero.gradient_accumulation_steps, 1);
    EXPECT_EQ(zero.gradient_predivide_factor, 1.0);
    // The constructor's clip_grad is 0; what it is called with is the file's key, in 0.19 1.0 where it is
    // missing.
    EXPECT_EQ(config.gradient_clipping, 1.0);
    EXPECT_TRUE(zero.contiguous_gradients && zero.reduce_scatter && !zero.prescale_gradients);
    EXPECT_FALSE(zero.quantized_weights || zero.quantized_nontrainable_weights || zero.elastic_checkpoint);
    EXPECT_EQ(zero.offload_param.device, plan::OffloadDevice::none);
    EXPECT_EQ(zero.offload_optimizer.device, plan::OffloadDevice::none);
    EXPECT_EQ(zero.offload_param.pin_memory, !notes);
    EXPECT_EQ(zero.offload_optimizer.pin_memory, !notes);
    for (const std::uint32_t stage : {0U, 1U, 2U, 3U}) {
      plan::ZeroConfig of_stage = zero;
      of_stage.stage = stage;
      EXPECT_EQ(of_stage.overlap(), stage == 3) << stage;
    }
  }
}

// What the file says stands under every preset.
TEST(Config, DefaultsOfTheNotesGiveWayToTheFile) {
  const TrainingConfig config =
      parse(R"({"train_micro_batch_size_per_gpu": 2, "shardscope": {"compat": "notes"},
      "zero_optimization": {"stage": 3, "sub_group_size": 5000, "offload_param": {"device": "cpu", "pin_memory": true},
                            "offload_optimizer": {"device": "cpu"}}})");
  EXPECT_EQ(config.zero.sub_group_size, 5000);
  EXPECT_TRUE(config.zero.offload_param.pin_memory);
  EXPECT_FALSE(config.zero.offload_optimizer.pin_memory);
  const TrainingConfig old = parse(R"({"train_micro_batch_size_per_gpu": 2, "shardscope": {"compat": "notes"},
      "zero_optimization": {"stage": 2, "cpu_offload": true, "cpu_offload_use_pin_memory": true}})");
  EXPECT_TRUE(old.zero.offload_optimizer.pin_memory);
}

/// Writing the effective configuration and reading it again changes nothing.
TEST(Config, EffectiveJsonReadsBack) {
  for (
      const char* text :
      {R"({"train_batch_size": 8})",
       R"({"train_batch_size": 16, "train_micro_batch_size_per_gpu": 2, "fp16": {"enabled": true, "hysteresis": 3},
               "gradient_clipping": 1.0, "zero_optimization": {"stage": 3, "overlap_comm": false},
               "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": "auto", "warmup_max_lr": "auto"}},
               "shardscope": {"compat": "notes", "detail": "kernels"}})",
       R"({"train_batch_size": 8, "bf16": {"enabled": true}, "scheduler": {"type": "WarmupCosineLR",
               "params": {"total_num_steps": 100}}, "optimizer": {"type": "Adam", "params": {"adam_w_mode": false}}})",
       R"({"train_batch_size": 8, "scheduler": {"type": "LRRangeTest"}})",
       R"({"train_batch_size": 8, "shardscope": {"compat": "deepspeed"}, "zero_optimization": {"stage": 2,
               "use_multi_rank_bucket_allreduce": true}})",
       R"({"train_batch_size": 8, "zero_optimization": {"stage": 2, "use_multi_rank_bucket_allreduce": false}})",
       R"({"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.1,
               "cycle_max_lr": 0.2, "cycle_second_stair_count": 3, "decay_lr_rate": 0.1}}})"}) {
    const std::string once = effective_json(parse(text));
    EXPECT_EQ(effective_json(parse(once)), once);
    EXPECT_TRUE(parse(once).warnings.empty()) << parse(once).warnings[0];
  }
}

std::string with_scheduler(const std::string& scheduler) {
  return R"({"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 0.25}}, "scheduler": )" +
         scheduler + "}";
}

// The rates themselves are tested with plan::LrSchedule; here, that the file reaches it whole.
TEST(Scheduler, ParametersReachTheSchedule) {
  const TrainingConfig cycle = parse(with_scheduler(
      R"({"type": "OneCycle", "params": {"cycle_min_lr": 0.01, "cycle_max_lr": 0.5, "decay_lr_rate": 0.5,
          "cycle_first_step_size": 8, "cycle_second_step_size": 12, "decay_step_size": 4,
          "cycle_momentum": false}})"));
  // As recorded from DeepSpeed (tests/runtime/plan/lr_schedule_test.cpp).
  EXPECT_NEAR(cycle.learning_rate(1), 0.07125, 1e-14);
  EXPECT_NEAR(cycle.learning_rate(21), 0.008888888888888889, 1e-14);
  EXPECT_EQ(cycle.betas(1).beta1, 0.9);

  const TrainingConfig stairs = parse(with_scheduler(
      R"({"type": "OneCycle", "params": {"cycle_min_lr": 0.01, "cycle_max_lr": 0.5, "cycle_first_step_size": 8,
          "cycle_second_step_size": 12, "cycle_first_stair_count": 4, "cycle_second_stair_count": 3}})"));
  EXPECT_NEAR(stairs.learning_rate(9), 0.33666666666666667, 1e-14);
  EXPECT_NEAR(stairs.betas(9).beta1, 0.8333333333333334, 1e-14);
  EXPECT_EQ(stairs.betas(9).beta2, 0.99);  // DeepSpeed sets the pair

  const TrainingConfig decay = parse(with_scheduler(
      R"({"type": "WarmupDecayLR", "params": {"total_num_steps": "auto", "warmup_num_steps": 10,
          "warmup_type": "linear"}})"));
  EXPECT_EQ(decay.scheduler.total_num_steps, 500);
  EXPECT_DOUBLE_EQ(decay.learning_rate(6), 0.25 * 5 / 10);  // up to the optimizer's rate
  EXPECT_EQ(parse(R"({"train_batch_size": 8})").learning_rate(100), 1e-3);
}

TEST(Scheduler, WhatCannotWorkIsRefused) {
  const auto refused = [](const char* scheduler) { return error_of(with_scheduler(scheduler)); };
  EXPECT_THAT(refused(R"({"type": "WarmupLR", "params": {"warmup_num_steps": 0}})"), HasSubstr("at least 1"));
  EXPECT_THAT(refused(R"({"type": "WarmupCosineLR"})"), HasSubstr("total_num_steps: missing"));
  EXPECT_THAT(refused(R"({"type": "OneCycle", "params": {"cycle_min_lr": 0.1}})"), HasSubstr("cycle_max_lr"));
  EXPECT_THAT(refused(R"({"type": "WarmupLR", "params": {"last_batch_iteration": 3}})"), HasSubstr("-1"));
  EXPECT_THAT(refused(R"({"params": {}})"), HasSubstr("WarmupLR"));
  // Momentum that grows without bound: at parse time where the length of the run is known, else at the step.
  const std::string grows = with_scheduler(
      R"({"type": "OneCycle", "params": {"cycle_min_lr": 0.01, "cycle_max_lr": 0.5, "cycle_first_step_size": 8,
          "decay_step_size": 4, "decay_mom_rate": 0.25}})");
  ParseOptions options;
  options.total_steps = 16;
  EXPECT_LT(parse_config(grows, options).betas(15).beta1, 1);
  options.total_steps = 40;
  EXPECT_THROW(static_cast<void>(parse_config(grows, options)), ConfigError);
  options.total_steps = 0;
  EXPECT_THROW(static_cast<void>(parse_config(grows, options).betas(39)), ConfigError);
}

}  // namespace
}  // namespace shardscope::config
