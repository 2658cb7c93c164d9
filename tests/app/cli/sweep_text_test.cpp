// Several runs against the first, as a table and as JSON.
#include "app/cli/sweep_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace shardscope::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Three runs: the second's step is shorter, of the third nothing can be said.
analysis::Sweep three_runs() {
  analysis::Sweep sweep;
  sweep.verdict = "B is faster";
  sweep.confidence = 0.975;
  analysis::SweepFigure step{"step_ms", "step", "ms", true, {}};
  step.values = {{.value = 100, .change_pct = {}, .interval = {}, .pairs = 0},
                 {.value = 80, .change_pct = -20, .interval = {{-20, -22, -18, 6}}, .pairs = 40},
                 {.value = 101, .change_pct = 1, .interval = {{1, -1, 3, 6}}, .pairs = 40}};
  sweep.figures = {step};
  sweep.settings = {{"zero_optimization.overlap_comm", {"false", "true", ""}}};
  sweep.measured_steps = {40, 40, 40};
  sweep.simulated = {false, false, false};
  sweep.missing = {{}, {}, {}};
  return sweep;
}

TEST(SweepText, SaysBetterOnlyWhereTheIntervalDoes) {
  const std::string text = sweep_text(three_runs());
  EXPECT_THAT(text, HasSubstr("-22.0 to -18.0 %  better"));
  EXPECT_THAT(text, HasSubstr("-1.0 to +3.0 %  no difference"));
  EXPECT_THAT(text, Not(HasSubstr("worse")));
}

TEST(SweepText, MoreIsBetterWhereTheFigureSaysSo) {
  analysis::Sweep sweep = three_runs();
  sweep.figures[0].lower_is_better = false;
  EXPECT_THAT(sweep_text(sweep), HasSubstr("-22.0 to -18.0 %  worse"));
}

TEST(SweepText, ASettingThatARunLacksIsAbsent) {
  EXPECT_THAT(sweep_text(three_runs()), HasSubstr("C  (absent)"));
  analysis::Sweep sweep = three_runs();
  sweep.settings.clear();
  EXPECT_THAT(sweep_text(sweep), HasSubstr("The settings of all runs are the same."));
}

TEST(SweepText, JsonHasEachSideAndNullWhereNothingIsKnown) {
  const nlohmann::json json = nlohmann::json::parse(sweep_json(three_runs(), {"a", "b", "c"}));
  EXPECT_THAT(json.dump(), HasSubstr("B is faster"));
  EXPECT_THAT(json.dump(), HasSubstr("null")) << "the first side has no change";
  EXPECT_EQ(side_letter(25), "Z");
}

}  // namespace
}  // namespace shardscope::cli
