// What goes with the scheduler: its counters, its words for a broken trace, DeepSpeed's tracing error, and
// the comparison of traces between ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/fetch_counters.h"
#include "runtime/plan/trace_agreement.h"
#include "runtime/plan/trace_warning.h"
#include "runtime/plan/visit_order.h"

namespace shardscope::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

ModelPlan mlp() { return build_model_plan(named_model("mlp")); }

FetchCount of(const FetchCounts& counts, FetchCounter counter) {
  return counts[static_cast<std::size_t>(counter)];
}

TEST(FetchCounters, UnitsAndDirections) {
  FetchCounters counters({10, 7, 5}, {4, 3, 2});  // over three ranks, padded
  const auto never = [](ParamId) { return false; };
  FetchPlan plan;
  plan.gather.params = {ParamId{0}, ParamId{1}};
  plan.wait = {ParamId{0}, ParamId{1}};
  plan.prefetch.params = {ParamId{2}};
  plan.prefetch.elems = 5;
  counters.fetched(plan, Direction::forward, never);
  counters.fetched({}, Direction::forward, never);  // nothing to gather or to wait for: still a fetch
  counters.fetched(plan, Direction::backward, never);
  const FetchCounts counts = counters.take();
  const FetchCounts expected{{{1, 7}, {2, 7}, {1, 5}, {2, 22}, {1, 7}, {1, 7}, {1, 5}, {2, 22}}};
  EXPECT_EQ(counts, expected);
  EXPECT_EQ(counters.counts(), FetchCounts{}) << "taken";
  // Secondary copies are gathered apart, each with its own elements.
  counters.fetched(plan, Direction::forward, [](ParamId id) { return id == ParamId{1}; });
  EXPECT_EQ(of(counters.counts(), FetchCounter::forward_all_gather), (FetchCount{3, 22}));
  // So are shards that rest as int8.
  (void)counters.take();
  counters.fetched(plan, Direction::forward,
                   [](ParamId id) -> std::size_t { return id == ParamId{1} ? 2 : 0; });
  EXPECT_EQ(of(counters.counts(), FetchCounter::forward_all_gather), (FetchCount{3, 22}));
  EXPECT_STREQ(name_of(FetchCounter::backward_prefetch_submit), "backward_prefetch_submit");
}

// The lines of DeepSpeed 0.19's trace_prologue().
TEST(TraceCacheWarning, IsDeepSpeedsLine) {
  Invalidation invalidation;
  invalidation.trace_step = 6;
  invalidation.recorded = 30;
  invalidation.expected = ModuleId{7};
  invalidation.got = ModuleId{11};
  EXPECT_EQ(trace_cache_warning(invalidation),
            "Invalidate trace cache @ step 6: expected module 7, but got module 11");
  invalidation.cause = InvalidationCause::trace_too_short;
  invalidation.trace_step = 30;
  EXPECT_EQ(trace_cache_warning(invalidation),
            "Invalidate trace cache @ step 30 and module 11: cache has only 30 modules");
  invalidation.cause = InvalidationCause::params_differ;
  EXPECT_EQ(trace_cache_warning(invalidation),
            "Invalidate trace cache @ step 30: module 11 uses parameters that were not recorded for it");
}

// A module gets another parameter after its trace was recorded. DeepSpeed raises RuntimeError; the default
// records anew.
TEST(TracingError, EndsTheRunInDeepSpeedOnly) {
  const ModelPlan model = mlp();
  SchedulerConfig config;
  config.prefetch_bucket_elems = 0;
  config.param_persistence_elems = 0;
  const ModuleId inp{1};
  const ParamId external = model.modules[15].params[0];
  for (const Compat compat : {Compat::shardscope, Compat::deepspeed, Compat::notes}) {
    config.compat = compat;
    FetchScheduler scheduler(model, 2, config);
    (void)scheduler.begin_iteration();
    for (const Visit& visit : visit_order(model)) {
      if (visit.kind == VisitKind::pre_forward) (void)scheduler.fetch(visit.module, Direction::forward);
      if (visit.kind == VisitKind::post_forward) (void)scheduler.release(visit.module, Direction::forward);
    }
    (void)scheduler.release_all();
    ASSERT_EQ(scheduler.begin_iteration(), TraceMode::complete);
    scheduler.register_external(external, inp);
    (void)scheduler.fetch(ModuleId{0}, Direction::forward);
    if (compat != Compat::deepspeed) {
      const FetchPlan plan = scheduler.fetch(inp, Direction::forward);
      ASSERT_TRUE(plan.invalidated);
      EXPECT_EQ(plan.invalidated->cause, InvalidationCause::params_differ);
      continue;
    }
    try {
      (void)scheduler.fetch(inp, Direction::forward);
      ADD_FAILURE() << "no error";
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("tracing error at step 1: module id: 1 (inp)"),
                                      HasSubstr("expected the next 3 parameters"),
                                      HasSubstr("inp.weight (parameter 0), inp.bias (parameter 1), " +
                                                model.params[raw(external)].name),
                                      HasSubstr("but got (inp.weight (parameter 0), inp.bias (parameter 1), "
                                                "blk.0.ln.weight"),
                                      HasSubstr("register external parameters before the first step")));
    }
    EXPECT_EQ(scheduler.mode(), TraceMode::complete) << "nothing changed";
    EXPECT_EQ(scheduler.status(ParamId{0}), ParamStatus::not_available);
  }
}

TEST(TraceAgreement, FindsTheFirstDifferenceAndSaysIt) {
  const ModelPlan model = mlp();
  const std::vector<TracedVisit> a{{0, 1}, {1, 2}, {3, 3}};
  EXPECT_FALSE(first_difference(a, a));
  EXPECT_EQ(first_difference(a, {{0, 1}, {1, 2}, {7, 3}}), 2U);
  EXPECT_EQ(first_difference(a, {{0, 1}, {1, 9}, {7, 3}}), 1U);
  EXPECT_EQ(first_difference(a, {{0, 1}}), 1U);
  EXPECT_EQ(first_difference({}, a), 0U);
  EXPECT_THAT(describe_difference(2, {0, a[2]}, {4, TracedVisit{7, 3}}, model),
              HasSubstr("at step 2 rank 0 ran blk.0 (module 3), rank 4 ran blk.1 (module 7); every rank"));
  EXPECT_THAT(describe_difference(2, {0, a[2]}, {4, TracedVisit{3, 8}}, model),
              HasSubstr("rank 4 ran blk.0 (module 3) with other parameters"));
  EXPECT_THAT(describe_difference(2, {0, a[2]}, {1, {}}, model), HasSubstr("rank 1 ran no further module"));
}

// An external parameter that one rank alone reads is a difference too.
TEST(TraceAgreement, SeesParametersAsWell) {
  const ModelPlan model = mlp();
  const auto trace = [&](bool external) {
    FetchScheduler scheduler(model, 2, {});
    if (external) scheduler.register_external(model.modules[15].params[0], ModuleId{1});
    (void)scheduler.begin_iteration();
    EXPECT_TRUE(traced_visits(scheduler).empty()) << "not complete";
    for (const Visit& visit : visit_order(model)) {
      if (visit.kind == VisitKind::pre_forward) (void)scheduler.fetch(visit.module, Direction::forward);
    }
    (void)scheduler.begin_iteration();
    return traced_visits(scheduler);
  };
  EXPECT_EQ(trace(false), trace(false));
  EXPECT_EQ(first_difference(trace(false), trace(true)), 1U);
}

}  // namespace
}  // namespace shardscope::plan
