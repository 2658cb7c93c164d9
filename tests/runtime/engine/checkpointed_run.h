// Runs that save a checkpoint at their end or begin with one, in a folder of the test's own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/train/checkpointing.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing {

class CheckpointedRun : public ::testing::Test {
 protected:
  CheckpointedRun()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("checkpoint-" + std::to_string(::getpid()) + "-" +
                 file_name(::testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    std::filesystem::remove_all(folder_);
  }
  ~CheckpointedRun() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] RunSpec spec(Json config, std::uint32_t world, std::int64_t steps) const {
    RunSpec made;
    made.model = model_named("mlp");
    made.config = std::move(config);
    made.world = world;
    made.steps = steps;
    return made;
  }
  [[nodiscard]] RunSpec saving(RunSpec spec) const {
    spec.end = [this](const Context& context, Engine& engine, data::BatchStream& stream) {
      train::save_checkpoint(context, engine, stream, {folder_.string(), 0, 1});
    };
    return spec;
  }
  [[nodiscard]] RunSpec continuing(RunSpec spec) const {
    spec.begin = [this](const Context& context, Engine& engine, data::BatchStream& stream) {
      const checkpoint::CheckpointReader reader(folder_);
      train::load_checkpoint(context, engine, stream, reader);
    };
    return spec;
  }
  std::filesystem::path folder_;

 private:
  /// Names of tests with parameters hold a slash.
  static std::string file_name(std::string test) {
    std::replace(test.begin(), test.end(), '/', '-');
    return test;
  }
};

inline void expect_no_error(const TrainingRun& run) {
  for (const RankRun& rank : run.ranks) ASSERT_EQ(rank.error, "");
}

/// "" when `tail` is the end of `whole`, step by step, bitwise.
inline std::string difference_of_ends(TrainingRun whole, const TrainingRun& tail) {
  for (std::size_t rank = 0; rank < whole.ranks.size(); ++rank) {
    auto& steps = whole.ranks[rank].steps;
    const auto& last = tail.ranks[rank].steps;
    if (last.size() > steps.size()) return "more steps than the whole run";
    steps.erase(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(last.size()));
    for (std::size_t i = 0; i < last.size(); ++i) {
      if (steps[i].step != last[i].step || steps[i].loss_scale != last[i].loss_scale ||
          steps[i].learning_rate != last[i].learning_rate || steps[i].skipped != last[i].skipped) {
        return "step " + std::to_string(steps[i].step) + ": number, scale, rate or skip";
      }
    }
  }
  return first_difference(whole, tail);
}

/// Every state of every parameter, whole, as a checkpoint holds it.
inline std::vector<std::vector<float>> states_in(const std::filesystem::path& folder) {
  const checkpoint::CheckpointReader reader(folder);
  std::vector<std::vector<float>> states;
  for (std::uint32_t param = 0; param < reader.manifest().params.size(); ++param) {
    const std::int64_t elems = reader.manifest().params[param].elems;
    for (const base::StateKind kind : base::kStateKinds) {
      states.emplace_back(static_cast<std::size_t>(elems));
      reader.read(kind, plan::ParamId{param}, {0, elems}, states.back().data());
    }
  }
  return states;
}

}  // namespace shardscope::engine::testing
