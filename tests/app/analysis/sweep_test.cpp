// Several runs against the first: no claim about all of them goes beyond what their steps support.
#include "app/analysis/sweep.h"

#include <gtest/gtest.h>

#include <deque>
#include <stdexcept>

#include "tests/app/analysis/made_steps.h"

namespace shardscope::analysis {
namespace {

using test::Made;
using test::noisy;

const SweepFigure& figure_of(const Sweep& sweep, const std::string& name) {
  for (const SweepFigure& figure : sweep.figures) {
    if (figure.name == name) return figure;
  }
  throw std::runtime_error("no figure " + name);
}

/// Sides of one run each.
Sweep sweep_of(const std::vector<std::vector<double>>& steps) {
  std::deque<Made> made;
  std::vector<SweepSide> sides;
  for (const auto& one : steps) {
    made.emplace_back(one);
    sides.push_back({std::string(1, static_cast<char>('A' + sides.size())), {made.back().run()}});
  }
  return sweep(sides);
}

/// Quantiles as any table of Student's t has them.
TEST(Sweep, StudentsTIsThatOfTheTables) {
  EXPECT_NEAR(student_t(0.95, 1), 12.706, 5e-4);
  EXPECT_NEAR(student_t(0.95, 2), 4.303, 5e-4);
  EXPECT_NEAR(student_t(0.95, 3), 3.182, 5e-4);
  EXPECT_NEAR(student_t(0.95, 4), 2.776, 5e-4);
  EXPECT_NEAR(student_t(0.95, 11), 2.201, 5e-4);
  EXPECT_NEAR(student_t(0.99, 5), 4.032, 5e-4);
  EXPECT_NEAR(student_t(0.99, 10), 3.169, 5e-4);
  EXPECT_THROW((void)student_t(1, 3), std::invalid_argument);
  EXPECT_THROW((void)student_t(0.95, 0), std::invalid_argument);
}

TEST(Sweep, NamesWhatIsFasterSlowerAndAlike) {
  const Sweep result = sweep_of({noisy(1, 100), noisy(2, 80), noisy(3, 100), noisy(4, 130)});
  EXPECT_EQ(result.verdict.rfind("Faster than A: B by ", 0), 0U) << result.verdict;
  EXPECT_NE(result.verdict.find("Slower than A: D by "), std::string::npos) << result.verdict;
  EXPECT_NE(result.verdict.find("No significant difference to A in step time: C."), std::string::npos)
      << result.verdict;
  const SweepFigure& steps = figure_of(result, "step_ms");
  ASSERT_EQ(steps.values.size(), 4U);
  EXPECT_FALSE(steps.values[0].change_pct);
  EXPECT_NEAR(*steps.values[1].change_pct, -20, 3);
  EXPECT_NEAR(*steps.values[3].change_pct, 30, 3);
  EXPECT_EQ(steps.values[1].pairs, 40U);
  EXPECT_TRUE(steps.values[1].differs());
  EXPECT_FALSE(steps.values[2].differs());
}

TEST(Sweep, ARunAgainstItselfIsNoDifference) {
  const auto steps = noisy(1, 100);
  const Sweep result = sweep_of({steps, steps, steps});
  EXPECT_EQ(result.verdict, "No significant difference to A in step time: B and C.");
  EXPECT_EQ(*figure_of(result, "step_ms").values[2].change_pct, 0);
}

/// Of 200 sweeps of five like runs few call any of them different. Without a correction for several
/// comparisons more than 18 do.
TEST(Sweep, OfTwoHundredSweepsOfLikeRunsFewCallOneDifferent) {
  int different = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::vector<std::vector<double>> runs;
    for (unsigned i = 0; i < 5; ++i) runs.push_back(noisy(5 * seed + i, 100));
    const Sweep result = sweep_of(runs);
    EXPECT_NEAR(result.confidence, 0.9875, 1e-12);
    different += result.verdict.find("er than A") != std::string::npos ? 1 : 0;
  }
  EXPECT_LE(different, 18);
}

TEST(Sweep, MoreRunsMakeItsIntervalsWider) {
  const auto a = noisy(1, 100), b = noisy(2, 100);
  const auto width = [](const Sweep& result) {
    const auto interval = figure_of(result, "step_ms").values[1].interval;
    return interval->high - interval->low;
  };
  EXPECT_GT(width(sweep_of({a, b, b})), 1.1 * width(sweep_of({a, b})));
}

TEST(Sweep, TooFewStepsBearNoVerdict) {
  const Sweep result = sweep_of({noisy(1, 100), {9, 100, 100, 100}, noisy(2, 150)});
  EXPECT_NE(result.verdict.find("No verdict on B: fewer than 8 measured steps"), std::string::npos)
      << result.verdict;
  EXPECT_NE(result.verdict.find("Slower than A: C"), std::string::npos) << result.verdict;
  EXPECT_FALSE(figure_of(result, "step_ms").values[1].interval);
  EXPECT_EQ(result.measured_steps, (std::vector<std::size_t>{40, 3, 40}));
}

/// Steps of one start lie close together, and starts differ by more: what repeats differ by is in the
/// interval.
TEST(Sweep, RepeatsDecideByWhatTheyDifferBy) {
  const auto steady = [](double ms) { return std::vector<double>(21, ms); };
  const Made a1(steady(100)), a2(steady(108)), a3(steady(95)), b1(steady(106)), b2(steady(99)),
      b3(steady(104)), c1(steady(151)), c2(steady(160)), c3(steady(144));
  const Sweep result = sweep({{"A", {a1.run(), a2.run(), a3.run()}},
                              {"B", {b1.run(), b2.run(), b3.run()}},
                              {"C", {c1.run(), c2.run(), c3.run()}}});
  const auto& values = figure_of(result, "step_ms").values;
  ASSERT_TRUE(values[1].interval && values[2].interval);
  EXPECT_EQ(values[1].interval->blocks, 3U);
  EXPECT_EQ(values[1].pairs, 60U);
  // Differences of 6, -9 and 9 ms bear nothing; of 51, 52 and 49 ms they do.
  EXPECT_FALSE(values[1].differs());
  EXPECT_TRUE(values[2].differs());
  EXPECT_NEAR(*values[2].change_pct, 100 * (51.0 + 52 + 49) / 3 / 100, 1e-9);
}

/// Tokens per second are better where they are more; of memory and elements a run has one value.
TEST(Sweep, FiguresWithoutStepsHaveNoInterval) {
  const Sweep result = sweep_of({noisy(1, 100), noisy(2, 80)});
  EXPECT_FALSE(figure_of(result, "tokens_per_s").lower_is_better);
  EXPECT_FALSE(figure_of(result, "peak").values[1].value) << "none was recorded";
  EXPECT_FALSE(figure_of(result, "peak").values[1].interval);
}

TEST(Sweep, SettingsThatDifferHaveAValueForEachRun) {
  std::deque<Made> made;
  std::vector<SweepSide> sides;
  for (const char* config : {R"({"zero_optimization": {"stage": 3, "a": 1}, "same": 2})",
                             R"({"zero_optimization": {"stage": 2, "a": 1}, "same": 2})",
                             R"({"zero_optimization": {"a": 1}, "same": 2})"}) {
    made.emplace_back(noisy(1, 100));
    made.back().summary.config_json = config;
    sides.push_back({std::string(1, static_cast<char>('A' + sides.size())), {made.back().run()}});
  }
  const Sweep result = sweep(sides);
  ASSERT_EQ(result.settings.size(), 1U);
  EXPECT_EQ(result.settings[0].key, "zero_optimization.stage");
  EXPECT_EQ(result.settings[0].values, (std::vector<std::string>{"3", "2", ""}));
}

TEST(Sweep, RefusesLessThanTwoSides) {
  EXPECT_THROW((void)sweep({}), std::invalid_argument);
  const Made one(noisy(1, 100));
  EXPECT_THROW((void)sweep({{"A", {one.run()}}}), std::invalid_argument);
  EXPECT_THROW((void)sweep({{"A", {one.run()}}, {"B", {}}}), std::invalid_argument);
}

}  // namespace
}  // namespace shardscope::analysis
