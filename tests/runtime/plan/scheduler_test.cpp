// Properties of the stage-3 scheduler over random trees, limits and interruptions, checked by an independent
// account of what memory holds.
#include "runtime/plan/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include "runtime/plan/compare_schedulers.h"
#include "runtime/plan/visit_order.h"
#include "tests/runtime/plan/random_model.h"
#include "tests/runtime/plan/scheduler_account.h"

namespace shardscope::plan {
namespace {

using testing_support::Account;
using testing_support::RandomModel;

SchedulerConfig random_config(RandomModel& random, const ModelPlan& model) {
  const auto limit = [&]() -> std::int64_t {
    switch (random.draw(6)) {
      case 0:
        return 0;
      case 1:
        return 1'000'000'000;
      default:
        return random.draw(static_cast<std::uint32_t>(2 * model.elems));
    }
  };
  SchedulerConfig config;
  config.prefetch_bucket_elems = limit();
  config.max_live_elems = limit();
  config.max_reuse_distance_elems = limit();
  config.param_persistence_elems = random.chance(60) ? 0 : random.draw(200);
  if (random.chance(20)) config.model_persistence_elems = random.draw(500);
  return config;
}

/// One rank, a few, and more than there are elements in most parameters.
std::uint32_t random_world(RandomModel& random) {
  constexpr std::array<std::uint32_t, 8> kWorlds{1, 2, 3, 4, 5, 8, 64, 1000};
  return kWorlds[random.draw(kWorlds.size())];
}

/// The shards that are large enough rest on NVMe, as place_shards() has it, and pass through few buffers or
/// enough for all.
void put_on_nvme(SchedulerConfig& config, RandomModel& random, const ModelPlan& model, std::uint32_t world) {
  const std::int64_t least = 1 + random.draw(static_cast<std::uint32_t>(1 + model.elems / 4 / world));
  for (const ParamPlan& param : model.params) {
    config.on_nvme.push_back((param.elems + world - 1) / world >= least);
  }
  config.swap_buffers =
      random.chance(50) ? 1 + random.draw(4) : static_cast<std::uint32_t>(model.params.size());
}

struct Tally {
  int read_ahead = 0, prefetched_from_nvme = 0, waiting_for_nvme = 0, out_of_buffers = 0;
};

std::string run_random(std::uint32_t seed, Compat compat, Tally* tally = nullptr) {
  RandomModel random(seed);
  const ModelPlan model = random.make();
  SchedulerConfig config = random_config(random, model);
  config.compat = compat;
  const std::uint32_t world = random_world(random);
  if (random.chance(50)) put_on_nvme(config, random, model, world);
  Account account(model, config, world);
  const auto iterate = [&](std::int64_t iteration) {
    VisitOptions options;
    options.iteration = iteration;
    options.deepspeed_hooks = random.chance(30);
    account.begin();
    std::vector<Visit> visits = visit_order(model, options);
    if (random.chance(10)) {
      // Evaluation: forward only.
      visits.erase(std::find_if(visits.begin(), visits.end(),
                                [](const Visit& visit) {
                                  return visit.kind == VisitKind::pre_backward ||
                                         visit.kind == VisitKind::begin_recompute;
                                }),
                   visits.end());
    }
    account.run(visits);
    account.end_backward();
    if (!random.chance(70)) return;
    constexpr std::array<WeightChange, 4> kChanges{WeightChange::trainable, WeightChange::trainable,
                                                   WeightChange::none, WeightChange::all};
    account.step(kChanges[random.draw(kChanges.size())]);
  };
  bool out_of_buffers = false;
  try {
    for (std::int64_t iteration = 0; iteration < 8 && !testing::Test::HasFailure(); ++iteration) {
      iterate(iteration);
    }
    if (!testing::Test::HasFailure()) account.step();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(compat, Compat::shardscope) << error.what();
    EXPECT_NE(std::string(error.what()).find("raise buffer_count"), std::string::npos) << error.what();
    EXPECT_LT(config.swap_buffers, model.params.size()) << "enough for all";
    out_of_buffers = true;
  }
  if (tally != nullptr) {
    tally->read_ahead += account.read_ahead();
    tally->prefetched_from_nvme += account.prefetched_from_nvme();
    tally->waiting_for_nvme += account.waiting_for_nvme();
    tally->out_of_buffers += out_of_buffers ? 1 : 0;
  }
  return account.log();
}

class Properties : public testing::TestWithParam<Compat> {};

TEST_P(Properties, HoldOverRandomTrees) {
  Tally tally;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    (void)run_random(seed, GetParam(), &tally);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(tally.read_ahead, 1000);
  EXPECT_GT(tally.prefetched_from_nvme, 100);
  EXPECT_GT(tally.waiting_for_nvme, 100);
  EXPECT_EQ(tally.out_of_buffers > 0, GetParam() != Compat::shardscope);
}

// What the random trees are made of: every kind of module whose order or ownership is special.
TEST(RandomTrees, HoldEveryKind) {
  std::map<std::string, int> seen;
  const std::function<void(const NodeSpec&)> look = [&](const NodeSpec& node) {
    seen["conditional"] += node.kind == NodeKind::conditional ? 1 : 0;
    seen["reused"] += node.kind == NodeKind::reuse ? 1 : 0;
    seen["functional"] += node.kind == NodeKind::functional_linear ? 1 : 0;
    seen["tied"] += node.kind == NodeKind::linear && !node.weight_of.empty() ? 1 : 0;
    seen["returns"] += node.returns.empty() ? 0 : 1;
    seen["leaf"] += node.leaf ? 1 : 0;
    seen["checkpoint"] += node.checkpoint ? 1 : 0;
    seen["frozen"] += node.trainable == false ? 1 : 0;
    seen["frozen weight"] += node.trainable_weight == false ? 1 : 0;
    seen["frozen bias"] += node.trainable_bias == false ? 1 : 0;
    seen["trained in a frozen block"] += node.trainable == true && node.name != "ln_f" ? 1 : 0;
    for (const NodeSpec& child : node.children) look(child);
  };
  for (std::uint32_t seed = 0; seed < 400; ++seed) look(RandomModel(seed).make().spec.root);
  for (const char* kind : {"conditional", "reused", "functional", "tied", "returns", "leaf", "checkpoint",
                           "frozen", "frozen weight", "frozen bias", "trained in a frozen block"}) {
    EXPECT_GT(seen[kind], 20) << kind;
  }
}

TEST_P(Properties, RanksDecideAlikeInAnyWorld) {
  for (std::uint32_t seed = 3000; seed < 3040; ++seed) {
    RandomModel random(seed);
    const ModelPlan model = random.make();
    SchedulerConfig config = random_config(random, model);
    config.compat = GetParam();
    put_on_nvme(config, random, model, 2);
    config.swap_buffers = static_cast<std::uint32_t>(model.params.size());
    std::set<std::string> logs;
    for (const std::uint32_t world : {1U, 2U, 2U, 5U, 64U, 1000U}) {  // two of one world: two of its ranks
      Account account(model, config, world);
      for (std::int64_t iteration = 0; iteration < 4; ++iteration) {
        VisitOptions options;
        options.iteration = iteration;
        account.begin();
        account.run(visit_order(model, options));
        account.end_backward();
        account.step();
      }
      logs.insert(account.log());
    }
    ASSERT_EQ(logs.size(), 1U) << "seed " << seed;
  }
}

TEST_P(Properties, SameInputsGiveTheSameDecisions) {
  for (std::uint32_t seed = 1000; seed < 1030; ++seed) {
    ASSERT_EQ(run_random(seed, GetParam()), run_random(seed, GetParam())) << "seed " << seed;
  }
}

TEST_P(Properties, SteadyTraceRepeatsItself) {
  for (std::uint32_t seed = 2000; seed < 2100; ++seed) {
    RandomModel random(seed);
    const ModelPlan model = random.make();
    SchedulerConfig config = random_config(random, model);
    config.compat = GetParam();
    Account account(model, config, 2);
    std::string previous;
    for (int iteration = 0; iteration < 5; ++iteration) {
      account.begin();
      account.run(visit_order(model));  // iteration 0 each time: nothing is skipped
      account.end_backward();
      account.step();
      const std::string log = account.take_log();
      if (iteration >= 3) {
        ASSERT_EQ(log, previous) << "seed " << seed;
      }
      if (iteration >= 1) {
        ASSERT_EQ(account.scheduler().mode(), TraceMode::complete) << "seed " << seed;
      }
      previous = log;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Compat, Properties,
                         testing::Values(Compat::shardscope, Compat::deepspeed, Compat::notes),
                         [](const auto& which) -> std::string { return to_string(which.param); });

// The descriptions of the coordinator say nothing that DeepSpeed does not do.
TEST(Notes, DecideAsDeepSpeed) {
  for (std::uint32_t seed = 4000; seed < 4040; ++seed) {
    ASSERT_EQ(run_random(seed, Compat::notes), run_random(seed, Compat::deepspeed)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace shardscope::plan
