// The stage-3 scheduler in cases by hand: the trace, what breaks it, external and persistent parameters,
// limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "runtime/plan/scheduler.h"
#include "runtime/plan/visit_order.h"
#include "tests/runtime/plan/scheduler_account.h"

namespace shardscope::plan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_support::Account;

TEST(Scheduler, FirstIterationRecordsThenPrefetchFollowsTheTrace) {
  const ModelPlan model = build_model_plan(named_model("mlp"));
  SchedulerConfig config;
  config.param_persistence_elems = 0;
  config.prefetch_bucket_elems = 20'000;
  config.max_live_elems = 60'000;
  config.max_reuse_distance_elems = 0;
  Account account(model, config, 2);
  account.begin();
  EXPECT_EQ(account.scheduler().mode(), TraceMode::record);
  EXPECT_THAT(account.scheduler().trace(), IsEmpty());
  account.run(visit_order(model));
  EXPECT_EQ(account.prefetched(), 0);
  const int recorded_on_demand = account.on_demand();
  account.end_backward();
  account.step();
  account.begin();
  EXPECT_EQ(account.scheduler().trace().size(), 30U);
  account.run(visit_order(model));
  EXPECT_GT(account.prefetched(), 5);
  EXPECT_LT(account.on_demand() - recorded_on_demand, recorded_on_demand / 2);
}

TEST(Scheduler, DefaultNeverPassesTheLimitByPrefetchWhereDeepSpeedDoes) {
  const ModelPlan model = build_model_plan(named_model("mlp"));
  SchedulerConfig config;
  config.param_persistence_elems = 0;
  config.prefetch_bucket_elems = 50'000;
  config.max_live_elems = 40'000;
  config.max_reuse_distance_elems = 0;
  std::map<Compat, std::int64_t> peak;
  for (const Compat compat : {Compat::shardscope, Compat::deepspeed}) {
    config.compat = compat;
    FetchScheduler scheduler(model, 2, config);
    for (int iteration = 0; iteration < 2; ++iteration) {
      (void)scheduler.begin_iteration();
      for (const Visit& visit : visit_order(model)) {
        if (visit.kind == VisitKind::pre_forward || visit.kind == VisitKind::pre_backward) {
          const FetchPlan plan = scheduler.fetch(visit.module, Direction::forward);
          if (plan.prefetch.id != kNone<GatherId>) {
            peak[compat] = std::max(peak[compat], scheduler.resident_elems());
          }
        } else {
          (void)scheduler.release(visit.module, Direction::forward);
        }
      }
      (void)scheduler.release_all();
    }
  }
  EXPECT_LE(peak[Compat::shardscope], 40'000);
  EXPECT_GT(peak[Compat::deepspeed], 40'000);
}

TEST(Scheduler, MismatchGivesUpWhatWasFetchedAheadAndRecordsAnew) {
  const ModelPlan model = build_model_plan(named_model("mlp"));
  SchedulerConfig config;
  config.param_persistence_elems = 0;
  config.prefetch_bucket_elems = 20'000;
  FetchScheduler scheduler(model, 2, config);
  for (int iteration = 0; iteration < 2; ++iteration) {
    (void)scheduler.begin_iteration();
    for (const Visit& visit : visit_order(model)) {
      const bool fetch = visit.kind == VisitKind::pre_forward || visit.kind == VisitKind::pre_backward;
      if (fetch) {
        (void)scheduler.fetch(visit.module, Direction::forward);
      } else {
        (void)scheduler.release(visit.module, Direction::forward);
      }
    }
    (void)scheduler.release_all();
  }
  EXPECT_EQ(scheduler.begin_iteration(), TraceMode::complete);
  (void)scheduler.fetch(ModuleId{0}, Direction::forward);
  const FetchPlan plan = scheduler.fetch(ModuleId{15}, Direction::forward);
  ASSERT_TRUE(plan.invalidated);
  EXPECT_EQ(plan.invalidated->cause, InvalidationCause::module_differs);
  EXPECT_EQ(plan.invalidated->expected, ModuleId{1});
  EXPECT_EQ(plan.invalidated->got, ModuleId{15});
  EXPECT_FALSE(plan.invalidated->released.empty());
  EXPECT_FALSE(plan.invalidated->wait_for.empty());
  EXPECT_EQ(scheduler.mode(), TraceMode::invalid);
  EXPECT_EQ(scheduler.begin_iteration(), TraceMode::record);
}

// A registered parameter is fetched and released with the module's own; unregistered the module does without
// it, whether the trace that knew it still fits or is recorded anew.
TEST(Scheduler, ExternalParametersAreRegisteredAndUnregistered) {
  const ModelPlan model = build_model_plan(named_model("mlp"));
  SchedulerConfig config;
  config.param_persistence_elems = 0;
  config.prefetch_bucket_elems = 20'000;
  config.max_reuse_distance_elems = 0;
  config.max_live_elems = 40'000;
  const ModuleId user{15};
  const ParamId param = model.modules[5].params[0];
  for (const Compat compat : {Compat::shardscope, Compat::deepspeed}) {
    config.compat = compat;
    Account plain(model, config, 2), changed(model, config, 2);
    const auto iterate = [&](Account& account) {
      (void)account.take_log();
      account.begin();
      account.run(visit_order(model));
      account.end_backward();
      account.step();
      return account.take_log();
    };
    changed.scheduler().register_external(param, user);
    changed.scheduler().register_external(param, user);
    EXPECT_THAT(changed.scheduler().params_of(user), testing::Contains(param));
    for (int i = 0; i < 3; ++i) {
      (void)iterate(plain);
      (void)iterate(changed);
    }
    EXPECT_EQ(changed.scheduler().mode(), TraceMode::complete);
    EXPECT_NE(iterate(changed), iterate(plain)) << "it is fetched there";
    EXPECT_EQ(changed.invalidations(), 0);

    changed.scheduler().unregister_external(param, user);
    EXPECT_EQ(changed.scheduler().params_of(user), plain.scheduler().params_of(user));
    for (int i = 0; i < 3; ++i) (void)iterate(changed);
    EXPECT_LE(changed.invalidations(), 1);
    EXPECT_EQ(changed.scheduler().mode(), TraceMode::complete);
    EXPECT_THROW(changed.scheduler().unregister_external(param, user), std::invalid_argument);
    const ParamId own = model.modules[raw(user)].params[0];
    EXPECT_THROW(changed.scheduler().unregister_external(own, user), std::invalid_argument) << "its own";
  }
  FetchScheduler scheduler(model, 2, config);
  scheduler.register_external(param, user);
  (void)scheduler.begin_iteration();
  (void)scheduler.fetch(user, Direction::forward);
  EXPECT_THROW(scheduler.unregister_external(param, user), std::logic_error) << "in use";
}

// What a broken trace gives up is freed, but persistent parameters that a prefetch brought stay; DeepSpeed
// frees them too.
TEST(Scheduler, PersistentParametersOutliveABrokenTrace) {
  const ModelPlan model = build_model_plan(named_model("mlp"));
  SchedulerConfig config;
  config.param_persistence_elems = 64;  // inp.bias and the layer norms, among others
  config.prefetch_bucket_elems = 1000;
  for (const Compat compat : {Compat::shardscope, Compat::deepspeed}) {
    config.compat = compat;
    FetchScheduler scheduler(model, 2, config);
    (void)scheduler.begin_iteration();
    for (const Visit& visit : visit_order(model)) {
      if (visit.kind == VisitKind::pre_forward || visit.kind == VisitKind::pre_backward) {
        (void)scheduler.fetch(visit.module, Direction::forward);
      } else {
        (void)scheduler.release(visit.module, Direction::forward);
      }
    }
    (void)scheduler.release_all();  // and no step: nothing is gathered again
    ASSERT_EQ(scheduler.begin_iteration(), TraceMode::complete);
    const FetchPlan root = scheduler.fetch(ModuleId{0}, Direction::forward);
    ASSERT_THAT(root.prefetch.params, testing::Contains(ParamId{1}));
    const FetchPlan plan = scheduler.fetch(ModuleId{15}, Direction::forward);
    ASSERT_TRUE(plan.invalidated);
    const bool stays = compat == Compat::shardscope;
    EXPECT_EQ(scheduler.status(ParamId{1}) == ParamStatus::available, stays);
    EXPECT_EQ(scheduler.status(ParamId{0}), ParamStatus::not_available);
    if (stays) {
      EXPECT_THAT(plan.invalidated->completed, testing::Contains(ParamId{1}));
    } else {
      EXPECT_THAT(plan.invalidated->released, testing::Contains(ParamId{1}));
    }
  }
}

TEST(Scheduler, TooShortATraceIsItsOwnCause) {
  const ModelPlan model = build_model_plan(named_model("mlp"));
  FetchScheduler scheduler(model, 1, SchedulerConfig{});
  (void)scheduler.begin_iteration();
  (void)scheduler.fetch(ModuleId{0}, Direction::forward);
  (void)scheduler.release(ModuleId{0}, Direction::forward);
  (void)scheduler.begin_iteration();
  (void)scheduler.fetch(ModuleId{0}, Direction::forward);
  const FetchPlan plan = scheduler.fetch(ModuleId{1}, Direction::forward);
  ASSERT_TRUE(plan.invalidated);
  EXPECT_EQ(plan.invalidated->cause, InvalidationCause::trace_too_short);
  EXPECT_EQ(plan.invalidated->recorded, 1);
}

TEST(Scheduler, PersistenceFollowsBothThresholds) {
  const ModelPlan model = build_model_plan(named_model("mlp"));
  SchedulerConfig config;
  config.param_persistence_elems = 64;
  config.model_persistence_elems = 200;
  const FetchScheduler scheduler(model, 2, config);
  std::vector<std::uint32_t> persistent;
  for (const ParamPlan& param : model.params) {
    if (scheduler.persistent(param.id)) persistent.push_back(raw(param.id));
  }
  // 64 + 64 + 64 fill 192 of 200; only the scalar at the end still fits.
  EXPECT_THAT(persistent, ElementsAre(1U, 2U, 3U, 21U));
}

TEST(Scheduler, RefusesNegativeLimits) {
  SchedulerConfig config;
  config.max_live_elems = -1;
  EXPECT_THROW(FetchScheduler(build_model_plan(named_model("mlp")), 2, config), std::invalid_argument);
  EXPECT_THROW(FetchScheduler(build_model_plan(named_model("mlp")), 0, SchedulerConfig{}),
               std::invalid_argument);
}

}  // namespace
}  // namespace shardscope::plan
