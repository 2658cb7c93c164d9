// A step whose gradients are not finite changes nothing, so nothing that was gathered is gathered again for
// it.
#include <gtest/gtest.h>

#include "tests/runtime/engine/frozen_model.h"

namespace shardscope::engine::testing::skipped_step_test {
namespace {

constexpr std::int64_t kSteps = 4;

/// Every step overflows on rank 1, or none does.
TrainingRun run_of(const Json& zero, bool overflows, std::uint32_t world = 2,
                   const std::string& compat = "") {
  RunSpec spec;
  spec.model = frozen_model("mlp", Freeze::adapters);
  spec.config = make_config(3, 1, "fp16");
  spec.config["zero_optimization"].update(zero);
  spec.config["fp16"]["initial_scale_power"] = 8;  // nothing overflows by itself
  spec.config["shardscope"]["ranks_per_node"] = 2;
  if (!compat.empty()) spec.config["shardscope"]["compat"] = compat;
  spec.world = world;
  spec.steps = kSteps;
  if (overflows) spec.overflows_on = 1;
  TrainingRun run = train(spec);
  for (const RankRun& rank : run.ranks) {
    EXPECT_EQ(rank.error, "");
    for (const StepResult& step : rank.steps) EXPECT_EQ(step.skipped, overflows);
    EXPECT_EQ(rank.used_after, 0U);
  }
  return run;
}

TEST(SkippedStep, LeavesPersistentParametersWhole) {
  const Json all_persistent = {{"stage3_param_persistence_threshold", 1000000}};
  const plan::ModelPlan model = plan::build_model_plan(frozen_model("mlp", Freeze::adapters));
  const std::int64_t trained = plan::trainable_elems(model);
  const std::int64_t padding = 2 * static_cast<std::int64_t>(model.params.size());
  const auto gathered = [&](bool overflows, const std::string& compat) {
    return run_of(all_persistent, overflows, 2, compat).ranks[0].volume.gathered;
  };
  EXPECT_EQ(gathered(true, ""), 0);
  // Every step gathers what it changed, and never what is frozen.
  EXPECT_GE(gathered(false, ""), kSteps * trained);
  EXPECT_LE(gathered(false, ""), kSteps * (trained + padding));
  // DeepSpeed partitions all of them before it knows, and the next forward fetches them.
  EXPECT_GE(gathered(true, "deepspeed"), kSteps * model.elems);
  EXPECT_GE(gathered(false, "deepspeed"), kSteps * model.elems);
}

TEST(SkippedStep, LeavesSecondaryCopiesValid) {
  const Json hpz = {{"zero_hpz_partition_size", 2}, {"stage3_param_persistence_threshold", 0}};
  const TrainingRun skipped = run_of(hpz, true, 4);
  const TrainingRun applied = run_of(hpz, false, 4);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const RankRun& kept = skipped.ranks[rank];
    const RankRun& ended = applied.ranks[rank];
    EXPECT_EQ(kept.secondary_after, kept.secondary_peak);
    EXPECT_GT(ended.secondary_after, 0U) << "copies of frozen parameters hold for good";
    EXPECT_LT(ended.secondary_after, ended.secondary_peak);
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::skipped_step_test
