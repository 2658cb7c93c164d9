// What the ranks compare before the first step, by ranks that are threads.
#include "runtime/train/rank_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "runtime/train/weight_sums.h"
#include "tests/runtime/comm/thread_ranks.h"

namespace shardscope::train {
namespace {

using shardscope::testing::RankOutcome;
using shardscope::testing::run_ranks;
using ::testing::HasSubstr;

/// Options whose value, or whose being given, is in compared_settings().
const std::vector<std::string> kCompared{"--model",
                                         "--data",
                                         "--eval-data",
                                         "--default-text",
                                         "--steps",
                                         "--seed",
                                         "--context",
                                         "--init",
                                         "--init-scheme",
                                         "--save",
                                         "--checkpoint",
                                         "--keep",
                                         "--resume",
                                         "--device",
                                         "--losses",
                                         "--run-id",
                                         "--checkpoint-every",
                                         "--fault"};
/// Options that a rank may have for itself: paths, what is printed and recorded. --config: what it says is
/// compared, not where it lies. --consolidate and --print-config train nothing.
const std::vector<std::string> kOfOneRank{
    "--config", "--config-name", "--overwrite", "--consolidate",        "--publish",     "--key",
    "--detail", "--quiet",       "--help",      "--collective-timeout", "--print-config"};

// An option that is added has to be entered in one of the two lists, and compared if it is in the first.
TEST(RankAgreement, EveryOptionIsComparedOrOfOneRank) {
  Options options;
  CLI::App app;
  declare(app, options);
  const auto in = [](const std::vector<std::string>& names, const std::string& name) {
    return std::count(names.begin(), names.end(), name);
  };
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = "--" + option->get_lnames().front();
    EXPECT_EQ(in(kCompared, name) + in(kOfOneRank, name), 1) << name;
  }
}

std::vector<RankOutcome> check(std::uint32_t world,
                               const std::function<std::vector<plan::RankSetting>(std::uint32_t)>& settings) {
  return run_ranks(world, {}, [&](comm::World& ranks, device::Device&) {
    check_same_settings(settings(ranks.rank()), *ranks.make_communicator("control"));
  });
}

TEST(RankAgreement, EveryRankGetsTheSameMessage) {
  // More than one exchange carries, so that its pieces are put together again.
  const std::string large(100'000, 'x');
  const auto settings = [&](std::uint32_t rank) {
    return std::vector<plan::RankSetting>{
        {"large", large, "", ""},
        {"--seed", rank >= 2 ? "5" : "4", "", "give every rank the same --seed"},
        {"last", "1", "note " + std::to_string(rank), ""}};
  };
  for (const RankOutcome& outcome : check(4, settings)) {
    EXPECT_EQ(outcome.error,
              "--seed: rank 2 has 5, rank 0 has 4; 2 of 4 ranks differ from rank 0; give every rank the same "
              "--seed");
  }
  for (const RankOutcome& outcome : check(2, settings)) EXPECT_EQ(outcome.error, "");
}

TEST(RankAgreement, ARankWithMoreOrFewerSettingsIsNamed) {
  const auto settings = [](std::uint32_t rank) {
    std::vector<plan::RankSetting> all{{"a", "1", "", ""}};
    if (rank == 1) all.push_back({"b", "2", "", ""});
    return all;
  };
  for (const RankOutcome& outcome : check(2, settings)) {
    EXPECT_THAT(outcome.error, HasSubstr("b: rank 1 has 2, rank 0 has no such setting"));
  }
}

// Copies of the same elements are compared, and nothing else: shards differ on every rank.
TEST(RankAgreement, CopiesOfInitialWeightsAreCompared) {
  const plan::ModelPlan model = plan::build_model_plan(plan::named_model("mlp"));
  const auto outcomes = [&](const plan::ZeroConfig& zero, std::int64_t odd_rank) {
    return run_ranks(4, {}, [&](comm::World& ranks, device::Device&) {
      const plan::Ownership ownership(model, zero, ranks.size());
      WeightSums sums(ownership);
      for (const plan::ParamPlan& param : model.params) {
        for (const plan::OwnedSlice& slice : ownership.slices(param.id, ranks.rank())) {
          std::vector<float> values(static_cast<std::size_t>(slice.elems),
                                    static_cast<float>(slice.param_offset));
          // The smallest difference there is.
          if (ranks.rank() == odd_rank && !values.empty())
            values.back() = std::nextafter(values.back(), 1e30F);
          sums.add(param.id, values.data(), slice.elems);
        }
      }
      sums.check(*ranks.make_communicator("control"));
    });
  };
  const auto expect = [&](const plan::ZeroConfig& zero, std::int64_t odd_rank, const std::string& text) {
    for (const RankOutcome& outcome : outcomes(zero, odd_rank)) {
      if (text.empty()) {
        EXPECT_EQ(outcome.error, "");
      } else {
        EXPECT_THAT(outcome.error, HasSubstr(text));
      }
    }
  };
  plan::ZeroConfig zero;
  expect(zero, -1, "");
  expect(zero, 2, "initial weights: rank 2 begins with others than rank 0");
  for (const std::uint32_t stage : {1U, 2U, 3U}) {
    zero.stage = stage;
    expect(zero, 2, "");
  }
  zero.mics_shard_size = 2;
  expect(zero, -1, "");
  expect(zero, 3, "initial weights: rank 3 begins with others than rank 1");
}

}  // namespace
}  // namespace shardscope::train
