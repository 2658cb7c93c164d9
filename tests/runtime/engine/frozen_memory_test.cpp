// What frozen parameters cost: weights and nothing else, to the byte; no gradient travels; where nothing
// below learns, nothing is gathered for backward.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/plan/memory_model.h"
#include "runtime/plan/visit_order.h"
#include "runtime/plan/zero_traffic.h"
#include "tests/runtime/engine/frozen_model.h"
#include "tests/runtime/engine/stage_estimate_of.h"

namespace shardscope::engine::testing::frozen_memory_test {
namespace {

constexpr std::uint32_t kRanks = 3;

RunSpec spec_of(int stage, Freeze freeze, const std::string& type) {
  RunSpec spec;
  spec.model = frozen_model("gpt", freeze);
  spec.config = make_config(stage, 1, type);
  spec.config["zero_optimization"]["reduce_bucket_size"] = 20000;
  spec.world = kRanks;
  spec.data = "golden:gpt";
  spec.steps = 3;
  return spec;
}

std::vector<std::int64_t> elems_of(const plan::ModelPlan& model) {
  std::vector<std::int64_t> elems;
  for (const plan::ParamPlan& param : model.params) elems.push_back(param.elems);
  return elems;
}

TEST(FrozenMemory, IsTheExpressionOfEveryRowOfTheEstimate) {
  for (const std::string type : {"fp32", "bf16"}) {
    for (const Freeze freeze : {Freeze::bottom, Freeze::adapters}) {
      const plan::ModelPlan model = plan::build_model_plan(frozen_model("gpt", freeze));
      RunSpec limits = spec_of(3, freeze, type);
      const Json cpu{{"device", "cpu"}, {"pin_memory", true}};
      limits.config["zero_optimization"]["offload_optimizer"] = cpu;
      limits.config["zero_optimization"]["offload_param"] = cpu;
      const plan::StageEstimateInput input = stage_estimate_of(model, limits.config, kRanks, type);
      for (const plan::StageEstimate& row : plan::estimate_stages(input)) {
        SCOPED_TRACE(type + " " + name_of(freeze) + " stage " + std::to_string(row.stage) +
                     (row.offload_optimizer ? " optimizer" : "") + (row.offload_param ? " parameters" : ""));
        RunSpec spec = spec_of(static_cast<int>(row.stage), freeze, type);
        if (row.offload_optimizer) spec.config["zero_optimization"]["offload_optimizer"] = cpu;
        if (row.offload_param) spec.config["zero_optimization"]["offload_param"] = cpu;
        const TrainingRun run = train(spec);
        const auto within = [](std::size_t measured, std::int64_t estimate, std::size_t above) {
          EXPECT_GE(measured, static_cast<std::size_t>(estimate));
          EXPECT_LE(measured, static_cast<std::size_t>(estimate) + above);
        };
        // The arena rounds each buffer up: six of states and one of frozen weights.
        constexpr std::size_t kStates = 7 * device::Arena::kAlignment;
        const std::size_t rounding = model.params.size() * device::Arena::kAlignment;
        for (const RankRun& rank : run.ranks) {
          ASSERT_EQ(rank.error, "");
          within(rank.state_bytes_after, row.model_states, kStates);
          within(rank.pinned_state_bytes, row.pinned / kRanks, kStates);
          EXPECT_LE(rank.bucket_peak, static_cast<std::size_t>(row.buckets) +
                                          (row.offload_optimizer ? 2 * rounding : rounding));
          if (row.stage == 3) within(rank.gathered_peak, row.gathered, rounding);
          EXPECT_EQ(rank.used_after, 0U);
        }
      }
    }
  }
}

// 2 bytes of a frozen element in 16 bits, and of all three ranks together in stage 3.
TEST(FrozenMemory, IsTwoBytesAnElement) {
  const plan::ModelPlan model = plan::build_model_plan(frozen_model("gpt", Freeze::adapters));
  const std::int64_t trained = plan::trainable_elems(model);
  const std::int64_t frozen = model.elems - trained;
  const plan::ModelStates one =
      plan::model_states(elems_of(model), 0, kRanks, plan::kMixedPrecision, 8, plan::trainable_params(model));
  EXPECT_EQ(one.frozen, 2 * frozen);
  EXPECT_EQ(one.total(), 16 * trained + 2 * frozen);
  const plan::ModelStates third =
      plan::model_states(elems_of(model), 3, kRanks, plan::kMixedPrecision, 1, plan::trainable_params(model));
  EXPECT_GE(third.frozen * kRanks, 2 * frozen);
  EXPECT_LE(third.frozen * kRanks, 2 * (frozen + kRanks * static_cast<std::int64_t>(model.params.size())));
}

/// Elements of parameters that no module uses in backward.
std::int64_t forward_only(const plan::ModelPlan& model) {
  std::vector<bool> used(model.params.size(), false);
  for (const plan::Visit& visit : plan::visit_order(model)) {
    if (visit.kind != plan::VisitKind::pre_backward) continue;
    for (const plan::ParamId param : model.modules[plan::raw(visit.module)].params)
      used[plan::raw(param)] = true;
  }
  std::int64_t elems = 0;
  for (const plan::ParamPlan& param : model.params) elems += used[plan::raw(param.id)] ? 0 : param.elems;
  return elems;
}

TEST(FrozenTraffic, HasNoGradientsAndNoGathersForWhatDoesNotLearn) {
  for (const Freeze freeze : kFreezings) {
    for (const int stage : {0, 1, 2, 3}) {
      SCOPED_TRACE(name_of(freeze) + " stage " + std::to_string(stage));
      RunSpec spec = spec_of(stage, freeze, "fp32");
      if (stage == 3) spec.config["zero_optimization"]["stage3_prefetch_bucket_size"] = 0;
      const plan::ModelPlan model = plan::build_model_plan(spec.model);
      plan::VolumeInput input;
      input.stage = static_cast<std::uint32_t>(stage);
      input.world = kRanks;
      input.trainable = plan::trainable_params(model);
      const plan::StepVolume expected = plan::step_volume(elems_of(model), input);
      const TrainingRun run = train(spec);
      for (const RankRun& rank : run.ranks) {
        ASSERT_EQ(rank.error, "");
        const auto steps = static_cast<double>(rank.steps.size());
        EXPECT_GE(static_cast<double>(rank.volume.reduced) / steps, expected.reduce_elems);
        EXPECT_LE(static_cast<double>(rank.volume.gathered + rank.volume.reduced) / steps,
                  static_cast<double>(expected.padded_elems));
        if (stage != 3) continue;
        const double gathered = static_cast<double>(rank.volume.gathered) / steps;
        const double least = expected.gather_elems - static_cast<double>(forward_only(model));
        EXPECT_GE(gathered, least);
        EXPECT_LE(gathered, least + static_cast<double>(expected.padded_elems) - expected.elems);
        if (freeze == Freeze::bottom) {
          EXPECT_GT(forward_only(model), model.elems / 3);  // embeddings and the first block
        }
      }
    }
  }
}

// DeepSpeed's scheduler partitions persistent parameters at each update, frozen ones too, and gathers them
// again after it; ours leaves the frozen ones whole.
TEST(FrozenTraffic, OfPersistentParametersIsTheSchedulers) {
  constexpr std::uint32_t kWorld = 4;
  for (const Json& more : {Json::object(), Json{{"zero_hpz_partition_size", 2}}}) {
    std::vector<std::int64_t> planned, measured;
    for (const char* scheduler : {"shardscope", "deepspeed"}) {
      SCOPED_TRACE(scheduler + more.dump());
      RunSpec spec = spec_of(3, Freeze::top, "fp32");  // all of it is used in backward
      spec.world = kWorld;
      spec.config["zero_optimization"]["stage3_prefetch_bucket_size"] = 0;
      spec.config["zero_optimization"]["stage3_param_persistence_threshold"] = 100;
      spec.config["zero_optimization"].update(more);
      spec.config["shardscope"]["compat"]["scheduler"] = scheduler;
      config::ParseOptions parse;
      parse.world = kWorld;
      const plan::ZeroConfig zero = config::parse_config(spec.config.dump(), parse).zero;
      const plan::ModelPlan model = plan::build_model_plan(spec.model);
      std::vector<plan::TrafficParam> params;
      plan::VolumeInput volume;
      volume.stage = 3;
      volume.world = kWorld;
      volume.trainable = plan::trainable_params(model);
      volume.scheduler = zero.compat.scheduler;
      for (const plan::ParamPlan& param : model.params) {
        params.push_back({param.shape, param.elems <= zero.param_persistence_threshold, !param.trainable});
        volume.persistent.push_back(params.back().persistent);
      }
      plan::TrafficInput input;
      input.topology = {kWorld, 2};
      const plan::StepTraffic traffic = plan::step_traffic(params, zero, input);
      if (more.empty()) {
        EXPECT_EQ(traffic.total().elems, plan::step_volume(elems_of(model), volume).padded_elems);
      }
      planned.push_back(0);
      for (const plan::Traffic& scope : traffic.gathers()) planned.back() += scope.elems;
      // Of the last step: in the first one no trace is followed yet.
      spec.steps = 4;
      const TrainingRun longer = train(spec);
      spec.steps = 3;
      const TrainingRun shorter = train(spec);
      ASSERT_EQ(longer.ranks[0].error + shorter.ranks[0].error, "");
      measured.push_back(longer.ranks[0].volume.gathered - shorter.ranks[0].volume.gathered);
      EXPECT_EQ(measured.back(), planned.back());
    }
    EXPECT_LT(planned[0], planned[1]);
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::frozen_memory_test
