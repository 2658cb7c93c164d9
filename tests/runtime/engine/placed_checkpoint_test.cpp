// Checkpoints of runs whose states are not all on the device: on NVMe, in host memory, and with ZenFlow
// partly waiting. Continuing is the same as never having stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/runtime/engine/checkpointed_run.h"

namespace shardscope::engine::testing::placed_checkpoint_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PlacedStates : public CheckpointedRun {
 protected:
  PlacedStates() : swap_(folder_.string() + "-swap") { fs::create_directories(swap_); }
  ~PlacedStates() override { fs::remove_all(swap_); }

  /// Stage 3 with optimizer and parameters at these places. Three sub-groups, pieces smaller than one.
  [[nodiscard]] Json placed(const std::string& type, const std::string& optimizer,
                            const std::string& param) const {
    Json config = make_config(3, 1, type);
    Json& zero = config["zero_optimization"];
    zero["sub_group_size"] = 20000;
    zero["offload_optimizer"] = {
        {"device", optimizer}, {"nvme_path", swap_.string()}, {"pipeline_read", true}};
    if (param != "none") zero["offload_param"] = {{"device", param}, {"nvme_path", swap_.string()}};
    config["aio"] = {{"block_size", 4096}};
    return config;
  }
  fs::path swap_;
};

TEST_F(PlacedStates, ContinueBitwiseAtTheSameWorld) {
  for (const std::string type : {"fp32", "bf16"}) {
    const TrainingRun whole = train(spec(make_config(3, 1, type), 2, 5));
    for (const std::string optimizer : {"nvme", "cpu"}) {
      for (const std::string param : {"none", "cpu", "nvme"}) {
        fs::remove_all(folder_);
        const Json config = placed(type, optimizer, param);
        expect_no_error(train(saving(spec(config, 2, 2))));
        EXPECT_EQ(difference_of_ends(whole, train(continuing(spec(config, 2, 3)))), "")
            << type << " optimizer on " << optimizer << ", parameters on " << param;
      }
    }
  }
}

TEST_F(PlacedStates, ContinueBitwiseAtAnotherStageAndPlace) {
  const TrainingRun whole = train(spec(make_config(0), 2, 4));
  expect_no_error(train(saving(spec(placed("fp32", "nvme", "nvme"), 2, 2))));
  for (const int stage : {0, 1, 2, 3}) {
    EXPECT_EQ(difference_of_ends(whole, train(continuing(spec(make_config(stage), 2, 2)))), "")
        << "from NVMe to stage " << stage;
  }
  for (const int stage : {0, 1, 2, 3}) {
    fs::remove_all(folder_);
    expect_no_error(train(saving(spec(make_config(stage), 2, 2))));
    EXPECT_EQ(difference_of_ends(whole, train(continuing(spec(placed("fp32", "nvme", "cpu"), 2, 2)))), "")
        << "from stage " << stage << " to NVMe";
  }
}

TEST_F(PlacedStates, AreTheSameAtEveryWorld) {
  for (const std::string type : {"fp32", "bf16"}) {
    fs::remove_all(folder_);
    expect_no_error(train(saving(spec(placed(type, "nvme", "nvme"), 3, 3))));
    const auto first = states_in(folder_);
    ASSERT_TRUE(std::any_of(first[1].begin(), first[1].end(), [](float x) { return x != 0; }));
    for (const std::uint32_t world : {2U, 5U, 1U}) {
      for (const std::string param : {"none", "cpu", "nvme"}) {
        expect_no_error(train(saving(continuing(spec(placed(type, "nvme", param), world, 0)))));
        EXPECT_EQ(checkpoint::CheckpointReader(folder_).manifest().world, world);
        EXPECT_TRUE(first == states_in(folder_)) << type << " world " << world << " parameters on " << param;
      }
    }
  }
}

Json zenflow(Json config, const Json& settings) {
  config["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}};
  config["zero_optimization"]["zenflow"] = settings;
  return config;
}

struct Waiting {
  int stage;
  std::string type;
  Json settings;
  std::string param = "none";
};

// Saved after every step of two intervals: with sums of every length, with an update in flight that the
// parameters lack, before and after columns are chosen anew, in the warm-up.
TEST_F(PlacedStates, ZenFlowContinuesBitwiseFromEveryStep) {
  const Json fixed{
      {"topk_ratio", 0.2}, {"update_interval", 2}, {"select_strategy", "step"}, {"select_interval", 4}};
  Json beside = fixed;
  beside["overlap_step"] = true;
  beside["full_warm_up_rounds"] = 1;
  Json away = beside;
  away["offload"] = true;
  const Json votes{{"topk_ratio", 0.3}, {"auto_ratio", 0.5}, {"overlap_step", true}};
  for (const Waiting& c : {Waiting{1, "bf16", fixed},
                           {2, "fp32", beside},
                           {3, "bf16", beside},
                           {2, "fp16", votes},
                           {3, "fp32", votes},
                           {3, "bf16", beside, "cpu"},
                           {3, "fp32", away, "nvme"}}) {
    Json config = zenflow(make_config(c.stage, 1, c.type), c.settings);
    config["zero_optimization"]["stage3_param_persistence_threshold"] = 300;
    if (c.param != "none") {
      config["zero_optimization"]["offload_param"] = {{"device", c.param}, {"nvme_path", swap_.string()}};
    }
    const TrainingRun whole = train(spec(config, 2, 8));
    for (std::int64_t made = 1; made <= 6; ++made) {
      fs::remove_all(folder_);
      expect_no_error(train(saving(spec(config, 2, made))));
      EXPECT_EQ(difference_of_ends(whole, train(continuing(spec(config, 2, 8 - made)))), "")
          << "stage " << c.stage << " " << c.type << " after " << made << " steps, " << c.settings;
    }
  }
}

// Saving must not change the run that goes on.
TEST_F(PlacedStates, ZenFlowIsNotDisturbedBySaving) {
  const Json config = zenflow(make_config(2, 1, "bf16"),
                              {{"topk_ratio", 0.2}, {"update_interval", 3}, {"overlap_step", true}});
  const TrainingRun whole = train(spec(config, 2, 8));
  RunSpec saved = spec(config, 2, 8);
  saved.between_steps = [](Engine& engine, const Context& context, const StepResult&) {
    const auto layout = plan::checkpoint_layout(engine.ownership(), context.model.params.size());
    engine.read_states(layout[context.rank()], [](base::StateKind, std::int64_t, std::span<const float>) {});
  };
  EXPECT_EQ(first_difference(whole, train(saved)), "");
}

// Where columns are about to be chosen anew nothing belongs to the old partition.
TEST_F(PlacedStates, ZenFlowContinuesAtAnotherWorldWhereColumnsAreChosenAnew) {
  const Json settings{{"topk_ratio", 0.2},
                      {"update_interval", 2},
                      {"select_strategy", "step"},
                      {"select_interval", 4},
                      {"overlap_step", true}};
  const Json config = zenflow(make_config(2), settings);
  for (const std::int64_t made : {4, 8}) {
    fs::remove_all(folder_);
    expect_no_error(train(saving(spec(config, 2, made))));
    const auto first = states_in(folder_);
    for (const std::uint32_t world : {3U, 1U}) {
      for (const int stage : {1, 3}) {
        expect_no_error(train(saving(continuing(spec(zenflow(make_config(stage), settings), world, 0)))));
        EXPECT_TRUE(first == states_in(folder_)) << "world " << world << " stage " << stage;
        EXPECT_TRUE(checkpoint::CheckpointReader(folder_).manifest().progress.zenflow->unpublished);
      }
    }
    expect_no_error(train(continuing(spec(zenflow(make_config(3), settings), 3, 5))));
  }
}

TEST_F(PlacedStates, ZenFlowRefusesWhatItCouldNotDoExactly) {
  const Json settings{
      {"topk_ratio", 0.2}, {"update_interval", 3}, {"select_strategy", "step"}, {"select_interval", 6}};
  const Json config = zenflow(make_config(2), settings);
  const auto error_of = [&](const Json& other, std::uint32_t world) {
    return train(continuing(spec(other, world, 1))).ranks[0].error;
  };
  expect_no_error(train(saving(spec(config, 2, 2))));
  EXPECT_THAT(error_of(config, 3), HasSubstr("continue with the same ranks, stage and layout"));
  EXPECT_THAT(error_of(zenflow(make_config(3), settings), 2), HasSubstr("each select_interval"));
  EXPECT_THAT(error_of(make_config(2), 2),
              HasSubstr("the gradients of 2 steps wait for ZenFlow's next update"));
  Json narrow = config;
  narrow["zero_optimization"]["zenflow"]["topk_ratio"] = 0.1;
  EXPECT_THAT(error_of(narrow, 2), HasSubstr("topk_ratio"));
  Json soon = config;
  soon["zero_optimization"]["zenflow"]["update_interval"] = 2;
  soon["zero_optimization"]["zenflow"]["select_interval"] = 2;
  EXPECT_THAT(error_of(soon, 2), HasSubstr("continue with the settings the run had"));
  EXPECT_EQ(error_of(config, 2), "");
  // After an update nothing waits: any run may go on.
  fs::remove_all(folder_);
  expect_no_error(train(saving(spec(config, 2, 3))));
  EXPECT_EQ(error_of(make_config(1), 3), "");
  // And ZenFlow may go on from any run.
  fs::remove_all(folder_);
  expect_no_error(train(saving(spec(make_config(3), 3, 2))));
  EXPECT_EQ(error_of(config, 2), "");
}

}  // namespace
}  // namespace shardscope::engine::testing::placed_checkpoint_test
