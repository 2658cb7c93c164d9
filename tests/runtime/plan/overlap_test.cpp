// What overlap_comm changes in stage 3 ([Note: overlap_comm]): when a prefetch is waited for, and nothing
// else.
#include "runtime/plan/overlap.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/plan/scheduler_config.h"
#include "runtime/plan/visit_order.h"

namespace shardscope::plan {
namespace {

/// The plans of two iterations: one records the trace, the other prefetches along it.
std::vector<FetchPlan> fetches(const ModelPlan& model, bool overlap_comm) {
  ZeroConfig zero;
  zero.stage = 3;
  zero.overlap_comm = overlap_comm;
  zero.param_persistence_threshold = 0;
  FetchScheduler scheduler(model, 2, make_scheduler_config(zero));
  std::vector<FetchPlan> plans;
  for (int iteration = 0; iteration < 2; ++iteration) {
    (void)scheduler.begin_iteration();
    for (const Visit& visit : visit_order(model)) {
      const bool backward = visit.kind == VisitKind::pre_backward || visit.kind == VisitKind::post_backward;
      const Direction direction = backward ? Direction::backward : Direction::forward;
      if (visit.kind == VisitKind::pre_forward || visit.kind == VisitKind::pre_backward) {
        plans.push_back(scheduler.fetch(visit.module, direction));
      } else if (visit.kind == VisitKind::post_forward || visit.kind == VisitKind::post_backward) {
        (void)scheduler.release(visit.module, direction);
      }
    }
    (void)scheduler.release_leftovers();
  }
  return plans;
}

TEST(Overlap, APrefetchIsWaitedForAtOnceWithoutItAndByItsModuleWithIt) {
  const ModelPlan model = build_model_plan(named_model("gpt-mini"));
  const std::vector<FetchPlan> on = fetches(model, true);
  const std::vector<FetchPlan> off = fetches(model, false);
  ASSERT_EQ(on.size(), off.size());
  int prefetches = 0;
  for (std::size_t i = 0; i < on.size(); ++i) {
    EXPECT_TRUE(on[i].wait_at_once.empty());
    if (off[i].prefetch.id == kNone<GatherId>) {
      EXPECT_TRUE(off[i].wait_at_once.empty());
    } else {
      ++prefetches;
      EXPECT_EQ(off[i].wait_at_once, std::vector<GatherId>{off[i].prefetch.id});
    }
    // Everything else is decided alike.
    EXPECT_EQ(on[i].gather.params, off[i].gather.params);
    EXPECT_EQ(on[i].wait_for, off[i].wait_for);
    EXPECT_EQ(on[i].completed, off[i].completed);
    EXPECT_EQ(on[i].prefetch.params, off[i].prefetch.params);
    EXPECT_EQ(on[i].stop, off[i].stop);
    EXPECT_EQ(on[i].available_elems, off[i].available_elems);
  }
  EXPECT_GT(prefetches, 0);
}

TEST(Overlap, DefaultsAreDeepSpeeds) {
  ZeroConfig zero;
  zero.stage = 3;
  EXPECT_EQ(make_scheduler_config(zero).overlap, Overlap::on);
  zero.overlap_comm = false;
  EXPECT_EQ(make_scheduler_config(zero).overlap, Overlap::off);
  EXPECT_EQ(wait_of(Overlap::on), WaitFor::at_use);
  EXPECT_EQ(wait_of(Overlap::off), WaitFor::at_once);
}

}  // namespace
}  // namespace shardscope::plan
