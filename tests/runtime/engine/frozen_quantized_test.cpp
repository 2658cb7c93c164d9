// zero_quantized_nontrainable_weights: frozen shards are rounded to int8 once and stay so. Everything else is
// as without: a run is bitwise the one that starts from the rounded weights, what travels and what rests is
// what the plan says, and no weight is further from its own than half a step of its group.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/plan/memory_model.h"
#include "runtime/plan/quantization.h"
#include "tests/runtime/engine/checkpointed_run.h"
#include "tests/runtime/engine/frozen_model.h"
#include "tests/runtime/engine/stage_estimate_of.h"

namespace shardscope::engine::testing::frozen_quantized_test {
namespace {

constexpr const char* kKey = "zero_quantized_nontrainable_weights";

RunSpec spec_of(Freeze freeze, std::uint32_t world, const std::string& type,
                const Json& zero = Json::object(), int accumulation = 1) {
  RunSpec spec;
  spec.model = frozen_model("gpt", freeze);
  spec.config = make_config(3, accumulation, type);
  spec.config["zero_optimization"].update(zero);
  spec.config["shardscope"]["ranks_per_node"] = world % 2 == 0 ? 2 : world;
  spec.world = world;
  spec.data = "golden:gpt";
  spec.steps = 3;
  return spec;
}

RunSpec quantized(RunSpec spec) {
  spec.config["zero_optimization"][kKey] = true;
  return spec;
}

/// Every rank starts from these weights.
RunSpec starting_from(RunSpec spec, const std::vector<std::vector<float>>& weights) {
  spec.begin = [weights](const Context&, Engine& engine, data::BatchStream&) {
    engine.set_weights([&](plan::ParamId param, plan::Range range, float* to) {
      const std::vector<float>& from = weights[plan::raw(param)];
      std::copy(from.begin() + range.begin, from.begin() + range.end, to);
    });
  };
  return spec;
}

const Json kCpu{{"device", "cpu"}, {"pin_memory", true}};
const Json kPageable{{"device", "cpu"}, {"pin_memory", false}};

// One rank too, whose shards are whole; accumulation; every way a shard rests or travels.
TEST(QuantizedFrozen, RunsAreThoseOfTheRoundedWeights) {
  struct Way {
    std::uint32_t world;
    std::string type;
    int accumulation;
    Json zero;
  };
  for (const Way& way :
       {Way{1, "fp32", 1, Json::object()}, Way{2, "bf16", 2, Json::object()},
        Way{3, "fp16", 1, {{"stage3_prefetch_bucket_size", 0}}},
        Way{2, "fp32", 1, {{"offload_param", kCpu}, {"offload_optimizer", kCpu}}},
        Way{3, "bf16", 2, {{"offload_param", kPageable}}}, Way{1, "bf16", 1, {{"offload_param", kCpu}}},
        Way{4, "bf16", 2, {{"zero_hpz_partition_size", 2}}},
        Way{2, "fp32", 1, {{"stage3_use_all_reduce_for_fetch_params", true}}},
        Way{2, "bf16", 1, {{"stage3_allgather_sequential", true}}}}) {
    SCOPED_TRACE(std::to_string(way.world) + " " + way.type + " " + way.zero.dump());
    const RunSpec plain = spec_of(Freeze::adapters, way.world, way.type, way.zero, way.accumulation);
    const TrainingRun start = untrained(quantized(plain));
    ASSERT_EQ(start.ranks[0].error, "");
    ASSERT_NE(start.weights, untrained(plain).weights) << "nothing was rounded";
    // Rounding what was rounded changes nothing, where the storage type has 16 bits.
    if (way.type != "fp32") {
      EXPECT_EQ(untrained(starting_from(quantized(plain), start.weights)).weights, start.weights);
    }
    const TrainingRun run = train(quantized(plain));
    EXPECT_EQ(first_difference(train(starting_from(plain, start.weights)), run), "");
    EXPECT_EQ(wrongly_trained(plan::build_model_plan(plain.model), start, run), "");
    for (const RankRun& rank : run.ranks) EXPECT_EQ(rank.used_after, 0U);
  }
}

/// |w - q scale| <= scale / 2 with scale = largest of the group / 127, and half a unit in the last place of
/// the storage type (bf16: 2^-9 of the value), before and after.
void expect_within_half_a_step(const plan::ParamPlan& param, const std::vector<float>& exact,
                               const std::vector<float>& rounded, std::uint32_t world, double unit) {
  const std::int64_t shard = plan::partition_param(param.elems, world).shard_elems;
  const plan::QuantGroups groups = plan::weight_groups(shard);
  for (std::int64_t begin = 0; begin < param.elems;) {
    const std::int64_t in_shard = begin % shard;
    const std::int64_t end = std::min(
        {begin + groups.group_elems - in_shard % groups.group_elems, begin - in_shard + shard, param.elems});
    double largest = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      largest = std::max(largest, std::fabs(static_cast<double>(exact[static_cast<std::size_t>(i)])));
    }
    for (std::int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      ASSERT_LE(std::fabs(static_cast<double>(exact[at]) - rounded[at]), largest * (1 / 254.0 + unit))
          << param.name << " " << i;
    }
    begin = end;
  }
}

TEST(QuantizedFrozen, NoWeightIsFurtherThanHalfAStepOfItsGroup) {
  constexpr std::uint32_t kWorld = 3;
  for (const std::string type : {"fp32", "bf16"}) {
    for (const Freeze freeze : kFreezings) {
      const RunSpec plain = spec_of(freeze, kWorld, type);
      const TrainingRun exact = untrained(plain);
      const TrainingRun rounded = untrained(quantized(plain));
      for (const plan::ParamPlan& param : plan::build_model_plan(plain.model).params) {
        const std::vector<float>& a = exact.weights[plan::raw(param.id)];
        const std::vector<float>& b = rounded.weights[plan::raw(param.id)];
        if (param.trainable) {
          EXPECT_EQ(a, b) << param.name;
        } else {
          expect_within_half_a_step(param, a, b, kWorld, type == "fp32" ? 0x1p-23 : 0x1p-8);
        }
      }
    }
  }
}

// A shard of more than 2^20 elements is set in pieces, and groups of 7040 lie across their border: rounded
// with the first piece and again with the second, a weight would be as far as a whole step off.
TEST(QuantizedFrozen, AShardSetInPiecesIsRoundedOnce) {
  RunSpec spec = spec_of(Freeze::adapters, 1, "fp32");
  spec.model = plan::parse_model_spec(R"({
    "name": "large", "input": {"kind": "vectors", "width": 10}, "loss": {"kind": "mse", "width": 1},
    "root": {"kind": "sequential", "children": [
      {"kind": "linear", "name": "inp", "in": 10, "out": 1024, "bias": false},
      {"kind": "linear", "name": "frozen", "in": 1024, "out": 1100, "bias": false, "trainable": false},
      {"kind": "linear", "name": "out", "in": 1100, "out": 1}]}})");
  spec.data = "golden:mlp";
  spec.steps = 0;
  constexpr std::int64_t kBorder = std::int64_t{1} << 20;
  // The largest weight of the group across the border lies behind it, so that the first piece alone would
  // have had a smaller step.
  spec.begin = [](const Context&, Engine& engine, data::BatchStream&) {
    engine.set_weights([](plan::ParamId, plan::Range range, float* to) {
      for (std::int64_t i = 0; i < range.size(); ++i) {
        const std::int64_t at = range.begin + i;
        const auto spread = static_cast<float>(at * 2654435761 % 1001) / 1000.0F - 0.5F;
        to[i] = at < kBorder ? spread : 3 * spread;
      }
    });
  };
  const TrainingRun exact = train(spec);
  const TrainingRun rounded = train(quantized(spec));
  ASSERT_EQ(exact.ranks[0].error + rounded.ranks[0].error, "");
  const plan::ModelPlan model = plan::build_model_plan(spec.model);
  const plan::ParamPlan& frozen = model.params[1];
  const plan::QuantGroups groups = plan::weight_groups(frozen.elems);
  ASSERT_NE(kBorder % groups.group_elems, 0);
  ASSERT_GT(frozen.elems, kBorder);
  EXPECT_NE(exact.weights[1], rounded.weights[1]);
  expect_within_half_a_step(frozen, exact.weights[1], rounded.weights[1], 1, 0x1p-23);
}

// What a step loses by it, of the loss: small beside what it is, and not nothing.
TEST(QuantizedFrozen, LossesStayClose) {
  const TrainingRun exact = train(spec_of(Freeze::adapters, 2, "fp32"));
  const TrainingRun rounded = train(quantized(spec_of(Freeze::adapters, 2, "fp32")));
  for (std::size_t step = 0; step < 3; ++step) {
    const float loss = exact.ranks[0].steps[step].losses[0];
    EXPECT_NEAR(rounded.ranks[0].steps[step].losses[0], loss, 0.01F * loss);
    EXPECT_NE(rounded.ranks[0].steps[step].losses[0], loss);
  }
}

TEST(QuantizedFrozen, TravelsAsThePlanSays) {
  for (const Json& more :
       {Json::object(), Json{{"zero_quantized_weights", true}},
        Json{{"stage3_param_persistence_threshold", 100}},
        Json{{"stage3_use_all_reduce_for_fetch_params", true}}, Json{{"zero_hpz_partition_size", 2}}}) {
    SCOPED_TRACE(more.dump());
    const std::uint32_t kWorld = more.contains("zero_hpz_partition_size") ? 4 : 2;
    RunSpec spec = quantized(spec_of(Freeze::top, kWorld, "bf16", more));  // all of it is used in backward
    spec.config["zero_optimization"]["stage3_prefetch_bucket_size"] = 0;
    config::ParseOptions parse;
    parse.world = kWorld;
    const plan::ZeroConfig zero = config::parse_config(spec.config.dump(), parse).zero;
    const plan::ModelPlan model = plan::build_model_plan(spec.model);
    std::vector<plan::TrafficParam> params;
    for (const plan::ParamPlan& param : model.params) {
      params.push_back({param.shape, param.elems <= zero.param_persistence_threshold, !param.trainable});
    }
    plan::TrafficInput input;
    input.topology = {kWorld, 2};
    const plan::StepTraffic expected = plan::step_traffic(params, zero, input);
    const TrainingRun run = train(spec);
    for (const RankRun& rank : run.ranks) {
      ASSERT_EQ(rank.error, "");
      plan::Traffic gathered;
      for (const plan::Traffic& traffic : rank.volume.gathers) {
        gathered.elems += traffic.elems;
        gathered.bytes += traffic.bytes;
      }
      plan::Traffic planned;
      for (const plan::Traffic& traffic : expected.gathers()) {
        planned.elems += spec.steps * traffic.elems;
        planned.bytes += spec.steps * traffic.bytes;
      }
      EXPECT_EQ(gathered.elems, planned.elems);
      EXPECT_EQ(gathered.bytes, planned.bytes);
    }
  }
}

// hpZ: two of four ranks share a copy, so each holds two of the four shards of every frozen parameter, in the
// groups in which they rest.
TEST(QuantizedFrozen, SecondaryCopiesAreInt8Too) {
  constexpr std::uint32_t kWorld = 4;
  constexpr std::uint32_t kGroup = 2;
  for (const bool rounded : {false, true}) {
    RunSpec spec = spec_of(Freeze::adapters, kWorld, "bf16",
                           {{"zero_hpz_partition_size", kGroup}, {"stage3_param_persistence_threshold", 0}});
    if (rounded) spec = quantized(spec);
    std::size_t copies = 0;
    for (const plan::ParamPlan& param : plan::build_model_plan(spec.model).params) {
      if (param.trainable) continue;  // their copies end with the step
      const std::int64_t shard = plan::partition_param(param.elems, kWorld).shard_elems;
      const plan::QuantGroups groups = plan::weight_groups(shard);
      const std::int64_t bytes = rounded ? (2 * shard + 15) / 16 * 16 + 2 * groups.groups * 4 : 2 * shard * 2;
      copies += (static_cast<std::size_t>(bytes) + device::Arena::kAlignment - 1) /
                device::Arena::kAlignment * device::Arena::kAlignment;
    }
    for (const RankRun& rank : train(spec).ranks) {
      ASSERT_EQ(rank.error, "");
      EXPECT_EQ(rank.secondary_after, copies) << rounded;
    }
  }
}

TEST(QuantizedFrozen, RestsAsTheEstimateSays) {
  constexpr std::uint32_t kWorld = 3;
  for (const std::string type : {"fp32", "bf16"}) {
    const RunSpec base = quantized(spec_of(Freeze::adapters, kWorld, type));
    const plan::ModelPlan model = plan::build_model_plan(base.model);
    const plan::StageEstimateInput input = stage_estimate_of(model, base.config, kWorld, type);
    std::int64_t bytes = 0;
    for (const plan::StageEstimate& row : plan::estimate_stages(input)) {
      if (row.stage != 3) continue;
      SCOPED_TRACE(type + (row.offload_optimizer ? " optimizer" : "") +
                   (row.offload_param ? " parameters" : ""));
      RunSpec spec = base;
      if (row.offload_optimizer) spec.config["zero_optimization"]["offload_optimizer"] = kCpu;
      if (row.offload_param) spec.config["zero_optimization"]["offload_param"] = kCpu;
      const TrainingRun run = train(spec);
      for (const RankRun& rank : run.ranks) {
        ASSERT_EQ(rank.error, "");
        const std::size_t rounding = 7 * device::Arena::kAlignment;  // one for each kind of state
        EXPECT_GE(rank.state_bytes_after, static_cast<std::size_t>(row.model_states));
        EXPECT_LE(rank.state_bytes_after, static_cast<std::size_t>(row.model_states) + rounding);
        EXPECT_GE(rank.pinned_state_bytes, static_cast<std::size_t>(row.pinned / kWorld));
        EXPECT_LE(rank.pinned_state_bytes, static_cast<std::size_t>(row.pinned / kWorld) + rounding);
      }
      ++bytes;
    }
    EXPECT_GE(bytes, 2) << "rows of stage 3";
    // Little more than a byte an element, and the estimate knows it.
    std::vector<std::int64_t> elems;
    for (const plan::ParamPlan& param : model.params) elems.push_back(param.elems);
    const std::int64_t frozen = model.elems - plan::trainable_elems(model);
    const std::int64_t rest =
        plan::frozen_rest_bytes(elems, plan::trainable_params(model), input.zero, kWorld, input.bytes.param);
    EXPECT_GE(rest * kWorld, frozen);
    EXPECT_LE(rest * kWorld, frozen + frozen / 5);
  }
}

class QuantizedFrozenCheckpoint : public CheckpointedRun {};

// In 16 bits what was rounded is rounded to itself again.
TEST_F(QuantizedFrozenCheckpoint, GoesOnBitwise) {
  for (const std::string type : {"bf16", "fp16"}) {
    SCOPED_TRACE(type);
    std::filesystem::remove_all(folder_);
    const auto made = [&](std::int64_t steps) {
      RunSpec spec = quantized(this->spec(make_config(3, 1, type), 3, steps));
      spec.model = frozen_model("mlp", Freeze::adapters);
      return spec;
    };
    const TrainingRun whole = train(made(4));
    expect_no_error(whole);
    expect_no_error(train(saving(made(2))));
    EXPECT_EQ(difference_of_ends(whole, train(continuing(made(2)))), "");
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::frozen_quantized_test
