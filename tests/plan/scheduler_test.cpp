// Properties of the stage-3 scheduler over random trees, limits and interruptions, checked by an independent
// account of what memory holds.
#include "runtime/plan/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "runtime/plan/visit_order.h"
#include "tests/plan/random_model.h"

namespace shardscope::plan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_support::RandomModel;

/// Follows the plans as an engine would and asserts what must hold at every step.
class Account {
 public:
  Account(const ModelPlan& model, const SchedulerConfig& config, std::uint32_t world)
      : model_(model), config_(config), scheduler_(model, world, config) {}

  FetchScheduler& scheduler() { return scheduler_; }
  [[nodiscard]] std::string log() const { return log_.str(); }

  void begin() {
    const TraceMode mode = scheduler_.begin_iteration();
    log_ << "begin " << static_cast<int>(mode);
    const Drain& drain = scheduler_.drained();
    drained(drain.wait_for, drain.released);
    in_use_.clear();
  }

  void fetch(ModuleId module, Direction direction) {
    const FetchPlan plan = scheduler_.fetch(module, direction);
    if (plan.invalidated) {
      log_ << " invalidated@" << plan.invalidated->trace_step;
      ++invalidations_;
      drained(plan.invalidated->wait_for, plan.invalidated->released);
    }
    take(plan);
    in_use_[module] = scheduler_.params_of(module);
    for (const ParamId id : in_use_[module]) {
      EXPECT_TRUE(resident_.count(id) != 0 && waited_.count(gather_of_.at(id)) != 0)
          << model_.params[raw(id)].name << " is used before it is available";
      EXPECT_EQ(scheduler_.status(id), ParamStatus::available);
    }
    check_limit();
  }

  void use_external(ParamId param, ModuleId module) {
    take(scheduler_.fetch_external(param, module));
    EXPECT_TRUE(resident_.count(param) != 0 && waited_.count(gather_of_.at(param)) != 0);
    if (config_.compat == Compat::shardscope) in_use_[module].push_back(param);
    check_limit();
  }

  void release(ModuleId module, Direction direction) {
    in_use_.erase(module);
    const ReleasePlan plan = scheduler_.release(module, direction);
    freed(plan.released);
    std::set<ParamId> decided(plan.released.begin(), plan.released.end());
    for (const Kept& kept : plan.kept) EXPECT_TRUE(decided.insert(kept.param).second) << "decided twice";
    for (const ParamId id : scheduler_.params_of(module)) EXPECT_EQ(decided.count(id), 1U);
    log_ << " available " << plan.available_elems;
  }

  void end_backward() {
    in_use_.clear();
    freed(scheduler_.release_leftovers());
  }

  void step() {
    in_use_.clear();
    for (const GatherId id : scheduler_.in_flight_gathers()) waited_.insert(id);
    freed(scheduler_.release_all());
    EXPECT_THAT(resident_, IsEmpty()) << "the optimizer step needs every parameter partitioned";
    EXPECT_EQ(issued_, waited_) << "a gather nobody waited for";
    EXPECT_EQ(scheduler_.resident_elems(), 0);
    const Gather gather = scheduler_.gather_persistent();
    issue(gather);
    if (gather.id != kNone<GatherId>) waited_.insert(gather.id);
    for (const ParamPlan& param : model_.params) {
      EXPECT_EQ(scheduler_.status(param.id) == ParamStatus::available, scheduler_.persistent(param.id));
    }
  }

  void run(const std::vector<Visit>& visits) {
    for (const Visit& visit : visits) {
      switch (visit.kind) {
        case VisitKind::pre_forward:
          fetch(visit.module, Direction::forward);
          break;
        case VisitKind::post_forward:
          release(visit.module, Direction::forward);
          break;
        case VisitKind::pre_backward:
          fetch(visit.module, Direction::backward);
          break;
        case VisitKind::post_backward:
          release(visit.module, Direction::backward);
          break;
        case VisitKind::use_external:
          use_external(visit.param, visit.module);
          break;
        case VisitKind::begin_recompute:
        case VisitKind::end_recompute:
          break;
      }
    }
  }

  [[nodiscard]] int invalidations() const { return invalidations_; }
  [[nodiscard]] int on_demand() const { return on_demand_; }
  [[nodiscard]] int prefetched() const { return prefetched_; }
  [[nodiscard]] std::string take_log() {
    std::string text = log_.str();
    log_.str("");
    return text;
  }

 private:
  [[nodiscard]] std::int64_t sum(const std::vector<ParamId>& params) const {
    std::int64_t elems = 0;
    for (const ParamId id : params) elems += model_.params[raw(id)].elems;
    return elems;
  }

  void issue(const Gather& gather) {
    if (gather.id == kNone<GatherId>) {
      EXPECT_THAT(gather.params, IsEmpty());
      return;
    }
    EXPECT_FALSE(gather.params.empty());
    EXPECT_TRUE(issued_.insert(gather.id).second) << "two gathers with one id";
    EXPECT_TRUE(std::is_sorted(gather.params.begin(), gather.params.end()));
    EXPECT_EQ(gather.elems, sum(gather.params));
    log_ << " gather";
    for (const ParamId id : gather.params) {
      EXPECT_TRUE(resident_.insert(id).second) << "gathered although it is there";
      gather_of_[id] = gather.id;
      log_ << ' ' << raw(id);
    }
  }

  void take(const FetchPlan& plan) {
    issue(plan.gather);
    on_demand_ += plan.gather.id != kNone<GatherId> ? 1 : 0;
    for (const GatherId id : plan.wait_for) {
      EXPECT_TRUE(issued_.count(id) != 0);
      EXPECT_TRUE(waited_.insert(id).second) << "waited for twice";
    }
    for (const ParamId id : plan.completed) EXPECT_TRUE(waited_.count(gather_of_.at(id)) != 0);
    if (plan.prefetch.id != kNone<GatherId>) check_prefetch(plan);
    issue(plan.prefetch);
    prefetched_ += plan.prefetch.id != kNone<GatherId> ? 1 : 0;
    if (plan.stop == PrefetchStop::no_trace || plan.stop == PrefetchStop::disabled) {
      EXPECT_EQ(plan.prefetch.id, kNone<GatherId>);
    }
    log_ << " stop " << static_cast<int>(plan.stop) << " available " << plan.available_elems << '\n';
  }

  void freed(const std::vector<ParamId>& params) {
    for (const ParamId id : params) {
      EXPECT_EQ(resident_.erase(id), 1U) << "freed although it is not there";
      EXPECT_TRUE(waited_.count(gather_of_.at(id)) != 0) << "freed while its gather is under way";
      for (const auto& [module, used] : in_use_) {
        EXPECT_TRUE(std::find(used.begin(), used.end(), id) == used.end())
            << model_.params[raw(id)].name << " is freed while module " << raw(module) << " uses it";
      }
      log_ << " free " << raw(id);
    }
  }

  void drained(const std::vector<GatherId>& wait_for, const std::vector<ParamId>& released) {
    for (const GatherId id : wait_for) EXPECT_TRUE(waited_.insert(id).second);
    freed(released);
  }

  /// Ours stays within the limit. DeepSpeed's may pass the limit, or its bucket, by its last parameter (C8).
  void check_prefetch(const FetchPlan& plan) {
    std::int64_t largest = 0;
    std::int64_t counted = 0;
    for (const ParamId id : plan.prefetch.params) {
      const std::int64_t elems = model_.params[raw(id)].elems;
      largest = std::max(largest, elems);
      counted += scheduler_.persistent(id) ? 0 : elems;
    }
    EXPECT_LT(plan.prefetch.elems - largest, config_.prefetch_bucket_elems);
    if (config_.compat != Compat::shardscope) {
      EXPECT_LT(plan.available_elems - largest, config_.max_live_elems);
    } else if (counted > 0) {
      EXPECT_LE(plan.available_elems, config_.max_live_elems);
    }
  }

  /// The documented bound of the default: the limit and what running modules need.
  void check_limit() {
    std::int64_t resident = 0;
    std::int64_t counted = 0;
    for (const ParamId id : resident_) {
      const std::int64_t elems = model_.params[raw(id)].elems;
      resident += elems;
      counted += scheduler_.persistent(id) ? 0 : elems;
    }
    EXPECT_EQ(scheduler_.resident_elems(), resident);
    if (config_.compat != Compat::shardscope) return;
    EXPECT_EQ(scheduler_.available_elems(), counted) << "the counter is not the truth";
    std::set<ParamId> running;
    for (const auto& [module, used] : in_use_) running.insert(used.begin(), used.end());
    EXPECT_LE(counted, config_.max_live_elems + sum({running.begin(), running.end()}));
  }

  const ModelPlan& model_;
  SchedulerConfig config_;
  FetchScheduler scheduler_;
  std::set<ParamId> resident_;
  std::map<ParamId, GatherId> gather_of_;
  std::set<GatherId> issued_;
  std::set<GatherId> waited_;
  std::map<ModuleId, std::vector<ParamId>> in_use_;
  std::ostringstream log_;
  int invalidations_ = 0;
  int on_demand_ = 0;
  int prefetched_ = 0;
};

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

std::string run_random(std::uint32_t seed, Compat compat) {
  RandomModel random(seed);
  const ModelPlan model = random.make();
  SchedulerConfig config = random_config(random, model);
  config.compat = compat;
  Account account(model, config, 1 + random.draw(4));
  for (std::int64_t iteration = 0; iteration < 8; ++iteration) {
    VisitOptions options;
    options.iteration = iteration;
    options.one_post_backward = random.chance(30);
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
    if (random.chance(70)) account.step();
    if (testing::Test::HasFailure()) break;
  }
  if (!testing::Test::HasFailure()) account.step();
  return account.log();
}

class Properties : public testing::TestWithParam<Compat> {};

TEST_P(Properties, HoldOverRandomTrees) {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    (void)run_random(seed, GetParam());
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

// What the random trees are made of: every kind of module whose order or ownership is special.
TEST(RandomTrees, HoldEveryKind) {
  std::map<std::string, int> seen;
  const std::function<void(const NodeSpec&)> look = [&](const NodeSpec& node) {
    seen["conditional"] += node.kind == NodeKind::conditional ? 1 : 0;
    seen["reused"] += node.kind == NodeKind::reuse ? 1 : 0;
    seen["functional"] += node.kind == NodeKind::functional_linear ? 1 : 0;
    seen["tied"] += node.kind == NodeKind::linear && !node.weight_of.empty() ? 1 : 0;
    seen["leaf"] += node.leaf ? 1 : 0;
    seen["checkpoint"] += node.checkpoint ? 1 : 0;
    for (const NodeSpec& child : node.children) look(child);
  };
  for (std::uint32_t seed = 0; seed < 400; ++seed) look(RandomModel(seed).make().spec.root);
  for (const char* kind : {"conditional", "reused", "functional", "tied", "leaf", "checkpoint"}) {
    EXPECT_GT(seen[kind], 20) << kind;
  }
}

TEST_P(Properties, RanksDecideAlikeInAnyWorld) {
  for (std::uint32_t seed = 3000; seed < 3040; ++seed) {
    RandomModel random(seed);
    const ModelPlan model = random.make();
    SchedulerConfig config = random_config(random, model);
    config.compat = GetParam();
    std::set<std::string> logs;
    for (const std::uint32_t world : {1U, 2U, 2U, 5U}) {  // two of one world: two of its ranks
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

INSTANTIATE_TEST_SUITE_P(Compat, Properties, testing::Values(Compat::shardscope, Compat::deepspeed),
                         [](const auto& which) {
                           return which.param == Compat::deepspeed ? "deepspeed" : "shardscope";
                         });

// ---- Cases by hand ------------------------------------------------------------------------------------

ModelPlan mlp() { return build_model_plan(named_model("mlp")); }

TEST(Scheduler, FirstIterationRecordsThenPrefetchFollowsTheTrace) {
  const ModelPlan model = mlp();
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
  const ModelPlan model = mlp();
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
  const ModelPlan model = mlp();
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
  const ModelPlan model = mlp();
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
  const ModelPlan model = mlp();
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
  const ModelPlan model = mlp();
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
  const ModelPlan model = mlp();
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
  EXPECT_THROW(FetchScheduler(mlp(), 2, config), std::invalid_argument);
  EXPECT_THROW(FetchScheduler(mlp(), 0, SchedulerConfig{}), std::invalid_argument);
}

}  // namespace
}  // namespace shardscope::plan
