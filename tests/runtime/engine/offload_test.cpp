// Offloading moves model states and changes no bit: losses and weights are those of the same run with all
// states on the device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <stdexcept>

#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::offload_test {
namespace {

using ::testing::HasSubstr;

RunSpec spec_of(const std::string& model, std::uint32_t world, Json config) {
  RunSpec spec;
  spec.model = model_named(model);
  spec.config = std::move(config);
  spec.world = world;
  spec.data = model.rfind("gpt", 0) == 0 ? "golden:gpt" : "golden:mlp";
  spec.steps = 3;
  return spec;
}

Json offloading(Json config, const Json& optimizer, const Json& param = nullptr) {
  Json& zero = config["zero_optimization"];
  if (!optimizer.is_null()) zero["offload_optimizer"] = optimizer;
  if (!param.is_null()) zero["offload_param"] = param;
  return config;
}

struct Case {
  int stage;
  std::uint32_t world;
  int accumulation;
  std::string type;
};

class OffloadToHost : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] Json config() const {
    const Case& c = GetParam();
    Json config = make_config(c.stage, c.accumulation, c.type);
    config["zero_optimization"]["reduce_bucket_size"] =
        9000;  // several buckets, some gradients by themselves
    if (c.stage == 3) config["zero_optimization"]["sub_group_size"] = 9000;
    return config;
  }
  void same_as_without(const Json& with) const {
    const TrainingRun reference = train(spec_of("mlp", GetParam().world, config()));
    EXPECT_EQ(first_difference(reference, train(spec_of("mlp", GetParam().world, with))), "");
  }
};

TEST_P(OffloadToHost, OptimizerIsBitwiseTheSame) {
  same_as_without(offloading(config(), {{"device", "cpu"}}));
}

TEST_P(OffloadToHost, PageableMemoryIsBitwiseTheSame) {
  same_as_without(offloading(config(), {{"device", "cpu"}, {"pin_memory", false}}));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int stage : {1, 2, 3}) {
    for (const std::uint32_t world : {1U, 2U, 3U, 4U}) {
      all.push_back({stage, world, world % 2 == 0 ? 3 : 1, "fp32"});
      all.push_back({stage, world, world % 2 == 0 ? 1 : 3, world < 3 ? "bf16" : "fp16"});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cases, OffloadToHost, ::testing::ValuesIn(cases()), [](const auto& c) {
  return "stage" + std::to_string(c.param.stage) + "_world" + std::to_string(c.param.world) + "_gas" +
         std::to_string(c.param.accumulation) + "_" + c.param.type;
});

/// A folder on a disk, gone with this object.
class Folder {
 public:
  Folder() : path_(::testing::TempDir() + "shardscope-offload-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp " + path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::string path_;
};

struct NvmeCase {
  std::uint32_t world;
  int accumulation;
  std::string type;
  bool read, write;
  int buffer_count;
};

class OptimizerOnNvme : public ::testing::TestWithParam<NvmeCase> {};

TEST_P(OptimizerOnNvme, IsBitwiseTheSame) {
  const Folder folder;
  const NvmeCase& c = GetParam();
  Json config = make_config(3, c.accumulation, c.type);
  config["zero_optimization"]["sub_group_size"] = 5000;
  const TrainingRun reference = train(spec_of("mlp", c.world, config));
  const Json optimizer{{"device", "nvme"},         {"nvme_path", folder.path()},
                       {"pipeline_read", c.read},  {"pipeline_write", c.write},
                       {"ratio", c.read ? 1 : .6}, {"buffer_count", c.buffer_count}};
  RunSpec spec = spec_of("mlp", c.world, offloading(config, optimizer));
  EXPECT_EQ(first_difference(reference, train(spec)), "");
  EXPECT_TRUE(folder.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Cases, OptimizerOnNvme,
    ::testing::Values(NvmeCase{1, 3, "fp32", false, false, 4}, NvmeCase{2, 1, "fp32", true, false, 4},
                      NvmeCase{3, 3, "bf16", false, true, 4}, NvmeCase{4, 1, "fp16", true, true, 4},
                      NvmeCase{1, 1, "bf16", true, true, 1}, NvmeCase{2, 3, "fp32", true, true, 9}),
    [](const auto& c) {
      return "world" + std::to_string(c.param.world) + "_" + c.param.type + (c.param.read ? "_read" : "") +
             (c.param.write ? "_write" : "") + "_buffers" + std::to_string(c.param.buffer_count);
    });

TEST_P(OffloadToHost, ParametersAreBitwiseTheSame) {
  if (GetParam().stage != 3) return;  // offload_param needs stage 3
  same_as_without(offloading(config(), nullptr, {{"device", "cpu"}}));
  Json persistent = config();
  persistent["zero_optimization"]["stage3_param_persistence_threshold"] = 300;
  const Json with = offloading(persistent, {{"device", "cpu"}}, {{"device", "cpu"}, {"pin_memory", false}});
  EXPECT_EQ(first_difference(train(spec_of("mlp", GetParam().world, persistent)),
                             train(spec_of("mlp", GetParam().world, with))),
            "");
}

struct ParamCase {
  std::uint32_t world;
  int accumulation;
  std::string type;
  int buffers;
  std::string optimizer;
};

class ParametersOnNvme : public ::testing::TestWithParam<ParamCase> {};

TEST_P(ParametersOnNvme, AreBitwiseTheSame) {
  const Folder folder;
  const ParamCase& c = GetParam();
  Json config = make_config(3, c.accumulation, c.type);
  Json& zero = config["zero_optimization"];
  zero["stage3_prefetch_bucket_size"] = 600000;
  zero["stage3_max_live_parameters"] = 2000000;
  RunSpec spec = spec_of("mlp", c.world, config);
  spec.model = wide_model();
  const TrainingRun reference = train(spec);
  const Json optimizer =
      c.optimizer == "none"
          ? Json(nullptr)
          : Json{{"device", c.optimizer}, {"nvme_path", folder.path()}, {"pipeline_read", true}};
  spec.config = offloading(config, optimizer,
                           {{"device", "nvme"}, {"nvme_path", folder.path()}, {"buffer_count", c.buffers}});
  EXPECT_EQ(first_difference(reference, train(spec)), "");
  EXPECT_TRUE(folder.empty());
}

INSTANTIATE_TEST_SUITE_P(Cases, ParametersOnNvme,
                         ::testing::Values(ParamCase{1, 2, "fp32", 5, "none"},
                                           ParamCase{2, 1, "fp32", 1, "cpu"},
                                           ParamCase{1, 1, "bf16", 2, "nvme"},
                                           ParamCase{2, 3, "fp32", 3, "nvme"}),
                         [](const auto& c) {
                           return "world" + std::to_string(c.param.world) + "_" + c.param.type + "_buffers" +
                                  std::to_string(c.param.buffers) + "_optimizer_" + c.param.optimizer;
                         });

std::string swap_config_error(const std::string& folder,
                              const std::function<void(const Context&, const StepResult&)>& after) {
  Json config = make_config(3);
  config["zero_optimization"]["sub_group_size"] = 5000;
  RunSpec spec = spec_of("mlp", 2, offloading(config, {{"device", "nvme"}, {"nvme_path", folder}}));
  spec.steps = 1000;
  spec.after_step = after;
  const TrainingRun run = train(spec);
  for (const RankRun& rank : run.ranks) {
    if (rank.error.empty()) return "a rank went on";
  }
  return run.ranks[0].error + " | " + run.ranks[1].error;
}

TEST(OffloadFailure, AFolderThatIsNotThereEndsAllRanks) {
  EXPECT_THAT(swap_config_error("/nowhere/at/all", {}),
              HasSubstr("nvme_path /nowhere/at/all: cannot make a swap file"));
}

// The disk fails in the middle of the run: the swap file of one rank ends before what is read. After each
// step again: it may be the other rank's, which writes at that moment and makes it long again.
TEST(OffloadFailure, ALostSwapFileEndsAllRanks) {
  const Folder folder;
  const auto cut_one_file = [&](const Context& context, const StepResult& result) {
    if (context.rank() != 1 || result.step < 1) return;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const auto target = std::filesystem::read_symlink(entry.path(), gone);
      if (!gone && target.string().rfind(folder.path(), 0) == 0) {
        EXPECT_EQ(truncate(entry.path().c_str(), 0), 0);
        return;
      }
    }
    ADD_FAILURE() << "no swap file is open";
  };
  EXPECT_THAT(swap_config_error(folder.path(), cut_one_file), HasSubstr("cannot read"));
}

// DeepSpeed's buffers are held until the parameter is released; ours only for the copy.
TEST(OffloadFailure, NotEnoughBuffersIsSaidInCompatOnly) {
  const Folder folder;
  RunSpec spec = spec_of("mlp", 1, make_config(3));
  spec.model = wide_model();
  spec.steps = 2;
  Json& zero = spec.config["zero_optimization"];
  zero["offload_param"] = {{"device", "nvme"}, {"nvme_path", folder.path()}, {"buffer_count", 1}};
  zero["stage3_max_reuse_distance"] = 100000000;
  EXPECT_EQ(train(spec).ranks[0].error, "");
  spec.config["shardscope"] = {{"compat", "deepspeed"}};
  EXPECT_THAT(train(spec).ranks[0].error, HasSubstr("raise buffer_count"));
}

// Sums in another type than gradients, and the first layout of stage 1, take ways of their own.
TEST(OffloadVariants, OtherTypesAndLayouts) {
  for (const int stage : {1, 2, 3}) {
    Json config = make_config(stage, 3, "bf16");
    config["data_types"] = {{"grad_accum_dtype", "fp32"}};
    const TrainingRun reference = train(spec_of("mlp", 3, config));
    EXPECT_EQ(first_difference(reference, train(spec_of("mlp", 3, offloading(config, {{"device", "cpu"}})))),
              "")
        << "stage " << stage;
  }
  Json config = make_config(1, 2);
  config["zero_optimization"]["legacy_stage1"] = true;
  config["zero_optimization"]["max_elements_per_comm"] = 20000;
  const TrainingRun reference = train(spec_of("mlp", 3, config));
  EXPECT_EQ(first_difference(reference, train(spec_of("mlp", 3, offloading(config, {{"device", "cpu"}})))),
            "");
}

// Twin-Flow: the device updates the first sub-groups, the host the others.
TEST(OffloadRatio, IsBitwiseTheSame) {
  for (const std::string type : {"fp32", "bf16"}) {
    Json config = make_config(3, 3, type);
    config["zero_optimization"]["sub_group_size"] = 5000;
    const TrainingRun reference = train(spec_of("gpt", 3, config));
    for (const double ratio : {0.0, 0.3, 0.9}) {
      const Json with = offloading(config, {{"device", "cpu"}, {"ratio", ratio}});
      EXPECT_EQ(first_difference(reference, train(spec_of("gpt", 3, with))), "") << type << ' ' << ratio;
    }
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::offload_test
