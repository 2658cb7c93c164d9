// Defaults, under every preset, and the configuration that is written with all of them.
#include "runtime/config/config.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "tests/runtime/config/parse_text.h"

namespace shardscope::config {
namespace {

using namespace test;

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

TEST(Config, EvaluationIsOffAndItsFractionLeavesBothParts) {
  const TrainingConfig config = parse(R"({"train_batch_size": 8})");
  EXPECT_EQ(config.shardscope.eval_interval, 0);
  EXPECT_EQ(config.shardscope.eval_batches, 8);
  EXPECT_EQ(config.shardscope.eval_fraction, 0.1);
  for (const char* wrong : {R"("eval_interval": -1)", R"("eval_batches": 0)", R"("eval_fraction": 0)",
                            R"("eval_fraction": 1)", R"("eval_fraction": "half")"}) {
    EXPECT_THROW(
        static_cast<void>(parse(R"({"train_batch_size": 8, "shardscope": {)" + std::string(wrong) + "}}")),
        ConfigError)
        << wrong;
  }
}

TEST(Config, BatchSizesAreThoseOfOneDataParallelGroup) {
  const auto read = [](const std::string& groups, const std::string& more = "") {
    return parse(
        R"({"train_batch_size": 8, "shardscope": {"data_parallel_groups": )" + groups + "}" + more + "}", 4);
  };
  const TrainingConfig config = read("[[0, 2], [1, 3]]", R"(, "gradient_accumulation_steps": 2)");
  EXPECT_EQ(config.world, 2U);
  EXPECT_EQ(config.batch.micro_batch_size, 2);
  EXPECT_EQ(config.shardscope.data_parallel_groups, (plan::DataParallelGroups{{0, 2}, {1, 3}}));
  const std::string effective = effective_json(config);
  EXPECT_EQ(effective_json(parse(effective, 4)), effective);
  EXPECT_EQ(read("[]").world, 4U);
  // Groups of ZeRO++ and MiCS divide one copy's ranks.
  const std::string mics = R"(, "zero_optimization": {"stage": 3, "mics_shard_size": )";
  EXPECT_NO_THROW(static_cast<void>(read("[[0, 1], [2, 3]]", mics + "2}")));
  EXPECT_THROW(static_cast<void>(read("[[0, 1], [2, 3]]", mics + "4}")), ConfigError);
  for (const char* wrong : {"true", "[0, 1]", "[[0, 1], [2, \"3\"]]", "[[0, 1], [2, -1]]",
                            "[[0, 1], [2, 3.5]]", "[[0, 1]]", "[[0, 1], [2]]", "[[0, 1], [1, 2]]",
                            "[[0, 1], [2, 9]]", "[[1, 0], [2, 3]]", "[[0, 1], [2, 4294967298]]"}) {
    EXPECT_THROW(static_cast<void>(read(wrong)), ConfigError) << wrong;
  }
}

TEST(Config, MicroBatchesHaveOneSizeUnlessTheFileSaysOtherwise) {
  const auto read = [](const std::string& section) {
    return parse(R"({"train_batch_size": 8, "shardscope": {"micro_batches": )" + section + "}}");
  };
  const plan::MicroBatches fixed = read("{}").shardscope.micro_batches;
  EXPECT_EQ(fixed.packing, plan::Packing::fixed);
  EXPECT_EQ(fixed.separator, "\n\n");
  EXPECT_TRUE(fixed.shapes.empty());
  const TrainingConfig given =
      read(R"({"packing": "padded", "separator": "<end>", "pad_to_multiple_of": 8})");
  EXPECT_EQ(given.shardscope.micro_batches.packing, plan::Packing::padded);
  EXPECT_EQ(given.shardscope.micro_batches.separator, "<end>");
  EXPECT_EQ(given.shardscope.micro_batches.pad_to_multiple_of, 8);
  EXPECT_EQ(read(R"({"packing": "packed", "separator": 50256})").shardscope.micro_batches.separator_token,
            50256);
  const TrainingConfig shapes = read(R"({"shapes": [[4, 12], [1, 5]]})");
  EXPECT_EQ(shapes.shardscope.micro_batches.shape(1, 2), (plan::MicroBatchShape{1, 5}));
  for (const TrainingConfig& config : {given, shapes, read(R"({"packing": "packed", "separator": 7})")}) {
    EXPECT_EQ(effective_json(parse(effective_json(config))), effective_json(config));
  }
  for (const char* wrong :
       {R"({"packing": "loose"})", R"({"pad_to_multiple_of": 8})",
        R"({"packing": "padded", "shapes": [[1, 2]]})", R"({"shapes": [[1]]})", R"({"shapes": [[0, 2]]})",
        R"({"shapes": [[1, 2.5]]})", R"({"shapes": 4})", R"({"separator": ""})", R"({"separator": -1})",
        R"({"separator": true})", R"({"length": 3})", R"({"shapes": [[1, 99999999999]]})",
        R"({"shapes": [["1", 2]]})"}) {
    EXPECT_THROW(static_cast<void>(read(wrong)), ConfigError) << wrong;
  }
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

}  // namespace
}  // namespace shardscope::config
