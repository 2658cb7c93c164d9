// What the comparison of two schedulers says, where they part and where they do not.
#include "runtime/plan/compare_schedulers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "runtime/plan/scheduler.h"
#include "runtime/plan/visit_driver.h"
#include "runtime/plan/visit_order.h"
#include "tests/runtime/plan/random_model.h"

namespace shardscope::plan {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::RandomModel;

// DeepSpeed's prefetch passes the live limit by one parameter; ours stops before it and fetches that one when
// it is needed.
TEST(CompareSchedulers, NamesTheBoundaryAndTheParameters) {
  const ModelPlan model = build_model_plan(named_model("mlp"));
  SchedulerConfig config;
  config.param_persistence_elems = 0;
  config.prefetch_bucket_elems = 50'000;
  config.max_live_elems = 40'000;
  config.max_reuse_distance_elems = 0;
  const SchedulerComparison comparison =
      compare_schedulers(model, 2, config, Compat::shardscope, Compat::deepspeed);
  ASSERT_FALSE(comparison.differences.empty());
  EXPECT_LE(comparison.first.peak_elems, 40'000);
  EXPECT_GT(comparison.second.peak_elems, 40'000);
  EXPECT_THAT(comparison.differences[0].text, HasSubstr("before the root, forward: shardscope prefetches "));
  EXPECT_THAT(comparison.differences[0].text, HasSubstr("deepspeed inp.weight, inp.bias"));
  EXPECT_THAT(comparison.summary("ours", "theirs"), HasSubstr("ours and theirs differ at "));
}

TEST(CompareSchedulers, SaysNothingWhereTheyDecideAlike) {
  // Without limits and prefetch there is nothing to decide.
  SchedulerConfig config;
  config.param_persistence_elems = 0;
  config.prefetch_bucket_elems = 0;
  config.max_reuse_distance_elems = 0;
  const ModelPlan model = build_model_plan(named_model("mlp"));
  const SchedulerComparison alike =
      compare_schedulers(model, 2, config, Compat::shardscope, Compat::deepspeed);
  EXPECT_THAT(alike.differences, IsEmpty());
  EXPECT_EQ(alike.summary("a", "b"), "");
  EXPECT_EQ(alike.first.gathers, alike.second.gathers);
}

// Of two visits in one forward DeepSpeed is notified of the end of one backward; ours of both. A
// recomputation is a forward, so that there each visit is notified.
TEST(CompareSchedulers, OfTwoVisitsOneEndIsNotifiedUnlessRecomputed) {
  const auto model = [](bool checkpoint) {
    const std::string block = checkpoint ? R"("checkpoint": true, )" : "";
    return build_model_plan(parse_model_spec(R"({
      "name": "twice", "input": {"kind": "vectors", "width": 4}, "loss": {"kind": "mse", "width": 1},
      "root": {"kind": "sequential", "children": [
        {"kind": "linear", "name": "in", "in": 4, "out": 4},
        {"kind": "sequential", "name": "block", "type": "Block", )" +
                                             block + R"("children": [
          {"kind": "linear", "name": "fc", "in": 4, "out": 4}]},
        {"kind": "reuse", "target": "block"},
        {"kind": "linear", "name": "out", "in": 4, "out": 1}]}})"));
  };
  SchedulerConfig config;
  config.param_persistence_elems = 0;
  config.prefetch_bucket_elems = 0;
  config.max_reuse_distance_elems = 0;
  const auto difference = [&](bool checkpoint) {
    return compare_schedulers(model(checkpoint), 2, config, Compat::shardscope, Compat::deepspeed)
        .differences;
  };
  const auto differences = difference(false);
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(differences[0].text,
            "after block.fc, backward: shardscope releases block.fc.weight, block.fc.bias (20 elements), "
            "deepspeed nothing");
  EXPECT_THAT(difference(true), IsEmpty());
}

// No module boundary, but a gather that only one of them makes.
TEST(CompareSchedulers, FrozenPersistentParametersAfterTheStep) {
  const ModelPlan model = build_model_plan(parse_model_spec(R"({
      "name": "m", "input": {"kind": "vectors", "width": 4}, "loss": {"kind": "mse", "width": 1},
      "root": {"kind": "sequential", "children": [
        {"kind": "linear", "name": "a", "in": 4, "out": 4},
        {"kind": "linear", "name": "b", "in": 4, "out": 1, "trainable": {"weight": false}}]}})"));
  const auto differences =
      compare_schedulers(model, 2, SchedulerConfig{}, Compat::shardscope, Compat::deepspeed).differences;
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(differences[0].text,
            "after the optimizer step: shardscope gathers a.weight, a.bias, b.bias (21 elements), deepspeed "
            "a.weight, a.bias, b.weight, ... 4 in all (25 elements)");
}

// The documents describe DeepSpeed's scheduler: they decide alike on any tree. What differs is always said.
TEST(CompareSchedulers, OnRandomTrees) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    RandomModel random(seed);
    const ModelPlan model = random.make();
    SchedulerConfig config;
    config.param_persistence_elems = random.draw(100);
    config.prefetch_bucket_elems = random.draw(static_cast<std::uint32_t>(model.elems));
    config.max_live_elems = random.draw(static_cast<std::uint32_t>(model.elems));
    config.max_reuse_distance_elems = random.draw(static_cast<std::uint32_t>(model.elems));
    EXPECT_THAT(compare_schedulers(model, 2, config, Compat::notes, Compat::deepspeed).differences,
                IsEmpty());
    const SchedulerComparison comparison =
        compare_schedulers(model, 2, config, Compat::shardscope, Compat::deepspeed);
    const bool same_totals = comparison.first.gathers == comparison.second.gathers &&
                             comparison.first.gathered_elems == comparison.second.gathered_elems;
    EXPECT_TRUE(same_totals || !comparison.differences.empty()) << seed;
  }
}

// Where DeepSpeed itself keeps to the limit, ours waits for no more gathers and moves no more; and ours keeps
// to the limit always, beside what the running modules need.
TEST(CompareSchedulers, OursIsNeverBehindWhereTheLimitIsKept) {
  int kept = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    RandomModel random(seed);
    const ModelPlan model = random.make();
    const auto some = [&] { return random.draw(static_cast<std::uint32_t>(2 * model.elems)); };
    SchedulerConfig config;
    config.param_persistence_elems = random.chance(50) ? 0 : random.draw(100);
    config.prefetch_bucket_elems = some();
    config.max_live_elems = some();
    config.max_reuse_distance_elems = some();
    const SchedulerComparison comparison =
        compare_schedulers(model, 2, config, Compat::shardscope, Compat::deepspeed);
    if (comparison.second.peak_elems > config.max_live_elems) continue;
    ++kept;
    EXPECT_LE(comparison.first.on_demand, comparison.second.on_demand) << seed;
    EXPECT_LE(comparison.first.gathered_elems, comparison.second.gathered_elems) << seed;
    EXPECT_LE(comparison.first.peak_elems, config.max_live_elems) << seed;
  }
  EXPECT_GT(kept, 50);
}

/// Totals of the third iteration under DeepSpeed's scheduler and hooks, counted without the comparison.
SchedulerTotals totals_of_deepspeed(const ModelPlan& model, SchedulerConfig config) {
  config.compat = Compat::deepspeed;
  FetchScheduler scheduler(model, 2, config);
  VisitDriver driver(scheduler);
  SchedulerTotals totals;
  VisitOptions hooks;
  hooks.deepspeed_hooks = true;
  for (int iteration = 0; iteration < 3; ++iteration) {
    totals = {};
    const auto count = [&](const Gather& gather) {
      if (gather.id == kNone<GatherId>) return;
      ++totals.gathers;
      totals.gathered_elems += gather.elems;
    };
    const auto fetched = [&](const FetchPlan& plan) {
      count(plan.gather);
      count(plan.prefetch);
      totals.on_demand += plan.gather.id != kNone<GatherId> ? 1 : 0;
      totals.peak_elems = std::max(totals.peak_elems, scheduler.resident_elems());
    };
    (void)driver.begin_iteration();
    totals.peak_elems = scheduler.resident_elems();
    for (const Visit& visit : visit_order(model, hooks)) {
      if (const VisitDecision decision = driver.take(visit); decision.fetch) fetched(*decision.fetch);
    }
    count(driver.end_step());
  }
  return totals;
}

// DeepSpeed's hooks fetch a module once more for each parameter that it returned and that was read outside:
// these fetches prefetch too.
TEST(CompareSchedulers, DeepSpeedFetchesForReturnedParametersOnceMore) {
  int returned = 0;
  VisitOptions hooks;
  hooks.deepspeed_hooks = true;
  const auto backwards = [](const std::vector<Visit>& visits) {
    return std::count_if(visits.begin(), visits.end(),
                         [](const Visit& visit) { return visit.kind == VisitKind::pre_backward; });
  };
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    RandomModel random(seed);
    const ModelPlan model = random.make();
    SchedulerConfig config;
    config.param_persistence_elems = random.draw(100);
    // A parameter or two ahead: a larger bucket has brought all of them before the backward begins.
    config.prefetch_bucket_elems = 1 + random.draw(20);
    config.max_live_elems = model.elems;
    config.max_reuse_distance_elems = 0;
    const SchedulerTotals expected = totals_of_deepspeed(model, config);
    const SchedulerTotals found =
        compare_schedulers(model, 2, config, Compat::shardscope, Compat::deepspeed).second;
    EXPECT_EQ(found.gathers, expected.gathers) << seed;
    EXPECT_EQ(found.on_demand, expected.on_demand) << seed;
    EXPECT_EQ(found.gathered_elems, expected.gathered_elems) << seed;
    EXPECT_EQ(found.peak_elems, expected.peak_elems) << seed;
    returned += backwards(visit_order(model)) < backwards(visit_order(model, hooks)) ? 1 : 0;
  }
  EXPECT_GT(returned, 20);
}

}  // namespace
}  // namespace shardscope::plan
