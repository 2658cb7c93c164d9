// ZenFlow in whole training runs: where it may change nothing it changes no bit; where it defers, training
// still learns.
#include <gtest/gtest.h>

#include "tests/runtime/engine/expected_zenflow.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::zenflow_test {
namespace {

RunSpec spec_of(int stage, std::uint32_t world, const std::string& type, const Json& zenflow) {
  RunSpec spec;
  spec.model = model_named("mlp");
  spec.config = make_config(stage, 1, type);
  spec.world = world;
  spec.steps = 7;
  spec.config["zero_optimization"]["reduce_bucket_size"] = 9000;
  if (!zenflow.is_null()) {
    spec.config["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}};
    spec.config["zero_optimization"]["zenflow"] = zenflow;
  }
  return spec;
}

struct Case {
  int stage;
  std::uint32_t world;
  std::string type;
};
class ZenFlow : public ::testing::TestWithParam<Case> {
 protected:
  void same_as_plain(const Json& zenflow) const {
    const auto& [stage, world, type] = GetParam();
    EXPECT_EQ(first_difference(train(spec_of(stage, world, type, nullptr)),
                               train(spec_of(stage, world, type, zenflow))),
              "")
        << zenflow;
  }
};

TEST_P(ZenFlow, EverythingChosenIsAdamW) {
  for (const bool overlap : {false, true}) {
    same_as_plain({{"topk_ratio", 1.0}, {"update_interval", 3}, {"overlap_step", overlap}});
  }
}

TEST_P(ZenFlow, NothingDeferredIsAdamWWhateverIsChosen) {
  same_as_plain(
      {{"topk_ratio", 0.3}, {"select_strategy", "step"}, {"select_interval", 2}, {"update_interval", 1}});
  same_as_plain({{"topk_ratio", 0.1}, {"update_interval", 1}, {"full_warm_up_rounds", 3}});
}

INSTANTIATE_TEST_SUITE_P(Cases, ZenFlow,
                         ::testing::Values(Case{1, 1, "fp32"}, Case{1, 3, "bf16"}, Case{2, 2, "fp16"},
                                           Case{2, 3, "fp32"}, Case{3, 2, "fp32"}, Case{3, 3, "bf16"}),
                         [](const auto& c) {
                           return "stage" + std::to_string(c.param.stage) + "_world" +
                                  std::to_string(c.param.world) + "_" + c.param.type;
                         });

/// Where parameters and the states of what is chosen rest changes no bit, deferred or not.
class ZenFlowPlaced : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto& [stage, world, type] = GetParam();
    for (const Json& zenflow : {Json{{"topk_ratio", 0.2},
                                     {"select_strategy", "step"},
                                     {"select_interval", 4},
                                     {"update_interval", 2},
                                     {"full_warm_up_rounds", 1}},
                                Json{{"topk_ratio", 0.2}, {"auto_ratio", 0.5}, {"overlap_step", true}}}) {
      specs_.push_back(spec_of(stage, world, type, zenflow));
      // Some parameters persist on the device.
      specs_.back().config["zero_optimization"]["stage3_param_persistence_threshold"] = 300;
    }
  }
  template <typename Change>
  void same_with(const Change& change) const {
    for (const RunSpec& spec : specs_) {
      RunSpec placed = spec;
      change(placed.config["zero_optimization"]);
      EXPECT_EQ(first_difference(train(spec), train(placed)), "") << placed.config;
    }
  }
  std::vector<RunSpec> specs_;
};

TEST_P(ZenFlowPlaced, ParametersInHostMemory) {
  if (GetParam().stage != 3) return;  // offload_param needs stage 3
  same_with([](Json& zero) { zero["offload_param"] = {{"device", "cpu"}}; });
}

TEST_P(ZenFlowPlaced, ParametersOnNvme) {
  if (GetParam().stage != 3) return;
  for (RunSpec& spec : specs_) spec.model = wide_model();
  same_with([](Json& zero) {
    zero["offload_param"] = {{"device", "nvme"}, {"nvme_path", ::testing::TempDir()}, {"buffer_count", 2}};
  });
}

TEST_P(ZenFlowPlaced, ChosenStatesInHostMemory) {
  same_with([](Json& zero) { zero["zenflow"]["offload"] = true; });
}

// Between steps the device then holds none of the three states of what is chosen (O5): without `offload` it
// holds three floats for each element in a chosen column and each of a vector.
TEST_P(ZenFlowPlaced, ChosenStatesLeaveTheDevice) {
  for (const RunSpec& spec : specs_) {
    const auto device_states = [&](bool offload) {
      RunSpec placed = spec;
      placed.config["zero_optimization"]["zenflow"]["offload"] = offload;
      std::vector<std::size_t> bytes(spec.world);
      placed.between_steps = [&bytes](Engine& engine, const Context& context, const StepResult&) {
        engine.synchronize();
        bytes[context.rank()] = 0;
        for (const auto category :
             {instrumentation::MemoryCategory::master_weight, instrumentation::MemoryCategory::momentum,
              instrumentation::MemoryCategory::variance}) {
          bytes[context.rank()] += context.device.memory().used_bytes(category);
        }
      };
      const TrainingRun run = train(placed);
      for (const RankRun& rank : run.ranks) EXPECT_EQ(rank.error, "");
      return bytes;
    };
    const std::vector<std::size_t> with = device_states(true), without = device_states(false);
    for (std::uint32_t rank = 0; rank < spec.world; ++rank) {
      const ExpectedShare share =
          expected_share(mlp_shapes(), GetParam().stage, spec.world, rank, GetParam().type == "fp32" ? 4 : 2);
      std::int64_t held = 0;
      for (const ExpectedPiece& piece : share.pieces) held += piece.held(0.2);
      EXPECT_EQ(with[rank], 0U) << spec.config;
      EXPECT_GE(without[rank], 3 * sizeof(float) * static_cast<std::size_t>(held)) << spec.config;
      EXPECT_LE(without[rank],
                3 * (sizeof(float) * static_cast<std::size_t>(held) + device::Arena::kAlignment));
    }
  }
}

TEST_P(ZenFlowPlaced, ChosenStatesAndParametersInHostMemory) {
  if (GetParam().stage != 3) return;
  same_with([](Json& zero) {
    zero["zenflow"]["offload"] = true;
    zero["offload_param"] = {{"device", "cpu"}, {"pin_memory", false}};
  });
}

INSTANTIATE_TEST_SUITE_P(Cases, ZenFlowPlaced,
                         ::testing::Values(Case{2, 2, "bf16"}, Case{3, 1, "bf16"}, Case{3, 2, "fp32"},
                                           Case{3, 3, "fp16"}),
                         [](const auto& c) {
                           return "stage" + std::to_string(c.param.stage) + "_world" +
                                  std::to_string(c.param.world) + "_" + c.param.type;
                         });

/// Over all ranks and micro-steps from step `first` on.
double mean_loss(const TrainingRun& run, std::size_t first) {
  double sum = 0;
  std::size_t count = 0;
  for (const RankRun& rank : run.ranks) {
    EXPECT_EQ(rank.error, "");
    for (std::size_t step = first; step < rank.steps.size(); ++step) {
      for (const float loss : rank.steps[step].losses) sum += static_cast<double>(loss);
      count += rank.steps[step].losses.size();
    }
  }
  return sum / static_cast<double>(count);
}

// On text, with a tenth of the columns chosen and the rest one interval late, loss falls nearly as it does
// with every column in every step.
TEST(ZenFlowTraining, DeferringStillLearns) {
  const auto on_text = [](const Json& zenflow) {
    RunSpec spec = spec_of(2, 2, "fp32", zenflow);
    spec.model = model_named("gpt-mini");
    spec.data = SHARDSCOPE_TEXT;
    spec.init = "gpt2";
    spec.config["train_micro_batch_size_per_gpu"] = 2;
    spec.steps = 24;
    return train(spec);
  };
  constexpr std::size_t kLast = 18;
  const TrainingRun plain = on_text(nullptr);
  const double first = static_cast<double>(plain.ranks[0].steps[0].losses[0]);
  const double fallen = first - mean_loss(plain, kLast);
  ASSERT_GT(fallen, 0.5) << "the reference learns";
  for (const Json& zenflow : {Json{{"update_interval", 4},
                                   {"select_strategy", "step"},
                                   {"select_interval", 8},
                                   {"overlap_step", true}},
                              Json{{"overlap_step", true}}}) {
    const TrainingRun deferred = on_text(zenflow);
    EXPECT_GT(first - mean_loss(deferred, kLast), 0.5 * fallen) << zenflow;
  }
}

// What it holds beside the expressions of an offloaded optimizer, to the block: the chosen columns' states a
// second time, the owned gradients on the device, fp32 sums on the host.
TEST(ZenFlowMemory, IsWhatIsChosenAndWhatWaits) {
  using instrumentation::MemoryCategory;
  constexpr std::int64_t kBlock = 256;  // device::Arena::kAlignment
  const auto near = [](std::size_t measured, std::int64_t expected, std::int64_t buffers) {
    const auto bytes = static_cast<std::int64_t>(measured);
    return bytes >= expected && bytes < expected + buffers * kBlock;
  };
  const auto optimizer_states = [](device::Arena& memory) {
    return memory.used_bytes(MemoryCategory::master_weight) + memory.used_bytes(MemoryCategory::momentum) +
           memory.used_bytes(MemoryCategory::variance);
  };
  for (const int stage : {2, 3}) {
    for (const bool overlap : {false, true}) {
      for (const bool offload : {false, true}) {
        RunSpec spec = spec_of(
            stage, 2, "bf16",
            {{"topk_ratio", 0.2}, {"update_interval", 3}, {"overlap_step", overlap}, {"offload", offload}});
        spec.between_steps = [&](Engine&, const Context& context, const StepResult&) {
          std::int64_t capacity = 0;
          const ExpectedShare share = expected_share(mlp_shapes(), stage, 2, context.rank(), 2);
          for (const ExpectedPiece& piece : share.pieces) capacity += piece.held(0.2);
          ASSERT_GT(capacity, 0);
          const std::int64_t owned = share.elems;
          device::Arena& device = context.device.memory();
          device::Arena& host = context.device.pinned();
          const std::int64_t chosen = 12 * capacity;
          EXPECT_PRED3(near, optimizer_states(device), offload ? 0 : chosen, 3);
          EXPECT_PRED3(near, optimizer_states(host), 12 * owned + (offload ? chosen : 0), 6);
          EXPECT_PRED3(near, device.used_bytes(MemoryCategory::grad_shard), 2 * owned, 1);
          EXPECT_PRED3(near, host.used_bytes(MemoryCategory::grad_shard), 4 * owned * (overlap ? 2 : 1), 2);
        };
        for (const RankRun& rank : train(spec).ranks) EXPECT_EQ(rank.error, "");
      }
    }
  }
}

TEST(ZenFlowTraining, AccumulationIsReplaced) {
  RunSpec spec = spec_of(1, 2, "fp32", {{"update_interval", 2}});
  spec.config["gradient_accumulation_steps"] = 4;
  const TrainingRun run = train(spec);
  ASSERT_EQ(run.ranks[0].error, "");
  EXPECT_EQ(run.ranks[0].steps[0].losses.size(), 1U);
  EXPECT_EQ(run.ranks[0].used_after, 0U);
}

}  // namespace
}  // namespace shardscope::engine::testing::zenflow_test
