// Checkpoints of whole runs: continuing is the same as never having stopped, at the same world bitwise, and
// at any other world and stage with exactly the same states.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/safetensors.h"
#include "tests/runtime/engine/checkpointed_run.h"

namespace shardscope::engine::testing::checkpoint_test {
namespace {

namespace fs = std::filesystem;

Json scheduled(Json config) {
  config["scheduler"] = {{"type", "WarmupLR"},
                         {"params", {{"warmup_num_steps", 6}, {"warmup_max_lr", 1e-3}}}};
  return config;
}

TEST_F(CheckpointedRun, ContinuesBitwiseAtTheSameWorld) {
  for (const std::string type : {"fp32", "bf16"}) {
    for (const int stage : {0, 1, 2, 3}) {
      for (const int accumulation : {1, 3}) {
        const Json config = scheduled(make_config(stage, accumulation, type));
        fs::remove_all(folder_);
        const TrainingRun whole = train(spec(config, 2, 5));
        expect_no_error(train(saving(spec(config, 2, 2))));
        EXPECT_EQ(difference_of_ends(whole, train(continuing(spec(config, 2, 3)))), "")
            << type << " stage " << stage << " accumulation " << accumulation;
      }
    }
  }
}

// The first scale overflows, so the checkpoint falls into the middle of hysteresis and window.
TEST_F(CheckpointedRun, ContinuesTheLossScaleAfterOverflows) {
  for (const int stage : {1, 3}) {
    for (const int accumulation : {1, 3}) {
      Json config = scheduled(make_config(stage, accumulation, "fp16"));
      config["fp16"]["initial_scale_power"] = 20;
      config["fp16"]["hysteresis"] = 3;
      config["fp16"]["loss_scale_window"] = 2;
      fs::remove_all(folder_);
      const TrainingRun whole = train(spec(config, 3, 14));
      const auto& steps = whole.ranks[0].steps;
      const auto skipped = [](const StepResult& step) { return step.skipped; };
      ASSERT_TRUE(std::any_of(steps.begin(), steps.begin() + 5, skipped)) << "the test needs overflows";
      ASSERT_FALSE(std::all_of(steps.begin() + 5, steps.end(), skipped)) << "the test needs updates";
      expect_no_error(train(saving(spec(config, 3, 5))));
      EXPECT_EQ(difference_of_ends(whole, train(continuing(spec(config, 3, 9)))), "")
          << "stage " << stage << " accumulation " << accumulation;
    }
  }
}

// Loading and saving again at another world and stage repartitions; nothing is computed in between.
TEST_F(CheckpointedRun, IsTheSameStateAtEveryWorldAndStage) {
  for (const std::string type : {"fp32", "bf16", "fp16"}) {
    fs::remove_all(folder_);
    expect_no_error(train(saving(spec(make_config(3, 1, type), 3, 3))));
    const auto first = states_in(folder_);
    std::int64_t not_zero = 0;
    for (const auto& state : first)
      not_zero += std::count_if(state.begin(), state.end(), [](float x) { return x != 0; });
    ASSERT_GT(not_zero, 0);
    // Between the stages, each after another: layouts that put the same elements on other ranks.
    std::vector<Json> layouts;
    const Json legacy{{"legacy_stage1", true}, {"max_elements_per_comm", 7001}};  // many intervals
    const Json round_robin{{"round_robin_gradients", true}};
    for (const auto& [stage, zero] : {std::pair{0, Json::object()},
                                      {1, legacy},
                                      {1, Json::object()},
                                      {2, round_robin},
                                      {3, Json::object()},
                                      {1, round_robin},
                                      {1, legacy},
                                      {2, Json::object()}}) {
      layouts.push_back(make_config(stage, 1, type));
      layouts.back()["zero_optimization"].update(zero);
    }
    for (const std::uint32_t world : {2U, 5U, 1U}) {
      for (const Json& config : layouts) {
        const Json& zero = config["zero_optimization"];
        const auto stage = zero["stage"].get<std::uint32_t>();
        expect_no_error(train(saving(continuing(spec(config, world, 0)))));
        const checkpoint::CheckpointReader reader(folder_);
        EXPECT_EQ(reader.manifest().world, world);
        EXPECT_EQ(reader.manifest().stage, stage);
        EXPECT_EQ(reader.manifest().progress.step, 3);
        EXPECT_TRUE(first == states_in(folder_)) << type << ' ' << zero << " world " << world;
      }
    }
  }
}

// Stages are the same computation, so a run may change its stage and still be the run it was.
TEST_F(CheckpointedRun, ContinuesBitwiseAtAnotherStage) {
  const TrainingRun whole = train(spec(make_config(0), 2, 4));
  for (const int saved : {0, 1, 2, 3}) {
    fs::remove_all(folder_);
    expect_no_error(train(saving(spec(make_config(saved), 2, 2))));
    for (const int stage : {0, 1, 2, 3}) {
      EXPECT_EQ(difference_of_ends(whole, train(continuing(spec(make_config(stage), 2, 2)))), "")
          << "stage " << saved << " to " << stage;
    }
  }
}

// Where several ranks own the same elements each is written once; states in host memory are the same states.
TEST_F(CheckpointedRun, IsTheSameStateWithCopiesAndOffload) {
  expect_no_error(train(saving(spec(make_config(3), 3, 3))));
  const auto first = states_in(folder_);
  Json mics = make_config(3);
  mics["zero_optimization"]["mics_shard_size"] = 2;
  Json offload = make_config(2);
  offload["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}};
  for (const Json& config : {mics, offload}) {
    expect_no_error(train(saving(continuing(spec(config, 4, 0)))));
    EXPECT_TRUE(first == states_in(folder_)) << config["zero_optimization"];
  }
}

TEST_F(CheckpointedRun, OfAnotherModelIsRefused) {
  expect_no_error(train(saving(spec(make_config(2), 2, 1))));
  RunSpec other = continuing(spec(make_config(2), 2, 1));
  other.model = model_named("gpt-mini");
  other.data = "golden:gpt";
  const std::string error = train(other).ranks[0].error;
  EXPECT_NE(error.find("is of another model"), std::string::npos) << error;
  EXPECT_NE(error.find("continue with the model the run began with"), std::string::npos) << error;
  EXPECT_NE(error.find("parameter 0"), std::string::npos) << error;
}

// Two ranks save, three go on, with data whose epoch is not a multiple of any batch: what is read after the
// checkpoint is what the first run had not read.
TEST_F(CheckpointedRun, OfARunThatHadDivergedIsRefused) {
  for (const int stage : {0, 3}) {
    RunSpec diverged = saving(spec(make_config(stage), 2, 1));
    diverged.begin = [](const Context&, Engine& engine, data::BatchStream&) {
      engine.set_weights([](plan::ParamId, plan::Range range, float* out) {
        std::fill_n(out, range.size(), std::numeric_limits<float>::quiet_NaN());
      });
    };
    expect_no_error(train(diverged));
    const TrainingRun run = train(continuing(spec(make_config(stage), 2, 2)));
    for (const RankRun& rank : run.ranks) {
      EXPECT_NE(rank.error.find("is nan: the run had diverged when it was saved"), std::string::npos)
          << rank.error;
    }
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(CheckpointedRun, GoesOnInTheDataWhereItStood) {
  fs::create_directories(folder_);
  const fs::path text = folder_ / "text.txt";
  std::string letters;
  for (int i = 0; letters.size() < 61 * 8; ++i) letters += std::to_string(i * 7919) + " ";
  std::ofstream(text) << letters;
  const auto order = [&](std::uint32_t world, std::int64_t batches, data::StreamState from) {
    std::vector<std::vector<std::int32_t>> samples;
    std::vector<std::unique_ptr<data::BatchStream>> ranks;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      data::StreamOptions options;
      options.path = text.string();
      options.micro_batch = 2;
      options.context = 8;
      options.rank = rank;
      options.world = world;
      ranks.push_back(data::open_stream(model_named("gpt-mini"), options));
      ranks.back()->restore(from);
    }
    data::HostBatch batch;
    for (std::int64_t i = 0; i < batches; ++i) {
      for (auto& rank : ranks) {
        rank->next(batch);
        for (std::ptrdiff_t row = 0; row < batch.B; ++row) {
          samples.emplace_back(batch.tokens.begin() + row * batch.T,
                               batch.tokens.begin() + (row + 1) * batch.T);
        }
      }
    }
    return std::pair(samples, ranks[0]->state());
  };
  const auto [all, end] = order(1, 30, {});
  const auto [before, at] = order(2, 6, {});
  const auto [after, later] = order(3, 6, at);
  std::vector<std::vector<std::int32_t>> joined = before;
  joined.insert(joined.end(), after.begin(), after.end());
  EXPECT_TRUE(joined == all);
  EXPECT_EQ(later.position, end.position);
}

}  // namespace
}  // namespace shardscope::engine::testing::checkpoint_test
