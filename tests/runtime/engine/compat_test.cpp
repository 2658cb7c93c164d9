// `compat: deepspeed` on the engine itself: what a training run emits, against recorded DeepSpeed runs.
#include <gtest/gtest.h>

#include <fstream>

#include "runtime/plan/leaf_modules.h"
#include "tests/runtime/engine/checkpointed_run.h"
#include "tests/runtime/engine/emitted_fetches.h"
#include "tests/runtime/engine/rank_events.h"
#include "tests/runtime/engine/support.h"
#include "tests/runtime/plan/golden.h"

namespace shardscope::engine::testing::compat_test {
namespace {

struct Recorded {
  const char *file, *id;
};

Json recorded_trace(const Recorded& recorded) {
  std::ifstream file(std::string(SHARDSCOPE_GOLDEN "/") + recorded.file + ".json");
  const Json all = Json::parse(file);
  for (const Json& trace : all.at("traces")) {
    if (trace.at("id") == recorded.id) return trace;
  }
  throw std::invalid_argument(std::string("no trace ") + recorded.id + " in " + recorded.file);
}

/// Keeps of a recorded iteration what events show (emitted_fetches).
Json told_by_events(const Json& iteration) {
  Json events = Json::array();
  for (const Json& event : iteration.at("events")) {
    const bool fetch = event.at("ev") == "fetch";
    if (!fetch && event.value("ids", Json::array()).empty()) continue;
    Json kept;
    for (const auto& [key, value] : event.items()) {
      if (key != "wait" && !(value.is_array() && value.empty())) kept[key] = value;
    }
    events.push_back(std::move(kept));
  }
  return {{"mode", iteration.value("mode", "")},
          {"available_at_start", iteration.at("available_at_start")},
          {"events", events},
          {"available_after_step", iteration.at("available_after_step")}};
}

/// "" where alike, else the first place, what was recorded there and what was emitted.
std::string difference(Json recorded, const Json& emitted, const char* mode) {
  recorded["mode"] = mode;
  const std::string at = golden::first_difference(recorded, emitted);
  if (at.empty()) return "";
  return at + ": recorded " + golden::value_at(recorded, at).dump() + ", emitted " +
         golden::value_at(emitted, at).dump();
}

/// The run that was recorded, of three steps.
RunSpec spec_of(const Json& trace) {
  const auto model = trace.at("model").get<std::string>();
  RunSpec spec;
  spec.model = model_named(model);
  spec.data = model.rfind("gpt", 0) == 0 ? "golden:gpt" : "golden:mlp";
  spec.config = make_config(3);
  spec.config["zero_optimization"].update(trace.at("config"));
  spec.config["shardscope"] = {{"compat", "deepspeed"}};
  spec.world = trace.at("world").at(0).get<std::uint32_t>();
  spec.steps = 3;
  return spec;
}

enum class Begins : std::uint8_t { fresh, resumed };

void expect_recorded(const Json& trace, const RunSpec& spec, const ObservedRun& observed, Begins begins) {
  config::ParseOptions parse;
  parse.world = spec.world;
  const config::TrainingConfig config = config::parse_config(spec.config.dump(), parse);
  const plan::ModelPlan plan = plan::build_model_plan(plan::mark_leaf_modules(spec.model, config.zero));
  const Json record = told_by_events(trace.at("record")), complete = told_by_events(trace.at("complete"));
  for (const auto& [rank, events] : observed.events) {
    SCOPED_TRACE(rank);
    const Json emitted = emitted_fetches(plan, events);
    ASSERT_EQ(emitted.size(), 3U);
    // Loading ends as the optimizer step does, with the persistent parameters gathered: as later iterations
    // begin, not the first.
    const Json& there = complete.at("available_at_start");
    if (begins == Begins::resumed && !there.empty()) {
      EXPECT_EQ(emitted[0].at("mode"), "RECORD");
      EXPECT_EQ(emitted[0].at("available_at_start"), there);
    } else {
      EXPECT_EQ(difference(record, emitted[0], "RECORD"), "");
    }
    EXPECT_EQ(difference(complete, emitted[1], "COMPLETE"), "");
    if (trace.value("second_complete_identical", false)) {
      EXPECT_EQ(difference(complete, emitted[2], "COMPLETE"), "") << "second complete iteration";
    }
  }
}

class Compat : public CheckpointedRun, public ::testing::WithParamInterface<Recorded> {};

TEST_P(Compat, EmitsTheRecordedFetchesAndReleases) {
  const Json trace = recorded_trace(GetParam());
  const RunSpec spec = spec_of(trace);
  const ObservedRun observed = train_observed(spec);
  if (!HasFailure()) expect_recorded(trace, spec, observed, Begins::fresh);
}

// DeepSpeed's coordinator knows nothing of the run before: after a resume it records anew and then decides as
// it did, and training goes on bitwise.
TEST_P(Compat, EmitsThemAfterAResume) {
  const Json trace = recorded_trace(GetParam());
  RunSpec spec = spec_of(trace);
  const RunSpec resumed = continuing(spec);
  RunSpec first = saving(spec);
  first.steps = 2;
  expect_no_error(train(first));
  const ObservedRun observed = train_observed(resumed);
  if (HasFailure()) return;
  expect_recorded(trace, resumed, observed, Begins::resumed);
  spec.steps = 5;
  EXPECT_EQ(difference_of_ends(train(spec), observed.run), "");
}

// Persistent parameters; a tied weight; one read by attribute; modules that run twice, with and without
// limits and inside a leaf module.
INSTANTIATE_TEST_SUITE_P(Recorded, Compat,
                         ::testing::Values(Recorded{"coordinator", "T01"}, Recorded{"coordinator", "T20"},
                                           Recorded{"coordinator", "T28"},
                                           Recorded{"coordinator_extremes", "R00"},
                                           Recorded{"coordinator_extremes", "R10"},
                                           Recorded{"coordinator_more", "K11"}),
                         [](const auto& c) { return std::string(c.param.id); });

// Persistent parameters are gathered again after a step that changed them. DeepSpeed partitions them before
// it knows and leaves the step where it overflowed: the next iteration starts without them and fetches them.
TEST(CompatSkippedStep, LeavesPersistentParametersPartitioned) {
  std::ifstream file(SHARDSCOPE_GOLDEN "/coordinator_skipped.json");
  const Json skipped = Json::parse(file).at("invalidation").at(0);
  ASSERT_EQ(skipped.at("overflow_per_iteration").dump(), "[true,true,true,true]");
  RunSpec spec = spec_of(skipped);
  spec.config["fp16"] = {{"enabled", true}, {"initial_scale_power", 8}};
  spec.overflows_on = 1;
  spec.steps = 4;
  const ObservedRun observed = train_observed(spec);
  if (HasFailure()) return;
  const plan::ModelPlan plan = plan::build_model_plan(spec.model);
  for (const auto& [rank, events] : observed.events) {
    SCOPED_TRACE(rank);
    const Json emitted = emitted_fetches(plan, events);
    ASSERT_EQ(emitted.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
      ASSERT_TRUE(observed.run.ranks[rank].steps[i].skipped);
      const Json& recorded = skipped.at("iterations").at(i);
      EXPECT_EQ(difference(told_by_events(recorded), emitted[i], i == 0 ? "RECORD" : "COMPLETE"), "")
          << "iteration " << i;
    }
  }
}

// DeepSpeed's order of unscaling and updating the scale, its collectives and its scheduler have a state of
// their own: none of it may be lost. The first loss scales overflow.
TEST_F(CheckpointedRun, ContinuesBitwiseUnderCompat) {
  for (const std::string type : {"fp32", "fp16"}) {
    for (const int stage : {0, 1, 2, 3}) {
      Json config = make_config(stage, 3, type);
      config["shardscope"] = {{"compat", "deepspeed"}};
      if (type == "fp16") {
        config["fp16"]["initial_scale_power"] = 20;
        config["fp16"]["loss_scale_window"] = 2;
      }
      std::filesystem::remove_all(folder_);
      const TrainingRun whole = train(spec(config, 3, 8));
      expect_no_error(train(saving(spec(config, 3, 3))));
      EXPECT_EQ(difference_of_ends(whole, train(continuing(spec(config, 3, 5)))), "")
          << type << " stage " << stage;
    }
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::compat_test
