// `compat: deepspeed` on the engine itself: what a training run emits, against recorded DeepSpeed runs.
#include <gtest/gtest.h>

#include <fstream>

#include "runtime/plan/leaf_modules.h"
#include "tests/engine/emitted_fetches.h"
#include "tests/engine/rank_events.h"
#include "tests/engine/support.h"
#include "tests/plan/golden.h"

namespace shardscope::engine::testing {
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

/// Keeps of a recorded iteration what events tell (emitted_fetches).
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

class Compat : public ::testing::TestWithParam<Recorded> {};

TEST_P(Compat, EmitsTheRecordedFetchesAndReleases) {
  const Json trace = recorded_trace(GetParam());
  const auto model = trace.at("model").get<std::string>();
  RunSpec spec;
  spec.model = model_named(model);
  spec.data = model.rfind("gpt", 0) == 0 ? "golden:gpt" : "golden:mlp";
  spec.config = make_config(3);
  spec.config["zero_optimization"].update(trace.at("config"));
  spec.config["shardscope"] = {{"compat", "deepspeed"}};
  spec.world = trace.at("world").at(0).get<std::uint32_t>();
  spec.steps = 3;
  const ObservedRun observed = train_observed(spec);
  ASSERT_FALSE(HasFailure());

  config::ParseOptions parse;
  parse.world = spec.world;
  const config::TrainingConfig config = config::parse_config(spec.config.dump(), parse);
  const plan::ModelPlan plan = plan::build_model_plan(plan::mark_leaf_modules(spec.model, config.zero));
  const Json record = told_by_events(trace.at("record")), complete = told_by_events(trace.at("complete"));
  for (const auto& [rank, events] : observed.events) {
    SCOPED_TRACE(rank);
    const Json emitted = emitted_fetches(plan, events);
    ASSERT_EQ(emitted.size(), 3U);
    EXPECT_EQ(difference(record, emitted[0], "RECORD"), "");
    EXPECT_EQ(difference(complete, emitted[1], "COMPLETE"), "");
    if (trace.value("second_complete_identical", false)) {
      EXPECT_EQ(difference(complete, emitted[2], "COMPLETE"), "") << "second complete iteration";
    }
  }
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

}  // namespace
}  // namespace shardscope::engine::testing
