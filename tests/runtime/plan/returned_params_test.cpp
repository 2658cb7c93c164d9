// Parameters that a module returns to what runs around it (docs/zero.md P11, C11).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/plan/forward_stack.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/visit_order.h"

namespace shardscope::plan {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

// 0 root, 1 inp, 2 blk, 3 blk.fc (returns its weight, parameter 2), 4 blk.mid, 5 out. Its weight is read in
// blk after blk.fc has ended.
constexpr ModuleId kRoot{0}, kBlk{2}, kFc{3}, kMid{4};
constexpr ParamId kWeight{2}, kBias{3};

ModelPlan model_with(const std::string& of_block = "",
                     const std::string& of_fc = R"("returns": ["weight"],)") {
  return build_model_plan(parse_model_spec(R"({
    "name": "returned", "input": {"kind": "vectors", "width": 10}, "loss": {"kind": "mse", "width": 1},
    "root": {"kind": "sequential", "children": [
      {"kind": "linear", "name": "inp", "in": 10, "out": 8},
      {"kind": "sequential", "name": "blk", )" +
                                           of_block + R"( "children": [
        {"kind": "linear", "name": "fc", )" +
                                           of_fc + R"( "in": 8, "out": 8},
        {"kind": "linear", "name": "mid", "in": 8, "out": 8},
        {"kind": "functional_linear", "weight_of": "blk.fc.weight"}]},
      {"kind": "linear", "name": "out", "in": 8, "out": 1}]}})"));
}

SchedulerConfig config_of(Compat compat, std::int64_t live = 1'000'000) {
  SchedulerConfig config;
  config.compat = compat;
  config.param_persistence_elems = 0;
  config.prefetch_bucket_elems = 0;
  config.max_reuse_distance_elems = 0;
  config.max_live_elems = live;
  return config;
}

/// Runs iterations and remembers what releases said.
class Iterations {
 public:
  Iterations(const ModelPlan& model, const SchedulerConfig& config)
      : model_(model), scheduler_(model, 2, config) {}

  void iterate() {
    released_.clear();
    kept_.clear();
    (void)scheduler_.begin_iteration();
    stack_.clear();
    Direction forward = Direction::forward;
    for (const Visit& visit : visit_order(model_)) {
      switch (visit.kind) {
        case VisitKind::pre_forward:
          stack_.enter(visit.module);
          (void)scheduler_.fetch(visit.module, forward);
          break;
        case VisitKind::return_param:
          returns_.push_back(scheduler_.return_param(visit.param, visit.module, stack_.around()));
          break;
        case VisitKind::post_forward:
          stack_.leave();
          note(visit.module, scheduler_.release(visit.module, forward), forward);
          break;
        case VisitKind::pre_backward:
          forward = Direction::backward;
          (void)scheduler_.fetch(visit.module, Direction::backward);
          break;
        case VisitKind::post_backward:
          note(visit.module, scheduler_.release(visit.module, Direction::backward), Direction::backward);
          break;
        case VisitKind::use_external:
          uses_.push_back(scheduler_.fetch_external(visit.param, visit.module));
          break;
        case VisitKind::begin_recompute:
        case VisitKind::end_recompute:
          break;
      }
    }
    left_ = scheduler_.release_leftovers();
  }
  void step() { (void)scheduler_.release_all(); }

  [[nodiscard]] bool released(ModuleId module, ParamId param, Direction direction) const {
    return std::find(released_.begin(), released_.end(), Done{module, param, direction}) != released_.end();
  }
  [[nodiscard]] std::optional<KeepReason> kept(ModuleId module, ParamId param, Direction direction) const {
    for (const auto& [done, reason] : kept_) {
      if (done == Done{module, param, direction}) return reason;
    }
    return std::nullopt;
  }

  FetchScheduler& scheduler() { return scheduler_; }
  [[nodiscard]] const std::vector<ReturnPlan>& returns() const { return returns_; }
  [[nodiscard]] const std::vector<FetchPlan>& uses() const { return uses_; }
  [[nodiscard]] const std::vector<ParamId>& left() const { return left_; }

 private:
  struct Done {
    ModuleId module;
    ParamId param;
    Direction direction;
    bool operator==(const Done&) const = default;
  };
  void note(ModuleId module, const ReleasePlan& plan, Direction direction) {
    for (const ParamId id : plan.released) released_.push_back({module, id, direction});
    for (const Kept& kept : plan.kept) kept_.push_back({{module, kept.param, direction}, kept.reason});
  }

  const ModelPlan& model_;
  FetchScheduler scheduler_;
  ForwardStack stack_;
  std::vector<Done> released_;
  std::vector<std::pair<Done, KeepReason>> kept_;
  std::vector<ReturnPlan> returns_;
  std::vector<FetchPlan> uses_;
  std::vector<ParamId> left_;
};

// The recorded rule: from its first return on it is fetched with the parent and released by no module, until
// the step partitions everything.
TEST(ReturnedParams, AreDeepSpeedsExternalParameters) {
  const ModelPlan model = model_with();
  for (const Compat compat : {Compat::deepspeed, Compat::notes}) {
    Iterations run(model, config_of(compat));
    run.iterate();
    ASSERT_EQ(run.returns().size(), 1U);
    EXPECT_EQ(run.returns()[0].holder, kBlk);
    EXPECT_TRUE(run.returns()[0].moved);
    EXPECT_EQ(run.returns()[0].fetch.gather.id, kNone<GatherId>) << "it is there";
    EXPECT_EQ(run.kept(kFc, kWeight, Direction::forward), KeepReason::external);
    EXPECT_TRUE(run.released(kFc, kBias, Direction::forward));
    EXPECT_EQ(run.uses().at(0).gather.id, kNone<GatherId>) << "read after blk.fc, it is still there";
    EXPECT_EQ(run.kept(kBlk, kWeight, Direction::forward), KeepReason::external) << "nor by its holder";
    EXPECT_EQ(run.kept(kFc, kWeight, Direction::backward), KeepReason::external);
    EXPECT_THAT(run.left(), Not(Contains(kWeight)));
    EXPECT_EQ(run.scheduler().status(kWeight), ParamStatus::available);
    EXPECT_THAT(run.scheduler().params_of(kBlk), ElementsAre(kWeight));
    run.step();
    EXPECT_EQ(run.scheduler().status(kWeight), ParamStatus::not_available);

    run.iterate();
    EXPECT_EQ(run.scheduler().mode(), TraceMode::complete);
    EXPECT_FALSE(run.returns()[1].moved) << "a second return registers nothing";
    EXPECT_EQ(run.scheduler().status(kWeight), ParamStatus::available);
    run.step();
    // Unregistered it is fetched with blk no longer, but stays one that modules do not release.
    run.scheduler().unregister_external(kWeight, kBlk);
    EXPECT_THAT(run.scheduler().params_of(kBlk), testing::IsEmpty());
    (void)run.scheduler().begin_iteration();
    (void)run.scheduler().fetch(kFc, Direction::forward);
    EXPECT_THAT(run.scheduler().release(kFc, Direction::forward).released, ElementsAre(kBias));
  }
}

TEST(ReturnedParams, StayByDefaultWhileTheLimitAllows) {
  const ModelPlan model = model_with();
  for (const bool room : {true, false}) {
    Iterations run(model, config_of(Compat::shardscope, room ? 1'000'000 : 0));
    for (int i = 0; i < 3; ++i) {
      run.iterate();
      EXPECT_EQ(run.kept(kFc, kWeight, Direction::forward), KeepReason::external) << "blk runs on with it";
      EXPECT_EQ(run.uses().back().gather.id, kNone<GatherId>);
      EXPECT_EQ(run.released(kBlk, kWeight, Direction::forward), !room);
      EXPECT_EQ(run.scheduler().status(kWeight) == ParamStatus::available, room);
      run.step();
    }
    EXPECT_EQ(run.scheduler().mode(), TraceMode::complete);
    // Not returned and unregistered it is a parameter like any other.
    run.scheduler().unregister_external(kWeight, kBlk);
    (void)run.scheduler().begin_iteration();
    (void)run.scheduler().fetch(kFc, Direction::forward);
    EXPECT_THAT(run.scheduler().release(kFc, Direction::forward).released, ElementsAre(kWeight, kBias));
  }
}

// A container that returns what one inside has returned to it hands it on: it is its own external no longer.
TEST(ReturnedParams, MoveOutwards) {
  const ModelPlan model = model_with(R"("returns": ["fc.weight"],)");
  for (const Compat compat : {Compat::shardscope, Compat::deepspeed}) {
    Iterations run(model, config_of(compat));
    run.iterate();
    ASSERT_EQ(run.returns().size(), 2U);
    EXPECT_EQ(run.returns()[0].holder, kBlk);
    EXPECT_EQ(run.returns()[1].holder, kRoot);
    EXPECT_TRUE(run.returns()[1].moved);
    EXPECT_THAT(run.scheduler().params_of(kBlk), Not(Contains(kWeight)));
    EXPECT_THAT(run.scheduler().params_of(kRoot), Contains(kWeight));
    EXPECT_EQ(run.scheduler().status(kWeight), ParamStatus::available);
    run.step();
    run.iterate();
    EXPECT_EQ(run.returns()[2].holder, kRoot) << "already external to something around it";
    EXPECT_FALSE(run.returns()[2].moved);
    EXPECT_EQ(run.returns().size(), 4U);
    EXPECT_FALSE(run.returns()[3].moved);
  }
}

// One that is not there when it is returned (somebody released it before) is gathered for the parent.
TEST(ReturnedParams, AreGatheredWhereTheyAreMissing) {
  const ModelPlan model = model_with("", "");
  for (const Compat compat : {Compat::shardscope, Compat::deepspeed}) {
    FetchScheduler scheduler(model, 2, config_of(compat));
    (void)scheduler.begin_iteration();
    (void)scheduler.fetch(kRoot, Direction::forward);
    (void)scheduler.fetch(kBlk, Direction::forward);
    (void)scheduler.fetch(kMid, Direction::forward);
    const std::int64_t before = scheduler.available_elems();
    const std::vector<ModuleId> around{kRoot, kBlk};
    const ReturnPlan plan = scheduler.return_param(kWeight, kMid, around);
    EXPECT_THAT(plan.fetch.gather.params, ElementsAre(kWeight));
    EXPECT_THAT(plan.fetch.wait_for, ElementsAre(plan.fetch.gather.id));
    EXPECT_THAT(plan.fetch.completed, ElementsAre(kWeight));
    EXPECT_EQ(plan.holder, kBlk);
    EXPECT_EQ(scheduler.available_elems() - before, compat == Compat::deepspeed ? 0 : 64)
        << "gathered outside DeepSpeed's coordinator";
  }
}

// In a recomputation nothing runs around a checkpointed module but, as DeepSpeed counts, the root.
TEST(ReturnedParams, OfARecomputationAreKeptForNobodyByDefault) {
  const ModelPlan model = model_with();
  for (const Compat compat : {Compat::shardscope, Compat::deepspeed}) {
    FetchScheduler scheduler(model, 2, config_of(compat));
    (void)scheduler.begin_iteration();
    (void)scheduler.fetch(kFc, Direction::backward);
    const ReturnPlan plan = scheduler.return_param(kWeight, kFc, {});
    EXPECT_EQ(plan.holder, compat == Compat::deepspeed ? kRoot : kNone<ModuleId>);
    EXPECT_EQ(plan.moved, compat == Compat::deepspeed);
  }
}

// DeepSpeed hangs a pre-backward hook on each tensor that a module returns (coordinator_returned.json).
TEST(ReturnedParams, AreFetchedForTheirOwnGradientByDeepSpeedsHooks) {
  const auto fetches = [](const ModelPlan& model, bool deepspeed_hooks) {
    VisitOptions options;
    options.deepspeed_hooks = deepspeed_hooks;
    const std::vector<Visit> visits = visit_order(model, options);
    return std::count_if(visits.begin(), visits.end(), [](const Visit& visit) {
      return visit.kind == VisitKind::pre_backward && visit.module == kFc;
    });
  };
  EXPECT_EQ(fetches(model_with(), true), 2);
  EXPECT_EQ(fetches(model_with(), false), 1);
  EXPECT_EQ(fetches(model_with("", R"("returns": ["bias"],)"), true), 1) << "no module reads the bias";
  EXPECT_EQ(fetches(model_with("", R"("returns": ["weight"], "trainable": {"weight": false},)"), true), 1)
      << "no gradient comes back to a frozen one";
  EXPECT_EQ(fetches(model_with(R"("checkpoint": true,)"), true), 2) << "those of the recomputation";
}

// Across the boundary of a checkpointed module (coordinator_crossing.json): PyTorch hands its recomputation a
// gradient for every trained parameter that it returned, read outside or not.
TEST(ReturnedParams, AcrossACheckpointAreFetchedForWithTheRecomputation) {
  const auto fetches = [](const std::string& of_block, const std::string& of_fc) {
    const ModelPlan model = model_with(of_block, of_fc);
    VisitOptions options;
    options.deepspeed_hooks = true;
    std::pair<int, int> count{0, 0};
    for (const Visit& visit : visit_order(model, options)) {
      if (visit.kind != VisitKind::pre_backward) continue;
      count.first += visit.module == kBlk ? 1 : 0;
      count.second += visit.module == kFc ? 1 : 0;
    }
    return count;
  };
  using Fetches = std::pair<int, int>;  // of blk, of blk.fc
  const std::string both = R"("checkpoint": true, "returns": ["fc.weight", "mid.weight"],)";
  EXPECT_EQ(fetches(both, ""), Fetches(3, 1));
  EXPECT_EQ(fetches(both, R"("returns": ["weight"],)"), Fetches(3, 2)) << "blk reads what blk.fc returned";
  EXPECT_EQ(fetches(both, R"("trainable": false,)"), Fetches(2, 1));
  EXPECT_EQ(fetches(R"("returns": ["fc.weight", "mid.weight"],)", ""), Fetches(1, 1))
      << "without a checkpoint no module reads them";
}

// What a module returns and does not own it reads by attribute first, as its PyTorch forward would.
TEST(ReturnedParams, OfAnotherModuleAreReadFirst) {
  const ModelPlan model = model_with(R"("returns": ["fc.weight"],)", R"("returns": ["weight"],)");
  std::vector<std::pair<VisitKind, ModuleId>> of_weight;
  for (const Visit& visit : visit_order(model)) {
    if (visit.param == kWeight) of_weight.emplace_back(visit.kind, visit.module);
  }
  EXPECT_THAT(
      of_weight,
      ElementsAre(std::pair(VisitKind::return_param, kFc), std::pair(VisitKind::use_external, kBlk),
                  std::pair(VisitKind::use_external, kBlk), std::pair(VisitKind::return_param, kBlk)));
}

}  // namespace
}  // namespace shardscope::plan
