// Gathered parameters (P14) and models that fit on no rank (P2).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <vector>

#include "runtime/plan/memory_model.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::gathered_test {
namespace {

RunSpec spec_of(int stage, std::uint32_t world, const std::string& type) {
  RunSpec spec;
  spec.model = model_named("mlp");
  spec.config = make_config(stage, 1, type);
  // Some parameters persist, so that both kinds are gathered.
  if (stage == 3) spec.config["zero_optimization"]["stage3_param_persistence_threshold"] = 100;
  spec.world = world;
  spec.steps = 3;
  return spec;
}

const std::vector<plan::ParamId> kSome{plan::ParamId{0}, plan::ParamId{3}, plan::ParamId{20}};

// After step 1 rank 1 changes three parameters; what others write is not taken.
void change_on_rank_1(Engine& engine, const Context& context, const StepResult& step) {
  if (step.step != 1) return;
  engine.with_gathered(kSome, std::min(1U, context.world() - 1), [&](std::span<const Engine::Gathered> all) {
    ASSERT_EQ(all.size(), 3U);
    for (const Engine::Gathered& param : all) {
      ASSERT_EQ(static_cast<std::int64_t>(param.values.size()), context.elems_of(param.id));
      for (float& value : param.values) {
        value = context.rank() + 1 == std::min(2U, context.world()) ? value * 2 : 1e9F;
      }
    }
  });
}

TEST(GatheredParameters, ChangesOfTheModifierReachEveryRankInEveryStage) {
  for (const std::string type : {"fp32", "bf16"}) {
    for (const std::uint32_t world : {1U, 3U}) {
      RunSpec spec = spec_of(0, world, type);
      const TrainingRun unchanged = train(spec);
      spec.between_steps = change_on_rank_1;
      const TrainingRun reference = train(spec);
      EXPECT_NE(first_difference(unchanged, reference), "");
      for (const int stage : {1, 2, 3}) {
        spec = spec_of(stage, world, type);
        spec.between_steps = change_on_rank_1;
        EXPECT_EQ(first_difference(reference, train(spec)), "") << type << world << " stage " << stage;
      }
    }
  }
}

TEST(GatheredParameters, AreTheWeightsAndWithoutModifierStayThem) {
  for (const int stage : {0, 1, 2, 3}) {
    RunSpec spec = spec_of(stage, 3, "bf16");
    const TrainingRun reference = train(spec);
    std::vector<std::vector<float>> seen(3);
    spec.between_steps = [&](Engine& engine, const Context& context, const StepResult& step) {
      if (step.step + 1 != spec.steps) return;
      const std::vector<plan::ParamId> one{plan::ParamId{4}};
      engine.with_gathered(one, std::nullopt, [&](std::span<const Engine::Gathered> all) {
        seen[context.rank()].assign(all[0].values.begin(), all[0].values.end());
        std::fill(all[0].values.begin(), all[0].values.end(), 7.0F);
      });
    };
    const TrainingRun looked = train(spec);
    EXPECT_EQ(first_difference(reference, looked), "") << stage;
    for (const auto& values : seen) EXPECT_EQ(values, looked.weights[4]) << stage;
  }
}

TEST(GatheredParameters, NestOnlyIfTheyShareNothing) {
  RunSpec spec = spec_of(3, 2, "fp32");
  const TrainingRun reference = train(spec);
  std::vector<std::string> refused(2);
  spec.between_steps = [&](Engine& engine, const Context& context, const StepResult&) {
    engine.with_gathered(kSome, std::nullopt, [&](std::span<const Engine::Gathered>) {
      const std::vector<plan::ParamId> other{plan::ParamId{5}};
      engine.with_gathered(other, 0, [](std::span<const Engine::Gathered>) {});
      const std::vector<plan::ParamId> again{plan::ParamId{7}, plan::ParamId{20}};
      try {
        engine.with_gathered(again, 0, [](std::span<const Engine::Gathered>) { FAIL() << "was gathered"; });
      } catch (const std::logic_error& error) {
        refused[context.rank()] = error.what();
      }
    });
    EXPECT_EQ(context.device.pinned().used_bytes(instrumentation::MemoryCategory::param_gathered), 0U);
  };
  EXPECT_EQ(first_difference(reference, train(spec)), "");
  for (const std::string& text : refused) {
    EXPECT_NE(text.find("out.weight is gathered already"), std::string::npos) << text;
  }
}

// Pinned memory is enough for the first of two parameters: it is not left as gathered.
TEST(GatheredParameters, AreAllGivenBackWhereOneOfThemFails) {
  RunSpec spec = spec_of(3, 2, "fp32");
  const TrainingRun reference = train(spec);
  std::vector<std::string> failed(2);
  spec.between_steps = [&](Engine& engine, const Context& context, const StepResult& step) {
    if (step.step != 1) return;
    device::Arena& pinned = context.device.pinned();
    const std::size_t limit = pinned.limit_bytes();
    const std::vector<plan::ParamId> two{plan::ParamId{1}, plan::ParamId{4}};
    const auto none = [](std::span<const Engine::Gathered>) {};
    // Room for the bias of 64 elements and for what its gather takes; the weight has 16 384.
    const auto take = [&](std::size_t bytes) {
      return pinned.allocate(bytes, {instrumentation::MemoryCategory::temporary, instrumentation::kNoId},
                             context.device.gather());
    };
    device::Buffer room = take(16'384);
    pinned.set_limit(pinned.reserved_bytes());
    std::vector<device::Buffer> filler;
    try {
      for (;;) filler.push_back(take(device::Arena::kAlignment));
    } catch (const std::exception&) {
      room.reset();
    }
    try {
      engine.with_gathered(two, 0, none);
    } catch (const std::exception& error) {
      failed[context.rank()] = error.what();
    }
    filler.clear();
    pinned.set_limit(limit);
    engine.with_gathered(two, std::nullopt, none);
  };
  EXPECT_EQ(first_difference(reference, train(spec)), "");
  for (const std::string& text : failed) EXPECT_NE(text.find("param_gathered"), std::string::npos) << text;
}

// `param.all_gather()` and `param.partition()` as single calls: each rank keeps its part of what it has.
TEST(SingleCalls, GatherAndPartitionAParameter) {
  for (const int stage : {0, 1, 2, 3}) {
    RunSpec spec = spec_of(stage, 3, "bf16");
    const TrainingRun reference = train(spec);
    const auto change = [&](Engine::Updated updated) {
      return [updated](Engine& engine, const Context& context, const StepResult& step) {
        if (step.step != 1) return;
        const std::span<float> whole = engine.all_gather(plan::ParamId{3});
        ASSERT_EQ(static_cast<std::int64_t>(whole.size()), context.elems_of(plan::ParamId{3}));
        for (float& value : whole) value *= 2;
        engine.partition(plan::ParamId{3}, updated);
        EXPECT_EQ(context.device.pinned().used_bytes(instrumentation::MemoryCategory::param_gathered), 0U);
      };
    };
    spec.between_steps = change(Engine::Updated::no);
    EXPECT_EQ(first_difference(reference, train(spec)), "") << "stage " << stage << ": changes are lost";
    spec.between_steps = change(Engine::Updated::yes);
    const TrainingRun changed = train(spec);
    EXPECT_NE(first_difference(reference, changed), "") << "stage " << stage;
    spec.between_steps = [](Engine& engine, const Context&, const StepResult& step) {
      if (step.step != 1) return;
      const std::vector<plan::ParamId> one{plan::ParamId{3}};
      engine.with_gathered(one, 0, [](std::span<const Engine::Gathered> all) {
        for (float& value : all[0].values) value *= 2;
      });
    };
    EXPECT_EQ(first_difference(train(spec), changed), "") << "stage " << stage << ": as with_gathered";
  }
}

TEST(SingleCalls, AreRefusedWhereTheyMakeNoSense) {
  RunSpec spec = spec_of(3, 2, "fp32");
  spec.between_steps = [](Engine& engine, const Context& context, const StepResult& step) {
    const auto refused = [](const auto& call) {
      try {
        call();
      } catch (const std::exception& error) {
        return std::string(error.what());
      }
      return std::string("not refused");
    };
    const auto has = [](const std::string& text, const char* part) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    };
    // The output layer's bias is one number; other parameters are not, and a new one cannot be.
    std::uint32_t last = 0;
    while (context.model.params[last].elems != 1) ++last;
    std::array<double, 1> sum{engine.item(plan::ParamId{last})};
    context.control_comm.all_reduce_host(sum);
    EXPECT_EQ(sum[0], 2.0 * engine.item(plan::ParamId{last})) << "the same on both ranks";
    has(refused([&] { static_cast<void>(engine.item(plan::ParamId{3})); }),
        "only a parameter of one element");
    has(refused([&] { static_cast<void>(engine.all_gather(plan::ParamId{999})); }),
        "none can be added to it");
    has(refused([&] { engine.partition(plan::ParamId{3}, Engine::Updated::no); }), "not whole by a call");
    if (step.step + 1 < 3) return;
    static_cast<void>(engine.all_gather(plan::ParamId{3}));
    has(refused([&] { static_cast<void>(engine.all_gather(plan::ParamId{3})); }), "gathered already");
    const auto no_data = [](data::HostBatch&) { FAIL() << "the step was made"; };
    has(refused([&] { static_cast<void>(engine.step(no_data, StopRequest::go_on)); }), "partition it first");
    engine.partition(plan::ParamId{3}, Engine::Updated::no);
  };
  EXPECT_EQ(train(spec).ranks[0].error, "");
}

// ---- zero.Init -------------------------------------------------------------------------------------------

// 4.2 million parameters are 17 MB of fp32 weights and 68 MB of model states. Over five ranks with 60 000
// live elements a rank gets by with less than the weights alone; stages 0 and 2 do not.
TEST(ModelLargerThanARank, TrainsAtStage3WithinALimitBelowItsWeights) {
  RunSpec spec;
  spec.model = plan::parse_model_spec(R"({
    "name": "deep", "input": {"kind": "vectors", "width": 10}, "loss": {"kind": "mse", "width": 1},
    "root": {"kind": "sequential", "children": [
      {"kind": "linear", "name": "in", "in": 10, "out": 64},
      {"kind": "list", "name": "h", "repeat": 128, "children": [
        {"kind": "sequential", "type": "Block", "children": [
          {"kind": "residual", "children": [{"kind": "linear", "name": "fc", "in": 64, "out": 256},
                                            {"kind": "relu"},
                                            {"kind": "linear", "name": "proj", "in": 256, "out": 64}]}]}]},
      {"kind": "linear", "name": "out", "in": 64, "out": 1}]}})");
  const plan::ModelPlan model = plan::build_model_plan(spec.model);
  spec.world = 5;
  spec.steps = 2;
  // make_config's limits: 60 000 live elements at most and the module that runs, buckets of one module.
  spec.config = make_config(3);
  spec.config["zero_optimization"]["reduce_bucket_size"] = 20'000;
  const TrainingRun reference = [&] {
    RunSpec whole = spec;
    whole.config = make_config(0);
    return train(whole);
  }();

  const auto weights = static_cast<std::size_t>(model.elems) * 4;
  const std::size_t limit = weights - (std::size_t{1} << 19);
  std::vector<std::size_t> peak(spec.world, 0);
  spec.limit_bytes = limit;
  spec.after_step = [&](const Context& context, const StepResult&) {
    peak[context.rank()] = context.device.memory().peak_bytes();
  };
  const TrainingRun limited = train(spec);
  EXPECT_EQ(first_difference(reference, limited), "");
  for (const std::size_t bytes : peak) {
    // Never whole: the shards of all states, what may be gathered, and one module's gradients and
    // activations.
    EXPECT_LE(bytes, 4 * weights / 5 + 4 * (60'000 + 16'640 + 3 * 20'000 + 128 * 4 * 576) + 300'000U);
    EXPECT_LT(bytes, limit);
  }
  for (const int stage : {0, 2}) {
    spec.config = make_config(stage);
    EXPECT_NE(train(spec).ranks[0].error.find("limit"), std::string::npos) << stage;
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::gathered_test
