// A scheduler driven through visits that are marked as those of a tree are, and not marked as those of a
// recorded run.
#include "runtime/plan/visit_driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/runtime/plan/random_model.h"

namespace shardscope::plan {
namespace {

using testing_support::RandomModel;

bool is_mark(const Visit& visit) {
  return visit.kind == VisitKind::begin_recompute || visit.kind == VisitKind::end_recompute;
}

/// What is gathered, prefetched and released at each visit but the marks, over three iterations with a step
/// each.
std::vector<std::vector<ParamId>> decided(const ModelPlan& model, const SchedulerConfig& config,
                                          const std::vector<Visit>& visits) {
  FetchScheduler scheduler(model, 2, config);
  VisitDriver driver(scheduler);
  std::vector<std::vector<ParamId>> all;
  for (int iteration = 0; iteration < 3; ++iteration) {
    (void)driver.begin_iteration();
    for (const Visit& visit : visits) {
      const VisitDecision decision = driver.take(visit);
      EXPECT_EQ(decision.fetch.has_value() + decision.release.has_value(), is_mark(visit) ? 0 : 1);
      if (decision.fetch) {
        all.push_back(decision.fetch->gather.params);
        all.push_back(decision.fetch->prefetch.params);
      }
      if (decision.release) all.push_back(decision.release->released);
    }
    all.push_back(driver.end_step().params);
  }
  return all;
}

// Frozen parameters that a recomputation fetched belong to the backward around it in DeepSpeed's scheduler: a
// forward that is taken for another than it is releases them elsewhere.
TEST(VisitDriver, AForwardAfterTheBackwardHasBegunIsARecomputationWithoutItsMarks) {
  int recomputed = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    RandomModel random(seed);
    const ModelPlan model = random.make();
    const std::vector<Visit> marked = visit_order(model);
    const auto first_mark = std::ranges::find_if(marked, is_mark);
    const auto backward = std::ranges::find(marked, VisitKind::pre_backward, &Visit::kind);
    // A root that is recomputed is so before the first pre-backward: there the marks are needed.
    if (first_mark == marked.end() || first_mark < backward) continue;
    ++recomputed;
    std::vector<Visit> recorded = marked;
    std::erase_if(recorded, is_mark);
    SchedulerConfig config;
    config.compat = Compat::deepspeed;
    config.param_persistence_elems = 0;
    config.prefetch_bucket_elems = random.draw(20);
    config.max_reuse_distance_elems = 0;
    EXPECT_EQ(decided(model, config, recorded), decided(model, config, marked)) << seed;
  }
  EXPECT_GT(recomputed, 20);
}

}  // namespace
}  // namespace shardscope::plan
