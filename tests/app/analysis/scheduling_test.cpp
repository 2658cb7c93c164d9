// The comparison of schedulers made from a recording is the one that the plan makes from the model.
#include "app/analysis/scheduling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "instrumentation/gate.h"
#include "runtime/plan/scheduler_config.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/runtime/plan/random_model.h"

namespace shardscope::analysis {
namespace {

namespace ev = shardscope::instrumentation;
using plan::Visit;
using plan::VisitKind;
using plan::testing_support::RandomModel;
using test::RunBuilder;
using testing::HasSubstr;

constexpr std::uint32_t kWorld = 2;

ev::RunTables tables_of(const plan::ModelPlan& model, const plan::SchedulerConfig& config,
                        const char* scheduler) {
  ev::RunTables tables;
  tables.world = kWorld;
  tables.stage = 3;
  tables.elems = model.elems;
  tables.config_json =
      nlohmann::json{{"zero_optimization",
                      {{"stage", 3},
                       {"stage3_prefetch_bucket_size", config.prefetch_bucket_elems},
                       {"stage3_max_live_parameters", config.max_live_elems},
                       {"stage3_max_reuse_distance", config.max_reuse_distance_elems},
                       {"stage3_param_persistence_threshold", config.param_persistence_elems},
                       {"stage3_model_persistence_threshold", config.model_persistence_elems}}},
                     {"shardscope", {{"compat", {{"scheduler", scheduler}}}}}}
          .dump();
  for (const plan::ModulePlan& module : model.modules) {
    ev::ModuleInfo info{plan::raw(module.id), plan::raw(module.parent), module.path, module.type, {},
                        module.hooks};
    for (const plan::ParamId param : module.params) info.params.push_back(plan::raw(param));
    tables.modules.push_back(info);
  }
  for (const plan::ParamPlan& param : model.params) {
    ev::ParamInfo info;
    info.id = plan::raw(param.id);
    info.name = param.name;
    info.shape = param.shape;
    info.elems = param.elems;
    info.frozen = !param.trainable;
    for (const plan::ModuleId module : param.modules) info.modules.push_back(plan::raw(module));
    tables.params.push_back(info);
  }
  return tables;
}

/// One micro-step after the other as a rank emits them: a gate at each boundary, a decision after each fetch.
class Emitter {
 public:
  explicit Emitter(RunBuilder& run) : run_(run) {}

  void micro_step(std::uint32_t number, const std::vector<Visit>& visits) {
    gate(ev::GateKind::micro_step, number);
    bool at_end = false;  // the module's post-forward gate has been passed: what it returns comes after that
    for (std::size_t i = 0; i < visits.size(); ++i) {
      const Visit& visit = visits[i];
      const std::uint32_t module = plan::raw(visit.module);
      const bool reads_to_return = visit.kind == VisitKind::use_external && i + 1 < visits.size() &&
                                   visits[i + 1].kind == VisitKind::return_param;
      if (!at_end && (reads_to_return || visit.kind == VisitKind::return_param)) {
        gate(ev::GateKind::post_forward, module);
        at_end = true;
      }
      switch (visit.kind) {
        case VisitKind::pre_forward:
          gate(ev::GateKind::pre_forward, module);
          decision(module);
          break;
        case VisitKind::post_forward:
          if (!at_end) gate(ev::GateKind::post_forward, module);
          at_end = false;
          break;
        case VisitKind::pre_backward:
          gate(ev::GateKind::pre_backward, module);
          decision(module);
          break;
        case VisitKind::post_backward:
          gate(ev::GateKind::post_backward, module);
          break;
        case VisitKind::use_external:
          run_.instant(0, ++now_, ev::EventKind::param_status, ev::StreamId::gather, plan::raw(visit.param),
                       module, 0, ev::status_code(1, ev::StatusCause::external));
          decision(module);
          break;
        case VisitKind::return_param:
          run_.instant(0, ++now_, ev::EventKind::fetch_decision, ev::StreamId::host, 0, ev::kNoId, ev::kNoId,
                       static_cast<std::uint8_t>(plan::PrefetchStop::returned), plan::raw(visit.param));
          break;
        case VisitKind::begin_recompute:
        case VisitKind::end_recompute:
          break;
      }
    }
    gate(ev::GateKind::optimizer, number);
  }
  void skip_gate() { ++number_; }
  void gate(ev::GateKind kind, std::uint32_t id) {
    run_.instant(0, ++now_, ev::EventKind::gate, ev::StreamId::host, number_++, id, ev::kNoId,
                 static_cast<std::uint8_t>(kind));
  }
  void decision(std::uint32_t module) {
    run_.instant(0, ++now_, ev::EventKind::fetch_decision, ev::StreamId::host, module);
  }
  [[nodiscard]] std::int64_t now() const { return now_; }

 private:
  RunBuilder& run_;
  std::int64_t now_ = 0;
  std::uint32_t number_ = 0;
};

plan::SchedulerConfig random_limits(RandomModel& random, const plan::ModelPlan& model) {
  const auto some = [&] { return random.draw(static_cast<std::uint32_t>(model.elems)); };
  plan::SchedulerConfig config;
  config.prefetch_bucket_elems = some();
  config.max_live_elems = some();
  config.max_reuse_distance_elems = some();
  config.param_persistence_elems = random.draw(100);
  return config;
}

std::vector<Visit> visits_of(const plan::ModelPlan& model) { return plan::visit_order(model); }

void expect_same(const plan::SchedulerTotals& a, const plan::SchedulerTotals& b) {
  EXPECT_EQ(a.gathers, b.gathers);
  EXPECT_EQ(a.on_demand, b.on_demand);
  EXPECT_EQ(a.gathered_elems, b.gathered_elems);
  EXPECT_EQ(a.peak_elems, b.peak_elems);
}

TEST(Scheduling, OfARecordingIsThatOfItsModel) {
  int differing = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomModel random(seed);
    const plan::ModelPlan model = random.make();
    const plan::SchedulerConfig config = random_limits(random, model);
    RunBuilder run(1);
    Emitter emitter(run);
    for (std::uint32_t micro = 0; micro < 2; ++micro) emitter.micro_step(micro, visits_of(model));
    store::Store& store = run.build();
    const bool follows = seed % 3 == 0;  // some runs follow DeepSpeed themselves
    store.set_tables(0, tables_of(model, config, follows ? "deepspeed" : "shardscope"));

    const Scheduling found = compare_scheduling(store);
    ASSERT_EQ(found.missing, "");
    const auto ours = plan::Compat::shardscope, theirs = plan::Compat::deepspeed;
    EXPECT_EQ(found.run, follows ? theirs : ours);
    EXPECT_EQ(found.other, follows ? ours : theirs);
    EXPECT_EQ(found.micro_step, 1U);
    const plan::SchedulerComparison expected =
        plan::compare_schedulers(model, kWorld, config, found.run, found.other);
    expect_same(found.comparison.first, expected.first);
    expect_same(found.comparison.second, expected.second);
    ASSERT_EQ(found.comparison.differences.size(), expected.differences.size());
    for (std::size_t i = 0; i < expected.differences.size(); ++i) {
      EXPECT_EQ(found.comparison.differences[i].text, expected.differences[i].text);
      // The gate named is the boundary's own.
      const auto& gate = found.gates.at(static_cast<std::size_t>(expected.differences[i].visit));
      const bool external = gate.id != plan::raw(expected.differences[i].module);
      EXPECT_TRUE(!external || expected.differences[i].text.find("before") == 0);
    }
    differing += expected.differences.empty() ? 0 : 1;
  }
  EXPECT_GT(differing, 20);
}

struct Small {
  plan::ModelPlan model = plan::build_model_plan(plan::named_model("mlp"));
  plan::SchedulerConfig config;
  Small() {
    config.param_persistence_elems = 0;
    config.prefetch_bucket_elems = 50'000;
    config.max_live_elems = 40'000;
    config.max_reuse_distance_elems = 0;
  }
};

TEST(Scheduling, IsOfTheMicroStepThatIsLookedAt) {
  const Small small;
  RunBuilder run(1);
  Emitter emitter(run);
  emitter.micro_step(0, visits_of(small.model));
  const std::int64_t first_end = emitter.now() - 1;  // the first event is the origin of time
  std::vector<Visit> shorter = visits_of(small.model);
  shorter.resize(shorter.size() / 2);
  emitter.micro_step(1, shorter);
  const std::int64_t second_end = emitter.now() - 1;
  emitter.gate(ev::GateKind::micro_step, 2);  // under way
  emitter.gate(ev::GateKind::pre_forward, 0);
  store::Store& store = run.build();
  store.set_tables(0, tables_of(small.model, small.config, "shardscope"));
  EXPECT_EQ(compare_scheduling(store, 0, first_end).micro_step, 0U);
  EXPECT_EQ(compare_scheduling(store, 0, 0).micro_step, 0U) << "before the first there is the first";
  EXPECT_EQ(compare_scheduling(store, 0, second_end - 1).micro_step, 1U);
  const Scheduling last = compare_scheduling(store);
  EXPECT_EQ(last.micro_step, 1U) << "the one under way has no end yet";
  EXPECT_LT(last.gates.size(), compare_scheduling(store, 0, first_end).gates.size());
  EXPECT_THAT(compare_scheduling(store, 0, first_end).text(),
              HasSubstr("shardscope and deepspeed differ at "));
}

TEST(Scheduling, SaysWhyNothingCanBeSaid) {
  const Small small;
  const auto missing = [&](const std::function<void(ev::RunTables&, Emitter&)>& change) {
    RunBuilder run(1);
    Emitter emitter(run);
    ev::RunTables tables = tables_of(small.model, small.config, "shardscope");
    change(tables, emitter);
    store::Store& store = run.build();
    store.set_tables(0, tables);
    return compare_scheduling(store).missing;
  };
  const auto whole = [&](Emitter& emitter) { emitter.micro_step(0, visits_of(small.model)); };
  EXPECT_EQ(missing([&](ev::RunTables&, Emitter& emitter) { whole(emitter); }), "");
  EXPECT_THAT(missing([](ev::RunTables&, Emitter&) {}), HasSubstr("detail modules"));
  EXPECT_THAT(missing([](ev::RunTables& tables, Emitter&) { tables.stage = 2; }), HasSubstr("stage 3"));
  EXPECT_THAT(missing([](ev::RunTables& tables, Emitter&) { tables.config_json = "{}"; }),
              HasSubstr("zero_optimization"));
  EXPECT_THAT(missing([&](ev::RunTables& tables, Emitter& emitter) {
                whole(emitter);
                tables.params.pop_back();
              }),
              HasSubstr("not complete"));
  EXPECT_THAT(missing([&](ev::RunTables&, Emitter& emitter) {
                emitter.gate(ev::GateKind::micro_step, 0);
                emitter.gate(ev::GateKind::pre_forward, 0);
                emitter.skip_gate();  // its event was dropped
                emitter.gate(ev::GateKind::post_forward, 0);
                emitter.gate(ev::GateKind::optimizer, 0);
              }),
              HasSubstr("lost"));
  EXPECT_THAT(missing([&](ev::RunTables& tables, Emitter& emitter) {
                whole(emitter);
                tables.config_json = R"({"zero_optimization": {"stage3_max_live_parameters": -1}})";
              }),
              HasSubstr("limits"));
}

TEST(Scheduling, WithoutTablesNothingIsClaimed) {
  const store::Store empty;
  EXPECT_NE(compare_scheduling(empty).missing, "");
  EXPECT_TRUE(compare_scheduling(empty).gates.empty());
}

}  // namespace
}  // namespace shardscope::analysis
