// Training and evaluation in turns on one scheduler: a trace for each, which the other neither follows nor
// breaks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/plan/scheduler.h"
#include "runtime/plan/secondary_shards.h"
#include "runtime/plan/visit_order.h"

namespace shardscope::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ModelPlan turns_model() { return build_model_plan(named_model("mlp")); }

SchedulerConfig turns_limits(Compat compat, std::int64_t persistent) {
  SchedulerConfig config;
  config.compat = compat;
  config.param_persistence_elems = persistent;
  config.prefetch_bucket_elems = 20'000;
  config.max_live_elems = 60'000;
  config.max_reuse_distance_elems = 0;
  return config;
}

/// What one module's fetch or release decided, without numbers that count up over the run.
struct TurnDecided {
  ModuleId module{};
  std::vector<ParamId> gathered, prefetched, released;
  bool operator==(const TurnDecided&) const = default;
};

struct TurnsIteration {
  TraceMode began{};
  std::optional<InvalidationCause> invalidated;
  std::vector<TurnDecided> decided;
  [[nodiscard]] std::size_t prefetched() const {
    std::size_t params = 0;
    for (const TurnDecided& each : decided) params += each.prefetched.size();
    return params;
  }
};

class Turns {
 public:
  Turns(const ModelPlan& model, Compat compat, std::int64_t persistent = 0)
      : model_(model), scheduler_(model, 2, turns_limits(compat, persistent)) {}

  TurnsIteration train() {
    TurnsIteration iteration = run(ModelMode::training, visit_order(model_));
    (void)scheduler_.release_leftovers();
    (void)scheduler_.begin_update();
    (void)scheduler_.end_update(WeightChange::trainable);
    (void)scheduler_.gather_persistent();
    return iteration;
  }
  TurnsIteration evaluate() {
    std::vector<Visit> visits = visit_order(model_);
    visits.erase(std::find_if(visits.begin(), visits.end(),
                              [](const Visit& visit) { return visit.kind == VisitKind::pre_backward; }),
                 visits.end());
    return run(ModelMode::evaluation, visits);
  }
  FetchScheduler& scheduler() { return scheduler_; }

 private:
  TurnsIteration run(ModelMode mode, const std::vector<Visit>& visits) {
    TurnsIteration iteration;
    iteration.began = scheduler_.begin_iteration(mode);
    for (const Visit& visit : visits) {
      const bool forward = visit.kind == VisitKind::pre_forward || visit.kind == VisitKind::post_forward;
      const Direction direction = forward ? Direction::forward : Direction::backward;
      TurnDecided decided{visit.module, {}, {}, {}};
      if (visit.kind == VisitKind::pre_forward || visit.kind == VisitKind::pre_backward) {
        const FetchPlan plan = scheduler_.fetch(visit.module, direction);
        if (plan.invalidated) iteration.invalidated = plan.invalidated->cause;
        decided.gathered = plan.gather.params;
        decided.prefetched = plan.prefetch.params;
      } else {
        decided.released = scheduler_.release(visit.module, direction).released;
      }
      iteration.decided.push_back(std::move(decided));
    }
    return iteration;
  }
  const ModelPlan& model_;
  FetchScheduler scheduler_;
};

class OwnTraces : public testing::TestWithParam<Compat> {};
INSTANTIATE_TEST_SUITE_P(Compats, OwnTraces, testing::Values(Compat::shardscope, Compat::notes));

TEST_P(OwnTraces, EvaluationRecordsFirstAndPrefetchesFromItsSecondForwardOn) {
  const ModelPlan model = turns_model();
  Turns run(model, GetParam());
  (void)run.train();
  (void)run.train();
  const TurnsIteration first = run.evaluate();
  EXPECT_EQ(first.began, TraceMode::record) << "training's trace is not evaluation's";
  EXPECT_EQ(first.prefetched(), 0U);
  const TurnsIteration second = run.evaluate();
  EXPECT_EQ(second.began, TraceMode::complete);
  EXPECT_GT(second.prefetched(), 5U);
  EXPECT_EQ(run.scheduler().trace().size(), 15U) << "forwards only";
  EXPECT_EQ(run.scheduler().resident_elems(), 0) << "nothing was fetched for a backward to come";
  EXPECT_FALSE(second.invalidated);
  (void)run.train();
  const TurnsIteration later = run.evaluate();
  EXPECT_EQ(later.began, TraceMode::complete) << "kept over a training step";
  EXPECT_TRUE(later.decided == second.decided);
}

/// Five training iterations decide as `alone` does, with 0 to 4 evaluations before each from one on.
void trains_alike(const ModelPlan& model, Compat compat, std::int64_t persistent, int first_evaluated) {
  Turns alone(model, compat, persistent), both(model, compat, persistent);
  for (int i = 0; i < 5; ++i) {
    SCOPED_TRACE("persistent " + std::to_string(persistent) + ", evaluated from " +
                 std::to_string(first_evaluated) + " on, iteration " + std::to_string(i));
    const std::int64_t before = both.scheduler().resident_elems();
    for (int batch = 0; i >= first_evaluated && batch < std::max(i, 1); ++batch) {
      EXPECT_FALSE(both.evaluate().invalidated);
      EXPECT_EQ(both.scheduler().resident_elems(), before) << "what it gathered is released";
    }
    const TurnsIteration expected = alone.train(), trained = both.train();
    EXPECT_EQ(trained.began, expected.began);
    EXPECT_FALSE(trained.invalidated);
    EXPECT_TRUE(trained.decided == expected.decided);
    EXPECT_TRUE(i == 0 || expected.prefetched() > 5U);
  }
}

// Also while either trace is still recorded, and with the evaluation first.
TEST_P(OwnTraces, TrainingDecidesAsWithoutEvaluations) {
  const ModelPlan model = turns_model();
  for (const int first_evaluated : {0, 1, 2}) trains_alike(model, GetParam(), 0, first_evaluated);
}

// Persistent parameters stay from their first use on, whose ever it is: from the first step on they are
// there.
TEST(OwnTrace, LeavesPersistentParametersWhereTheyAre) {
  const ModelPlan model = turns_model();
  for (const int first_evaluated : {1, 2}) trains_alike(model, Compat::shardscope, 100, first_evaluated);
}

// An evaluation that runs other modules than the last breaks its own trace only.
TEST_P(OwnTraces, AnInvalidatedEvaluationLeavesTheTraceOfTraining) {
  const ModelPlan model = turns_model();
  Turns run(model, GetParam());
  for (int i = 0; i < 2; ++i) (void)run.train();
  for (int i = 0; i < 2; ++i) (void)run.evaluate();
  ASSERT_EQ(run.scheduler().begin_iteration(ModelMode::evaluation), TraceMode::complete);
  (void)run.scheduler().fetch(ModuleId{0}, Direction::forward);
  ASSERT_TRUE(run.scheduler().fetch(ModuleId{15}, Direction::forward).invalidated);
  EXPECT_EQ(run.scheduler().mode(ModelMode::evaluation), TraceMode::invalid);
  EXPECT_EQ(run.scheduler().mode(ModelMode::training), TraceMode::complete);
  (void)run.scheduler().release_all();
  const TurnsIteration trained = run.train();
  EXPECT_EQ(trained.began, TraceMode::complete);
  EXPECT_FALSE(trained.invalidated);
}

// DeepSpeed 0.19 asks for no mode: what trains first records the trace that evaluation follows, a prefix of
// it.
TEST(OneTrace, DeepSpeedEvaluatesByTheTraceOfTraining) {
  const ModelPlan model = turns_model();
  Turns run(model, Compat::deepspeed);
  (void)run.train();
  (void)run.train();
  const TurnsIteration evaluated = run.evaluate();
  EXPECT_EQ(evaluated.began, TraceMode::complete);
  EXPECT_FALSE(evaluated.invalidated);
  EXPECT_GT(run.scheduler().resident_elems(), 0) << "fetched for a backward that does not come";
  const TurnsIteration trained = run.train();
  EXPECT_EQ(trained.began, TraceMode::complete);
  EXPECT_FALSE(trained.invalidated);
}

// And where evaluation comes first, training runs out of the trace.
TEST(OneTrace, DeepSpeedInvalidatesWhatAnEvaluationRecorded) {
  const ModelPlan model = turns_model();
  Turns run(model, Compat::deepspeed);
  (void)run.evaluate();
  EXPECT_EQ(run.train().invalidated, InvalidationCause::trace_too_short);
}

TEST(EvaluationMode, RefusesABackwardAndChangesNothing) {
  const ModelPlan model = turns_model();
  Turns run(model, Compat::shardscope);
  (void)run.train();
  (void)run.evaluate();
  FetchScheduler& scheduler = run.scheduler();
  (void)scheduler.begin_iteration(ModelMode::evaluation);
  (void)scheduler.fetch(ModuleId{0}, Direction::forward);
  const std::int64_t step = scheduler.trace_step();
  for (const bool recomputed : {false, true}) {
    try {
      recomputed ? (void)scheduler.fetch_recomputed(ModuleId{1})
                 : (void)scheduler.fetch(ModuleId{1}, Direction::backward);
      ADD_FAILURE() << "a backward in evaluation mode was planned";
    } catch (const std::logic_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("evaluation mode"));
      EXPECT_THAT(error.what(), HasSubstr(model.modules[1].path));
    }
  }
  EXPECT_EQ(scheduler.trace_step(), step);
  EXPECT_FALSE(scheduler.fetch(ModuleId{1}, Direction::forward).invalidated);
  (void)scheduler.release_all();
  EXPECT_FALSE(run.train().invalidated);
}

// hpZ: copies are for backwards, and an evaluation has none.
TEST(EvaluationMode, MakesNoSecondaryCopies) {
  ZeroConfig zero;
  zero.stage = 3;
  zero.hpz_partition_size = 2;
  SecondaryShards shards({true, true}, zero);
  shards.begin_iteration(ModelMode::evaluation);
  shards.enter(Direction::forward);
  EXPECT_FALSE(shards.released(ParamId{0}));
  EXPECT_FALSE(shards.held(ParamId{0}));
  shards.begin_iteration();
  shards.enter(Direction::forward);
  EXPECT_TRUE(shards.released(ParamId{0}));
  // One that is there is read as in a forward: not at all, if its weights are trained.
  shards.begin_iteration(ModelMode::evaluation);
  shards.enter(Direction::forward);
  EXPECT_EQ(shards.source(ParamId{0}), GatherSource::primary);
  EXPECT_TRUE(shards.held(ParamId{0}));
}

}  // namespace
}  // namespace shardscope::plan
