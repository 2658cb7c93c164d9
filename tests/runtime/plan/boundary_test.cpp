// What happens exactly at a limit, one element before or after which something else happens: the scheduler's
// limits, buckets, sub-groups and the loss scale. Each of these was once broken by hand without any other
// test of the planners noticing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/bucket.h"
#include "runtime/plan/loss_scale.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/shard_layout.h"

namespace shardscope::plan {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

constexpr auto kForward = Direction::forward;

/// A root (module 0) with a module for each of `elems`, which has one parameter.
ModelPlan row_of(const std::vector<std::int64_t>& elems) {
  ModelPlan model;
  model.modules.push_back({ModuleId{0}, kNone<ModuleId>, "", "Root", {}, true, false, {}});
  for (std::uint32_t i = 0; i < elems.size(); ++i) {
    const ModuleId id{i + 1};
    const std::string path = "m" + std::to_string(i);
    model.modules.push_back({id, ModuleId{0}, path, "Linear", {ParamId{i}}, true, false, {}});
    model.params.push_back({ParamId{i}, path + ".weight", {elems[i]}, elems[i], ParamKind::matrix, {id}});
    model.elems += elems[i];
  }
  return model;
}

/// Module `index` becomes a leaf module whose parameter belongs to a module below it.
ModelPlan with_leaf(ModelPlan model, std::uint32_t index) {
  model.modules[index].leaf = true;
  const ModuleId below{static_cast<std::uint32_t>(model.modules.size())};
  model.modules.push_back(
      {below, ModuleId{index}, "below", "Linear", model.modules[index].params, false, false, {}});
  return model;
}

SchedulerConfig no_limits(Compat compat = Compat::shardscope) {
  SchedulerConfig config;
  config.prefetch_bucket_elems = 0;
  config.max_reuse_distance_elems = 0;
  config.param_persistence_elems = 0;
  config.compat = compat;
  return config;
}

/// Records `order` once; the next iteration follows it.
void record(FetchScheduler& scheduler, const std::vector<std::uint32_t>& order) {
  (void)scheduler.begin_iteration();
  for (const std::uint32_t module : order) {
    (void)scheduler.fetch(ModuleId{module}, kForward);
    (void)scheduler.release(ModuleId{module}, kForward);
  }
  (void)scheduler.release_all();
  ASSERT_EQ(scheduler.begin_iteration(), TraceMode::complete);
}

TEST(AtTheLimit, PrefetchFillsTheLiveLimitToTheLastElement) {
  SchedulerConfig config = no_limits();
  config.prefetch_bucket_elems = 50;
  config.max_live_elems = 60;
  FetchScheduler scheduler(row_of({10, 20, 30, 40}), 2, config);
  record(scheduler, {1, 2, 3, 4});
  const FetchPlan plan = scheduler.fetch(ModuleId{1}, kForward);
  EXPECT_THAT(plan.prefetch.params, ElementsAre(ParamId{1}, ParamId{2}));
  EXPECT_EQ(plan.available_elems, 60);
  // Both limits are reached; it is the live limit that a larger bucket would not help.
  EXPECT_EQ(plan.stop, PrefetchStop::live_limit);
}

/// The explanation of where a prefetch ended.
TEST(AtTheLimit, PrefetchSaysWhyItHoldsNoMore) {
  const auto stop_at = [](std::int64_t bucket, std::uint32_t module) {
    SchedulerConfig config = no_limits();
    config.prefetch_bucket_elems = bucket;
    FetchScheduler scheduler(row_of({10, 20, 30}), 2, config);
    record(scheduler, {1, 2, 3});
    PrefetchStop stop{};
    for (std::uint32_t next = 1; next <= module; ++next)
      stop = scheduler.fetch(ModuleId{next}, kForward).stop;
    return stop;
  };
  EXPECT_EQ(stop_at(0, 1), PrefetchStop::disabled) << "not that a bucket of nothing is full";
  EXPECT_EQ(stop_at(20, 1), PrefetchStop::bucket_full);
  EXPECT_EQ(stop_at(21, 1), PrefetchStop::end_of_trace) << "passed by the last one";
  EXPECT_EQ(stop_at(20, 3), PrefetchStop::end_of_trace);
}

TEST(AtTheLimit, KeptForReuseWhileNoMoreThanTheLimitIsLive) {
  for (const std::int64_t limit : {9, 10}) {
    SchedulerConfig config = no_limits();
    config.max_reuse_distance_elems = 1000;
    config.max_live_elems = limit;
    FetchScheduler scheduler(row_of({10, 20}), 2, config);
    record(scheduler, {1, 2, 1});
    (void)scheduler.fetch(ModuleId{1}, kForward);
    const ReleasePlan plan = scheduler.release(ModuleId{1}, kForward);
    EXPECT_EQ(plan.released.empty(), limit == 10) << limit;
  }
}

TEST(AtTheLimit, ReuseDistanceMustBeBelowTheLimit) {
  for (const Compat compat : {Compat::shardscope, Compat::deepspeed}) {
    for (const std::int64_t limit : {20, 21}) {
      SchedulerConfig config = no_limits(compat);
      config.max_reuse_distance_elems = limit;
      FetchScheduler scheduler(row_of({10, 20}), 2, config);
      record(scheduler, {1, 2, 1});  // 20 elements between the two uses
      (void)scheduler.fetch(ModuleId{1}, kForward);
      EXPECT_EQ(scheduler.release(ModuleId{1}, kForward).released.empty(), limit == 21) << limit;
    }
  }
}

// A prefetch that came past the very next use counts on nothing later than the step that comes.
TEST(AtTheLimit, PrefetchedForTheStepThatComesIsNotPrefetchedForALaterOne) {
  for (const Compat compat : {Compat::shardscope, Compat::deepspeed}) {
    SchedulerConfig config = no_limits(compat);
    config.prefetch_bucket_elems = 1;
    FetchScheduler scheduler(row_of({10}), 2, config);
    record(scheduler, {1, 1});
    (void)scheduler.fetch(ModuleId{1}, kForward);
    EXPECT_THAT(scheduler.release(ModuleId{1}, kForward).released, ElementsAre(ParamId{0}));
  }
}

TEST(AtTheLimit, DeepSpeedReleasesPersistentParametersWhileItRecords) {
  for (const Compat compat : {Compat::shardscope, Compat::deepspeed}) {
    SchedulerConfig config = no_limits(compat);
    config.param_persistence_elems = 100;
    FetchScheduler scheduler(row_of({10}), 2, config);
    (void)scheduler.begin_iteration();
    (void)scheduler.fetch(ModuleId{1}, kForward);
    EXPECT_EQ(scheduler.release(ModuleId{1}, kForward).released.empty(), compat == Compat::shardscope);
    // What no post-backward released stays where it is persistent.
    (void)scheduler.fetch(ModuleId{1}, Direction::backward);
    EXPECT_THAT(scheduler.release_leftovers(), IsEmpty());
  }
}

// Recorded from DeepSpeed: it walks over a leaf module as if nothing was below it, unless it releases a leaf
// module itself. By default what it keeps is kept too, while the live limit allows it.
TEST(AtTheLimit, LeafModulesBetweenTwoUsesAreOverlooked) {
  for (const Compat compat : {Compat::shardscope, Compat::deepspeed}) {
    for (const std::int64_t live : {9, 10}) {
      SchedulerConfig config = no_limits(compat);
      config.max_reuse_distance_elems = 50;
      config.max_live_elems = live;
      FetchScheduler scheduler(with_leaf(row_of({10, 100}), 2), 2, config);
      record(scheduler, {1, 2, 1});
      (void)scheduler.fetch(ModuleId{1}, kForward);
      EXPECT_EQ(scheduler.release(ModuleId{1}, kForward).released.empty(),
                compat == Compat::deepspeed || live == 10);
    }
  }
}

// Releasing a leaf module DeepSpeed counts everything below what it walks over, containers too; what is used
// in between is less.
TEST(AtTheLimit, DefaultCountsWhatIsUsedBetweenTwoUsesOfALeafModule) {
  for (const Compat compat : {Compat::shardscope, Compat::deepspeed}) {
    SchedulerConfig config = no_limits(compat);
    config.max_reuse_distance_elems = 50;
    FetchScheduler scheduler(with_leaf(row_of({10, 100}), 1), 2, config);
    record(scheduler, {1, 0, 1});  // the root has no parameters of its own
    (void)scheduler.fetch(ModuleId{1}, kForward);
    // The walk meets the parameter below the root at once.
    EXPECT_THAT(scheduler.release(ModuleId{1}, kForward).released, IsEmpty());
  }
  SchedulerConfig config = no_limits();
  config.max_reuse_distance_elems = 50;
  for (const Compat compat : {Compat::shardscope, Compat::deepspeed}) {
    config.compat = compat;
    ModelPlan model = with_leaf(row_of({10, 100, 5}), 1);
    // Module 3 contains module 2, which is not visited in between.
    model.modules[2].parent = ModuleId{3};
    std::swap(model.modules[2], model.modules[3]);
    model.modules[2].id = ModuleId{2};
    model.modules[3].id = ModuleId{3};
    model.modules[3].parent = ModuleId{2};
    model.params[1].modules = {ModuleId{3}};
    model.params[2].modules = {ModuleId{2}};
    FetchScheduler scheduler(model, 2, config);
    record(scheduler, {1, 2, 2, 1});
    (void)scheduler.fetch(ModuleId{1}, kForward);
    EXPECT_EQ(scheduler.release(ModuleId{1}, kForward).released.empty(), compat == Compat::shardscope);
  }
}

TEST(AtTheLimit, NoReuseDistanceKeepsNoLeafModule) {
  FetchScheduler scheduler(with_leaf(row_of({10}), 1), 2, no_limits(Compat::deepspeed));
  record(scheduler, {1, 1});
  (void)scheduler.fetch(ModuleId{1}, kForward);
  EXPECT_THAT(scheduler.release(ModuleId{1}, kForward).released, ElementsAre(ParamId{0}));
}

TEST(AtTheLimit, AnExternalParameterThatIsThereIsLearntOfByDefaultOnly) {
  for (const Compat compat : {Compat::shardscope, Compat::deepspeed}) {
    FetchScheduler scheduler(row_of({10, 20}), 2, no_limits(compat));
    (void)scheduler.begin_iteration();
    (void)scheduler.fetch(ModuleId{1}, kForward);
    EXPECT_EQ(scheduler.fetch_external(ParamId{0}, ModuleId{2}).gather.id, kNone<GatherId>);
    if (compat == Compat::shardscope) {
      EXPECT_THAT(scheduler.params_of(ModuleId{2}), Contains(ParamId{0}));
    } else {
      EXPECT_THAT(scheduler.params_of(ModuleId{2}), Not(Contains(ParamId{0})));
    }
  }
}

TEST(AtTheLimit, AGradientOfABucketsSizeIsNotExtraLarge) {
  BucketPlanner planner({.bucket_elems = 10});
  EXPECT_THAT(planner.add(ParamId{0}, 10), IsEmpty());
  const std::vector<Flush> full = planner.add(ParamId{1}, 11);
  ASSERT_EQ(full.size(), 2U);
  EXPECT_EQ(full[0].reason, FlushReason::full);
  EXPECT_THAT(full[0].params, ElementsAre(ParamId{0}));
  EXPECT_EQ(full[1].reason, FlushReason::extra_large);
}

TEST(AtTheLimit, ASubGroupEndsWhenItIsFull) {
  const ShardLayout layout = make_shard_layout(row_of({10, 20, 5}), 1, 1);
  const std::vector<Range> groups = make_sub_groups(layout, 10);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].end, 10);
  EXPECT_EQ(groups[1].end, 30);
}

TEST(AtTheLimit, AHysteresisOfOneNeverWaits) {
  LossScaleConfig config;
  config.hysteresis = 1;
  LossScaler scaler(config);
  scaler.restore({.scale = 8, .hysteresis = 2, .iteration = 5, .last_overflow = 1});  // of a run that had 2
  (void)scaler.update(true);
  EXPECT_EQ(scaler.scale(), 4);
}

TEST(AtTheLimit, HysteresisComesBackAfterACleanStepOnlyIfConsecutive) {
  for (const bool consecutive : {false, true}) {
    LossScaleConfig config;
    config.consecutive_hysteresis = consecutive;
    config.hysteresis = 2;
    config.window = 2;
    LossScaler scaler(config);
    (void)scaler.update(true);
    EXPECT_EQ(scaler.hysteresis(), 1);
    (void)scaler.update(false);
    EXPECT_EQ(scaler.hysteresis(), consecutive ? 2 : 1);
    (void)scaler.update(false);
    (void)scaler.update(false);  // the window is full: the scale grows
    EXPECT_EQ(scaler.hysteresis(), 2);
  }
}

TEST(AtTheLimit, TheScaleStopsAtItsMinimum) {
  LossScaleConfig config;
  config.initial_scale_power = 1;
  config.hysteresis = 1;
  config.min_loss_scale = 1.5;
  LossScaler scaler(config);
  (void)scaler.update(true);
  EXPECT_EQ(scaler.scale(), 1.5);
}

}  // namespace
}  // namespace shardscope::plan
