// Checkpoints of models with frozen parameters: the frozen weights are in them, once, and every world and
// stage goes on from them.
#include "runtime/checkpoint/consolidate.h"
#include "runtime/checkpoint/safetensors.h"
#include "tests/runtime/engine/checkpointed_run.h"
#include "tests/runtime/engine/frozen_model.h"

namespace shardscope::engine::testing::frozen_checkpoint_test {
namespace {

class FrozenCheckpoint : public CheckpointedRun {
 protected:
  [[nodiscard]] RunSpec frozen(Json config, std::uint32_t world, std::int64_t steps) const {
    RunSpec made = spec(std::move(config), world, steps);
    made.model = frozen_model("mlp", Freeze::adapters);
    return made;
  }
};

TEST_F(FrozenCheckpoint, GoesOnBitwise) {
  for (const std::string type : {"fp32", "bf16"}) {
    for (const int stage : {0, 1, 2, 3}) {
      SCOPED_TRACE(type + " stage " + std::to_string(stage));
      std::filesystem::remove_all(folder_);
      const TrainingRun whole = train(frozen(make_config(stage, 1, type), 3, 4));
      expect_no_error(whole);
      expect_no_error(train(saving(frozen(make_config(stage, 1, type), 3, 2))));
      const TrainingRun tail = train(continuing(frozen(make_config(stage, 1, type), 3, 2)));
      EXPECT_EQ(difference_of_ends(whole, tail), "");
    }
  }
}

TEST_F(FrozenCheckpoint, HoldsFrozenWeightsOnceAndGoesToAnyWorldAndStage) {
  const Json cpu = {{"device", "cpu"}, {"pin_memory", false}};
  expect_no_error(train(saving(frozen(make_config(2), 3, 2))));
  const checkpoint::CheckpointReader reader(folder_);
  const plan::ModelPlan model = plan::build_model_plan(frozen_model("mlp", Freeze::adapters));
  std::uintmax_t bytes = 0;
  for (const checkpoint::RankFile& file : reader.manifest().files) bytes += file.bytes;
  const auto tensors = static_cast<std::uintmax_t>(4 * model.elems + 8 * plan::trainable_elems(model));
  EXPECT_GE(bytes, tensors);
  EXPECT_LE(bytes, tensors + 3 * 1024);

  std::vector<std::vector<float>> saved;
  for (const plan::ParamPlan& param : model.params) {
    EXPECT_EQ(reader.manifest().params[plan::raw(param.id)].trainable, param.trainable);
    saved.emplace_back(static_cast<std::size_t>(param.elems));
    reader.read(base::StateKind::master, param.id, {0, param.elems}, saved.back().data());
    if (param.trainable) continue;
    float momentum = 0;
    EXPECT_THROW(reader.read(base::StateKind::momentum, param.id, {0, 1}, &momentum),
                 checkpoint::CheckpointError);
  }
  for (const std::uint32_t world : {1U, 2U, 4U}) {
    for (const int stage : {0, 1, 3}) {
      for (const bool offload : {false, true}) {
        if (offload && stage != 3) continue;
        SCOPED_TRACE("world " + std::to_string(world) + " stage " + std::to_string(stage));
        Json config = make_config(stage);
        if (offload) config["zero_optimization"]["offload_param"] = cpu;
        const TrainingRun loaded = train(continuing(frozen(config, world, 0)));
        expect_no_error(loaded);
        EXPECT_EQ(loaded.weights, saved);
      }
    }
  }
  const std::string file = (folder_ / "weights.safetensors").string();
  checkpoint::consolidate(folder_.string(), file);
  const checkpoint::SafetensorsReader whole(file);
  for (const plan::ParamPlan& param : model.params) {
    const checkpoint::TensorInfo* const found = whole.find(param.name);
    ASSERT_NE(found, nullptr) << param.name;
    std::vector<float> values(static_cast<std::size_t>(found->elems));
    whole.read(*found, 0, values);
    EXPECT_EQ(values, saved[plan::raw(param.id)]) << param.name;
  }
}

TEST_F(FrozenCheckpoint, OfShardsOnNvmeToo) {
  const auto wide = [&](RunSpec made) {
    made.model = wide_model();
    for (plan::NodeSpec& child : made.model.root.children) {
      child.trainable = &child == &made.model.root.children.front();
    }
    Json& zero = made.config["zero_optimization"];
    zero["offload_param"] = {{"device", "nvme"}, {"nvme_path", ::testing::TempDir()}, {"pin_memory", true}};
    return made;
  };
  const TrainingRun whole = train(wide(spec(make_config(3), 2, 2)));
  expect_no_error(whole);
  expect_no_error(train(saving(wide(spec(make_config(3), 2, 1)))));
  EXPECT_EQ(difference_of_ends(whole, train(continuing(wide(spec(make_config(3), 2, 1))))), "");
}

TEST_F(FrozenCheckpoint, IsRefusedWhereOtherParametersAreFrozen) {
  expect_no_error(train(saving(frozen(make_config(1), 2, 1))));
  RunSpec other = continuing(spec(make_config(1), 2, 1));
  const std::string error = train(other).ranks[0].error;
  EXPECT_NE(error.find("inp.weight was frozen and is not frozen now"), std::string::npos) << error;
  EXPECT_NE(error.find("--init"), std::string::npos) << error;
}

}  // namespace
}  // namespace shardscope::engine::testing::frozen_checkpoint_test
