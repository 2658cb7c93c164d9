// External parameters (docs/zero.md P11) on the engine: registered by the program, or returned by a module.
#include <gtest/gtest.h>

#include <algorithm>

#include "instrumentation/emitter.h"
#include "instrumentation/ring.h"
#include "runtime/plan/scheduler.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::external_test {
namespace {

using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::RingRegistry;
using instrumentation::StatusCause;

// blk.fc returns its weight, which blk reads when blk.fc has ended.
constexpr plan::ModuleId kBlk{2}, kFc{3}, kOut{5};
constexpr plan::ParamId kWeight{2};

plan::ModelSpec returning(const std::string& of_block = "") {
  return plan::parse_model_spec(R"({
    "name": "returning", "input": {"kind": "vectors", "width": 10}, "loss": {"kind": "mse", "width": 1},
    "root": {"kind": "sequential", "children": [
      {"kind": "linear", "name": "inp", "in": 10, "out": 37},
      {"kind": "sequential", "name": "blk", )" +
                                of_block + R"( "children": [
        {"kind": "linear", "name": "fc", "in": 37, "out": 37, "returns": ["weight"]},
        {"kind": "linear", "name": "mid", "in": 37, "out": 37},
        {"kind": "functional_linear", "weight_of": "blk.fc.weight"}]},
      {"kind": "linear", "name": "out", "in": 37, "out": 1}]}})");
}

/// An embedding inside a module of its own, whose table the head reads: returned twice, to the root in the
/// end.
plan::ModelSpec returning_tokens() {
  return plan::parse_model_spec(R"({
    "name": "tokens", "input": {"kind": "tokens", "vocabulary": 256, "context": 16},
    "loss": {"kind": "cross_entropy"},
    "root": {"kind": "sequential", "children": [
      {"kind": "sequential", "name": "emb", "returns": ["wte.weight"], "children": [
        {"kind": "embedding", "name": "wte", "rows": 256, "width": 24, "returns": ["weight"]}]},
      {"kind": "linear", "name": "fc", "in": 24, "out": 24},
      {"kind": "functional_linear", "weight_of": "emb.wte.weight"}]}})");
}

/// blk.fc returns its weight to blk, and blk to the root; two later blocks, which run again in backward, read
/// it, one of them twice, and so does the root in between. DeepSpeed cannot train this (docs/peers.md).
plan::ModelSpec returned_into_checkpoints() {
  return plan::parse_model_spec(R"({
    "name": "into checkpoints", "input": {"kind": "vectors", "width": 10}, "loss": {"kind": "mse", "width": 1},
    "root": {"kind": "sequential", "children": [
      {"kind": "linear", "name": "inp", "in": 10, "out": 37},
      {"kind": "sequential", "name": "blk", "returns": ["fc.weight"], "children": [
        {"kind": "linear", "name": "fc", "in": 37, "out": 37, "returns": ["weight"]}, {"kind": "relu"}]},
      {"kind": "sequential", "name": "one", "checkpoint": true, "children": [
        {"kind": "linear", "name": "mid", "in": 37, "out": 37},
        {"kind": "functional_linear", "weight_of": "blk.fc.weight"}, {"kind": "relu"},
        {"kind": "functional_linear", "weight_of": "blk.fc.weight"}]},
      {"kind": "functional_linear", "weight_of": "blk.fc.weight"},
      {"kind": "sequential", "name": "two", "checkpoint": true, "children": [
        {"kind": "functional_linear", "weight_of": "blk.fc.weight"}, {"kind": "relu"},
        {"kind": "linear", "name": "mid", "in": 37, "out": 37}]},
      {"kind": "linear", "name": "out", "in": 37, "out": 1}]}})");
}
plan::ModelSpec without_checkpoints(plan::ModelSpec model) {
  for (plan::NodeSpec& node : model.root.children) node.checkpoint = false;
  return model;
}

RunSpec spec_of(plan::ModelSpec model, const std::string& compat, std::uint32_t world, int accumulation = 1) {
  RunSpec spec;
  spec.data = model.input == plan::InputKind::tokens ? "golden:gpt" : "golden:mlp";
  spec.model = std::move(model);
  spec.config = make_config(3, accumulation);
  spec.config["zero_optimization"].update({{"stage3_param_persistence_threshold", 0},
                                           {"stage3_max_reuse_distance", 0},
                                           {"stage3_prefetch_bucket_size", 0}});
  if (!compat.empty()) spec.config["shardscope"] = {{"compat", {{"scheduler", compat}}}};
  spec.world = world;
  spec.steps = 3;
  return spec;
}

TrainingRun stage0(RunSpec spec) {
  spec.config["zero_optimization"] = {{"stage", 0}};
  return train(spec);
}

TEST(ReturnedParameters, AgreeWithStage0Bitwise) {
  for (const plan::ModelSpec& model :
       {returning(), returning(R"("checkpoint": true, "returns": ["fc.weight"],)"), returning_tokens()}) {
    for (const std::uint32_t world : {2U, 3U}) {
      const TrainingRun reference = stage0(spec_of(model, "", world));
      for (const char* compat : {"", "deepspeed", "notes"}) {
        for (const int prefetch : {0, 2000}) {
          RunSpec spec = spec_of(model, compat, world);
          spec.config["zero_optimization"]["stage3_prefetch_bucket_size"] = prefetch;
          const TrainingRun run = train(spec);
          for (const RankRun& rank : run.ranks) ASSERT_EQ(rank.error, "") << compat;
          EXPECT_EQ(first_difference(reference, run), "") << model.name << ' ' << world << compat << prefetch;
        }
      }
    }
  }
}

// Every gradient of the weight is summed once, whichever module read it and however often a forward ran, both
// while the weight stays in memory and where every fetch gathers it again.
TEST(ReturnedParameters, AreReadInsideLaterCheckpoints) {
  const plan::ModelSpec model = returned_into_checkpoints();
  for (const int accumulation : {1, 3}) {
    const TrainingRun reference = stage0(spec_of(without_checkpoints(model), "", 3, accumulation));
    EXPECT_EQ(first_difference(reference, stage0(spec_of(model, "", 3, accumulation))), "");
    RunSpec spec = spec_of(without_checkpoints(model), "", 3, accumulation);
    const TrainingRun plain = train(spec);
    if (accumulation == 1) {
      EXPECT_EQ(first_difference(reference, plain), "");
    }
    for (const char* compat : {"", "deepspeed", "notes"}) {
      for (const int prefetch : {0, 2000}) {
        for (const std::int64_t live : {0, 1'000'000}) {
          for (const bool offload : {false, true}) {
            SCOPED_TRACE(std::string(compat) + " prefetch " + std::to_string(prefetch) + " live " +
                         std::to_string(live) + (offload ? " offload" : ""));
            spec = spec_of(model, compat, 3, accumulation);
            Json& zero = spec.config["zero_optimization"];
            zero["stage3_prefetch_bucket_size"] = prefetch;
            zero["stage3_max_live_parameters"] = live;
            if (offload) zero["offload_param"] = zero["offload_optimizer"] = {{"device", "cpu"}};
            const TrainingRun run = train(spec);
            for (const RankRun& rank : run.ranks) ASSERT_EQ(rank.error, "");
            EXPECT_EQ(first_difference(plain, run), "");
          }
        }
      }
    }
  }
}

/// Trains with all events kept and counts those of every rank that `wanted` names.
class ExternalEvents : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = instrumentation::g_detail.exchange(static_cast<int>(instrumentation::Detail::params));
    (void)drain();
  }
  void TearDown() override { instrumentation::g_detail.store(before_); }

  static std::vector<Event> drain() {
    std::vector<Event> events;
    (void)RingRegistry::instance().drain(events);
    return events;
  }
  std::vector<Event> events_of(const RunSpec& spec) {
    const std::uint64_t dropped = RingRegistry::instance().dropped();
    run_ = train(spec);
    for (const RankRun& rank : run_.ranks) EXPECT_EQ(rank.error, "");
    EXPECT_EQ(RingRegistry::instance().dropped(), dropped);
    return drain();
  }
  template <typename Wanted>
  static std::int64_t count(const std::vector<Event>& events, const Wanted& wanted) {
    return std::count_if(events.begin(), events.end(), wanted);
  }
  /// Gathers of the weight for `module`.
  static std::int64_t gathers_for(const std::vector<Event>& events, plan::ModuleId module) {
    return count(events, [&](const Event& event) {
      return event.kind == EventKind::param_status && event.a == plan::raw(kWeight) &&
             event.b == plan::raw(module) &&
             event.code == instrumentation::status_code(
                               static_cast<std::uint8_t>(plan::ParamStatus::in_flight), StatusCause::fetch);
    });
  }

  TrainingRun run_;

 private:
  int before_ = 0;
};

TEST_F(ExternalEvents, TellWhatWasReturnedAndWhyItStays) {
  for (const char* compat : {"", "deepspeed"}) {
    const RunSpec spec = spec_of(returning(), compat, 2);
    const std::vector<Event> events = events_of(spec);
    const std::int64_t forwards = spec.steps * spec.world;
    EXPECT_EQ(count(events,
                    [](const Event& event) {
                      return event.kind == EventKind::fetch_decision &&
                             event.code == static_cast<std::uint8_t>(plan::PrefetchStop::returned) &&
                             event.a == plan::raw(kBlk) && event.v0 == plan::raw(kWeight);
                    }),
              forwards);
    const auto external = [](plan::ModuleId module) {
      return [module](const Event& event) {
        return event.kind == EventKind::release_kept && event.a == plan::raw(module) &&
               event.b == plan::raw(kWeight) &&
               event.code == static_cast<std::uint8_t>(plan::KeepReason::external);
      };
    };
    // Forward and backward; blk holds it and keeps it as well while the limit allows.
    EXPECT_EQ(count(events, external(kFc)), 2 * forwards) << compat;
    EXPECT_EQ(count(events, external(kBlk)), 2 * forwards) << compat;
    // Registered once, in the first forward of each rank; the status says that it is there.
    EXPECT_EQ(count(events,
                    [](const Event& event) {
                      return event.kind == EventKind::param_status && event.a == plan::raw(kWeight) &&
                             event.b == plan::raw(kBlk) &&
                             event.code == instrumentation::status_code(
                                               static_cast<std::uint8_t>(plan::ParamStatus::available),
                                               StatusCause::external);
                    }),
              spec.world);
    // From the second iteration on blk fetches it, once a step: nothing but the step partitions it.
    EXPECT_EQ(gathers_for(events, kBlk), (spec.steps - 1) * spec.world);
    EXPECT_EQ(gathers_for(events, kFc), spec.world);
  }
}

// blk's forward runs again, and its weight has crossed to the root by then. Fetches are decided for blk in
// the forward, for its recomputation and in backward, each time it reads the weight of blk.fc to return it;
// with DeepSpeed's hooks once more for the gradient of what it returned (coordinator_crossing.json).
TEST_F(ExternalEvents, AcrossACheckpointDeepSpeedFetchesForTheReturnedGradient) {
  const plan::ModelSpec model = plan::parse_model_spec(R"({
    "name": "crossing", "input": {"kind": "vectors", "width": 10}, "loss": {"kind": "mse", "width": 1},
    "root": {"kind": "sequential", "children": [
      {"kind": "linear", "name": "inp", "in": 10, "out": 37},
      {"kind": "sequential", "name": "blk", "checkpoint": true, "returns": ["fc.weight"], "children": [
        {"kind": "linear", "name": "fc", "in": 37, "out": 37},
        {"kind": "linear", "name": "mid", "in": 37, "out": 37}]},
      {"kind": "functional_linear", "weight_of": "blk.fc.weight"},
      {"kind": "linear", "name": "out", "in": 37, "out": 1}]}})");
  const TrainingRun reference = stage0(spec_of(model, "", 2));
  for (const char* compat : {"", "deepspeed"}) {
    const RunSpec spec = spec_of(model, compat, 2);
    const std::vector<Event> events = events_of(spec);
    const auto decided = count(events, [](const Event& event) {
      return event.kind == EventKind::fetch_decision && event.a == plan::raw(kBlk) &&
             event.code != static_cast<std::uint8_t>(plan::PrefetchStop::returned);
    });
    const std::int64_t reads = 2;
    const std::int64_t fetches = std::string(compat) == "deepspeed" ? 4 : 3;
    EXPECT_EQ(decided, spec.steps * spec.world * (reads + fetches)) << compat;
    EXPECT_EQ(first_difference(reference, run_), "") << compat;
  }
}

// What Engine::register_external_parameter is for: the module gathers a parameter that nothing in it names.
TEST_F(ExternalEvents, ARegisteredParameterIsFetchedWithItsModule) {
  plan::ModelSpec model = returning();
  model.root.children[1].children[0].returns.clear();
  for (const char* compat : {"", "deepspeed"}) {
    RunSpec spec = spec_of(model, compat, 2);
    EXPECT_EQ(gathers_for(events_of(spec), kOut), 0);
    const TrainingRun plain = run_;
    spec.begin = [](const Context&, Engine& engine, data::BatchStream&) {
      engine.register_external_parameter(kOut, kWeight);
    };
    const std::int64_t gathers = gathers_for(events_of(spec), kOut);
    EXPECT_EQ(gathers, spec.steps * spec.world * 2) << "before its forward and before its backward";
    EXPECT_EQ(first_difference(plain, run_), "");
    spec.begin = [](const Context&, Engine& engine, data::BatchStream&) {
      engine.register_external_parameter(kOut, kWeight);
      engine.unregister_external_parameter(kOut, kWeight);
    };
    EXPECT_EQ(gathers_for(events_of(spec), kOut), 0);
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::external_test
