// Stage 3's coordinator on real ranks: what its counters say, how it reports an invalidated trace, that all
// ranks must record the same one, and what leaf modules are spared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "runtime/plan/activation_checkpointing.h"
#include "runtime/plan/fetch_counters.h"
#include "runtime/plan/in_flight_limit.h"
#include "runtime/plan/leaf_modules.h"
#include "runtime/plan/visit_order.h"
#include "tests/runtime/engine/rank_events.h"

namespace shardscope::engine::testing::coordinator_test {
namespace {

using instrumentation::Event;
using instrumentation::EventKind;
using plan::FetchCount;
using plan::FetchCounter;
using ::testing::HasSubstr;

/// By rank, of a run in which no rank fails and no event is lost.
std::map<std::uint32_t, std::vector<Event>> events_of(const RunSpec& spec) {
  return train_observed(spec).events;
}

RunSpec spec_of(const std::string& model, std::uint32_t world, const Json& zero, std::int64_t steps) {
  RunSpec spec;
  spec.model = model_named(model);
  spec.data = model.rfind("gpt", 0) == 0 ? "golden:gpt" : "golden:mlp";
  spec.config = make_config(3);
  spec.config["zero_optimization"].update(zero);
  spec.world = world;
  spec.steps = steps;
  return spec;
}

/// By micro-step.
std::vector<plan::FetchCounts> counters_in(const std::vector<Event>& events) {
  std::vector<plan::FetchCounts> counts;
  for (const Event& event : events) {
    if (event.kind != EventKind::fetch_counter) continue;
    if (counts.size() <= event.a) counts.resize(event.a + 1);
    counts[event.a].at(event.code) = {event.c, event.v0};
  }
  return counts;
}

/// As DeepSpeed's profiler lists them: what was not counted is missing.
Json as_recorded(const plan::FetchCounts& counts) {
  Json reported = Json::object();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].count == 0) continue;
    reported[plan::name_of(static_cast<FetchCounter>(i))] = {counts[i].count, counts[i].elems};
  }
  return reported;
}

/// Three iterations of a recorded trace, by the tree that the file has of its model or by a sample.
RunSpec spec_of_trace(const Json& golden, const Json& trace) {
  const std::string name = trace.at("model");
  const Json& model = golden.at("models").at(name);
  RunSpec spec =
      spec_of(model.contains("tree") ? "mlp" : name, trace.at("world").at(0), trace.at("config"), 3);
  if (model.contains("tree")) {
    spec.model = plan::parse_model_spec(model["tree"].dump());
    spec.data = spec.model.input == plan::InputKind::tokens ? "golden:gpt" : "golden:mlp";
  }
  spec.config["shardscope"] = {{"compat", "deepspeed"}};
  return spec;
}

/// Compares what real ranks count with what the file recorded; returns the number of traces compared.
int compare_counters(const Json& golden) {
  int compared = 0;
  for (const Json& trace : golden.at("traces")) {
    if (!trace.at("record").contains("counters") || trace.contains("register_external")) continue;
    const RunSpec spec = spec_of_trace(golden, trace);
    SCOPED_TRACE(trace.at("id").get<std::string>());
    ++compared;
    for (const auto& [rank, events] : events_of(spec)) {
      SCOPED_TRACE(rank);
      const std::vector<plan::FetchCounts> counts = counters_in(events);
      EXPECT_EQ(counts.size(), 3U);
      if (counts.size() != 3U) continue;
      EXPECT_EQ(as_recorded(counts[0]), trace.at("record").at("counters"));
      EXPECT_EQ(as_recorded(counts[1]), trace.at("complete").at("counters"));
      EXPECT_TRUE(trace.at("second_complete_identical").get<bool>());
      EXPECT_EQ(counts[2], counts[1]);
    }
  }
  return compared;
}

Json golden_file(const char* name) {
  std::ifstream file(std::string(SHARDSCOPE_GOLDEN "/") + name);
  return Json::parse(file);
}

TEST(Coordinator, CountsWhatDeepSpeedCountsOfFrozenAndReturnedParameters) {
  EXPECT_GE(compare_counters(golden_file("coordinator_frozen_more.json")), 10);
  EXPECT_GE(compare_counters(golden_file("coordinator_returned.json")), 10);
}

// Worlds 1 to 3, prefetch on and off, persistent, tied, external and leaf parameters; record and complete.
TEST(Coordinator, CountsWhatDeepSpeedsProfilerCounts) {
  const Json golden = golden_file("coordinator_counters.json");
  EXPECT_EQ(compare_counters(golden), 10);
  for (const Json& changing : golden.at("invalidation")) {
    if (changing.at("model") != "mlp_visit") continue;
    RunSpec spec = spec_of("mlp_visit", changing.at("world").at(0), changing.at("config"), 6);
    spec.config["shardscope"] = {{"compat", "deepspeed"}};
    for (const auto& [rank, events] : events_of(spec)) {
      SCOPED_TRACE(rank);
      const std::vector<plan::FetchCounts> counts = counters_in(events);
      ASSERT_EQ(counts.size(), 6U);
      for (std::size_t i = 0; i < counts.size(); ++i) {
        EXPECT_EQ(as_recorded(counts[i]), changing.at("iterations").at(i).at("counters"))
            << "iteration " << i;
      }
    }
  }
}

// The default: an iteration that records gathers every parameter once in forward and once in backward.
// Modules fetch once each way whether they have parameters or not.
TEST(Coordinator, CountersHaveTheirClosedForm) {
  const plan::ModelPlan model = plan::build_model_plan(model_named("mlp"));
  for (const std::uint32_t world : {1U, 2U, 3U}) {
    for (const std::int64_t prefetch : {0, 20'000}) {
      const RunSpec spec =
          spec_of("mlp", world,
                  {{"stage3_prefetch_bucket_size", prefetch}, {"stage3_param_persistence_threshold", 0}}, 2);
      std::int64_t shards = 0, whole = 0, fetches = 0, with_params = 0;
      for (const plan::ParamPlan& param : model.params) {
        shards += (param.elems + world - 1) / world;
        whole += param.elems;
      }
      for (const plan::ModulePlan& module : model.modules) {
        fetches += module.hooks ? 1 : 0;
        with_params += module.params.empty() ? 0 : 1;
      }
      const plan::FetchCounts record{
          FetchCount{with_params, shards}, {fetches, shards}, {}, {with_params, whole},
          {with_params, shards},           {fetches, shards}, {}, {with_params, whole}};
      std::vector<plan::FetchCounts> first;
      for (const auto& [rank, events] : events_of(spec)) {
        SCOPED_TRACE("world " + std::to_string(world) + " rank " + std::to_string(rank));
        const std::vector<plan::FetchCounts> counts = counters_in(events);
        ASSERT_EQ(counts.size(), 2U);
        EXPECT_EQ(counts[0], record);
        const auto of = [&](FetchCounter counter) { return counts[1][static_cast<std::size_t>(counter)]; };
        EXPECT_EQ(of(FetchCounter::forward_prefetch_submit).count > 0, prefetch > 0);
        EXPECT_EQ(of(FetchCounter::forward_fetch_wait).count, fetches);
        EXPECT_EQ(
            of(FetchCounter::forward_all_gather).count,
            of(FetchCounter::forward_fetch_submit).count + of(FetchCounter::forward_prefetch_submit).count);
        if (rank == 0) first = counts;
        EXPECT_EQ(counts, first) << "alike on all ranks";
      }
    }
  }
}

// What is recomputed counts as forward, as in DeepSpeed, whose hooks run again.
TEST(Coordinator, ARecomputedForwardCountsAsForward) {
  RunSpec spec = spec_of("gpt", 2,
                         {{"stage3_prefetch_bucket_size", 0},
                          {"stage3_max_reuse_distance", 0},
                          {"stage3_param_persistence_threshold", 0}},
                         1);
  const auto forward_fetches = [&] {
    const std::vector<plan::FetchCounts> counts = counters_in(events_of(spec).at(0));
    return counts.at(0)[static_cast<std::size_t>(FetchCounter::forward_fetch_wait)].count;
  };
  const std::int64_t plain = forward_fetches();
  ASSERT_GT(plan::checkpoint_blocks(spec.model), 0U);
  EXPECT_GT(forward_fetches(), plain);
}

// The middle block is skipped in the third iteration.
TEST(Coordinator, SaysWhyTheTraceWasGivenUp) {
  RunSpec spec = spec_of("mlp_visit", 2, {{"log_trace_cache_warnings", true}}, 4);
  ::testing::internal::CaptureStderr();
  const auto ranks = events_of(spec);
  const std::string printed = ::testing::internal::GetCapturedStderr();
  // Ids go through the tree: root, inp, the list, block 0 with three modules, block 1 is module 7, block 2 is
  // module 11. A trace of 15 modules with hooks, forward and backward. One line: of rank 0.
  EXPECT_EQ(printed, "Invalidate trace cache @ step 6: expected module 7, but got module 11\n");
  for (const auto& [rank, events] : ranks) {
    SCOPED_TRACE(rank);
    std::vector<Event> reported;
    for (const Event& event : events) {
      if (event.kind == EventKind::trace_invalidated) reported.push_back(event);
    }
    ASSERT_EQ(reported.size(), 1U);
    EXPECT_EQ(reported[0].a, 7U);
    EXPECT_EQ(reported[0].b, 11U);
    EXPECT_EQ(reported[0].c, 6U);
    EXPECT_EQ(static_cast<plan::InvalidationCause>(reported[0].code),
              plan::InvalidationCause::module_differs);
    EXPECT_EQ(reported[0].v0, 30);
  }
  spec.config["zero_optimization"]["log_trace_cache_warnings"] = false;
  ::testing::internal::CaptureStderr();
  static_cast<void>(train(spec));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// Another parameter for the last module, once its trace is recorded.
TEST(Coordinator, SaysThatParametersChanged) {
  RunSpec spec = spec_of("mlp", 2, Json::object(), 4);
  spec.between_steps = [](Engine& engine, const Context&, const StepResult& result) {
    if (result.step == 1) engine.register_external_parameter(plan::ModuleId{15}, plan::ParamId{0});
  };
  for (const auto& [rank, events] : events_of(spec)) {
    SCOPED_TRACE(rank);
    std::vector<Event> reported;
    for (const Event& event : events) {
      if (event.kind == EventKind::trace_invalidated) reported.push_back(event);
    }
    ASSERT_EQ(reported.size(), 1U);
    EXPECT_EQ(reported[0].a, 15U);
    EXPECT_EQ(reported[0].b, 15U);
    EXPECT_EQ(static_cast<plan::InvalidationCause>(reported[0].code), plan::InvalidationCause::params_differ);
  }
}

// One rank runs another block the third time. The blocks are of one size: without the parameters in a
// collective's signature the ranks would gather parts of different ones into one (engine_trace_check_test has
// what gathers nothing).
TEST(Coordinator, RanksMustGatherTheSameParameters) {
  std::ifstream file(SHARDSCOPE_MODELS "/mlp_reuse.json");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::string visited = R"("target": "blk.0")";
  ASSERT_NE(text.find(visited), std::string::npos);
  const plan::ModelSpec same = plan::parse_model_spec(text);
  text.replace(text.find(visited), visited.size(), R"("target": "blk.1")");
  const plan::ModelSpec other = plan::parse_model_spec(text);
  for (const std::uint32_t odd : {0U, 1U, 2U}) {
    RunSpec spec = spec_of("mlp_reuse", 3, Json::object(), 3);
    spec.model_of_rank = [&](std::uint32_t rank) { return rank == odd ? other : same; };
    const TrainingRun run = train(spec);
    const char* pair = odd == 2 ? "rank 2 all_gather" : "rank 1 all_gather";
    for (const RankRun& rank : run.ranks) {
      EXPECT_THAT(rank.error, HasSubstr("the ranks issued different collectives on communicator 'gather'"));
      EXPECT_THAT(rank.error, HasSubstr(pair));
      EXPECT_THAT(rank.error, HasSubstr("every rank must run the same modules in the same order"));
      EXPECT_EQ(rank.steps.size(), 0U) << "it is found before wrong weights are computed with";
    }
  }
}

/// Waits of the host for the oldest gather in the first iteration, by C6 and C14 written out: `fast` leaf
/// modules look at the limit and do not count against it.
std::int64_t expected_limits(const plan::ModelPlan& model, std::int64_t most, bool fast) {
  std::int64_t in_flight = 0, waits = 0;
  const plan::FetchScheduler scheduler(model, 1, {});
  for (const plan::Visit& visit : plan::visit_order(model)) {
    if (visit.kind != plan::VisitKind::pre_forward && visit.kind != plan::VisitKind::pre_backward) continue;
    for (std::size_t i = 0; i < scheduler.params_of(visit.module).size(); ++i) {
      if (in_flight > most) {
        ++waits;
        --in_flight;
      }
      if (!fast || !model.modules[plan::raw(visit.module)].leaf) ++in_flight;
    }
  }
  return waits;
}

/// By granularity `blk` is a leaf (2 773 parameters per module) and the root is not (20 146).
plan::ModelSpec with_fine_block() {
  return plan::parse_model_spec(R"({
    "name": "fine", "input": {"kind": "vectors", "width": 10}, "loss": {"kind": "mse", "width": 1},
    "root": {"kind": "sequential", "type": "Root", "children": [
      {"kind": "linear", "name": "in", "in": 10, "out": 64},
      {"kind": "sequential", "name": "blk", "type": "Blk", "children": [
        {"kind": "linear", "name": "a", "in": 64, "out": 64}, {"kind": "linear", "name": "b", "in": 64, "out": 64}]},
      {"kind": "linear", "name": "wide", "in": 64, "out": 2000},
      {"kind": "linear", "name": "out", "in": 2000, "out": 1}]}})");
}

// fast_sharding_for_leaf_module: on with a granularity threshold, off where leaf modules are named. What else
// it does in DeepSpeed (buffers kept past each wait, the data freed at once) there is nothing here to do for:
// memory comes back in stream order.
TEST(Coordinator, LeafModulesByGranularityAreNotHeldByTheLimit) {
  const Json all{{"stage3_prefetch_bucket_size", 0}, {"stage3_param_persistence_threshold", 0}};
  Json by_size = all, by_name = all;
  by_size["stage3_module_granularity_threshold"] = 5000;
  by_name["leaf_module"] = {{"names", {"blk"}}};
  std::int64_t found[2]{};
  for (const bool fast : {false, true}) {
    RunSpec spec = spec_of("mlp", 2, fast ? by_size : by_name, 1);
    spec.model = with_fine_block();
    spec.config["shardscope"] = {{"compat", {{"max_ongoing_fetch_events", 1}}}};
    config::ParseOptions parse;
    parse.world = spec.world;
    const config::TrainingConfig config = config::parse_config(spec.config.dump(), parse);
    const plan::ModelPlan model = plan::build_model_plan(plan::mark_leaf_modules(spec.model, config.zero));
    for (const auto& [rank, events] : events_of(spec)) {
      std::int64_t limits = 0;
      for (const Event& event : events) {
        limits += event.kind == EventKind::in_flight_limit &&
                  static_cast<plan::LimitedOperation>(event.code) == plan::LimitedOperation::gathers;
      }
      EXPECT_EQ(limits, expected_limits(model, 1, fast)) << "rank " << rank << (fast ? " fast" : "");
      found[fast] = limits;
    }
  }
  EXPECT_LT(found[true], found[false]);
  EXPECT_GT(found[true], 0);
}

}  // namespace
}  // namespace shardscope::engine::testing::coordinator_test
