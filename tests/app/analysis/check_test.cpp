// Limits against a baseline: what is read, and that the verdict claims no more than the steps bear.
#include "app/analysis/check.h"

#include <gtest/gtest.h>

#include "tests/app/analysis/made_steps.h"

namespace shardscope::analysis {
namespace {

using namespace test;

Checked check_step(const std::vector<double>& base, const std::vector<double>& run, double limit = 0) {
  const Made a(base), b(run);
  return check(a.run(), b.run(), {{"step_ms", limit}}).front();
}

TEST(Check, ReadsLimits) {
  const auto limits = parse_limits("step_ms=5%,peak=2.5%");
  ASSERT_EQ(limits.size(), 2U);
  EXPECT_EQ(limits[1].metric, "peak");
  EXPECT_EQ(limits[1].percent, 2.5);
  for (const char* wrong :
       {"", "step_ms", "step_ms=5", "step_ms=-1%", "speed=5%", "step_ms=x%", "step_ms=5%,", "peak=nan%"})
    EXPECT_THROW((void)parse_limits(wrong), std::invalid_argument) << wrong;
}

TEST(Check, ARunAgainstItselfIsNoDifference) {
  const auto steps = noisy(1, 100);
  const Checked one = check_step(steps, steps);
  EXPECT_EQ(one.outcome, Checked::Outcome::within);
  EXPECT_EQ(*one.change_pct, 0);
  EXPECT_FALSE(one.interval->excludes_zero());
}

TEST(Check, OfTwoHundredPairsOfLikeRunsFewAreCalledDifferent) {
  int different = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Checked one = check_step(noisy(2 * seed, 100), noisy(2 * seed + 1, 100));
    ASSERT_TRUE(one.interval);
    different += one.interval->excludes_zero() ? 1 : 0;
  }
  EXPECT_LE(different, 18);
}

TEST(Check, AChangeBeyondTheLimitFailsAndOneWithinItDoesNot) {
  EXPECT_EQ(check_step(noisy(1, 100), noisy(2, 120), 5).outcome, Checked::Outcome::beyond);
  EXPECT_EQ(check_step(noisy(1, 100), noisy(2, 104), 10).outcome, Checked::Outcome::within);
  EXPECT_EQ(check_step(noisy(1, 120), noisy(2, 100), 5).outcome, Checked::Outcome::within);  // faster
}

/// 6 % more with an interval of several per cent is not surely more than 5 %.
TEST(Check, IsNotSurerThanTheStepsAre) {
  const Checked one = check_step(noisy(1, 100, 10), noisy(2, 106, 10), 5);
  EXPECT_EQ(one.outcome, Checked::Outcome::undecided) << one.why;
  EXPECT_LT(one.interval->low, 5);
  EXPECT_GT(one.interval->high, 5);
  EXPECT_NE(one.why.find("% in pairs of steps"), std::string::npos) << one.why;
  EXPECT_NE(one.why.find("inside the interval"), std::string::npos) << one.why;
  EXPECT_NE(check_junit({one}, "run").find("errors=\"1\""), std::string::npos);
}

TEST(Check, OneStopDoesNotDecide) {
  std::vector<double> stopped = noisy(2, 100);
  stopped[20] = 5000;
  EXPECT_EQ(check_step(noisy(1, 100), stopped, 5).outcome, Checked::Outcome::within);
}

TEST(Check, TooFewStepsAreUnknown) {
  EXPECT_EQ(check_step({100, 100, 100}, {200, 200, 200}).outcome, Checked::Outcome::unknown);
}

/// Of tokens more is better; of a step without any, and of the first, there is no figure.
TEST(Check, TokensPerSecondAreThoseOfTheStepsThatHaveSome) {
  const auto check_tokens = [](double ms_of_run) {
    std::vector<std::int64_t> tokens(21, 500);
    tokens[7] = 0;
    const Made a(std::vector<double>(21, 100), tokens), b(std::vector<double>(21, ms_of_run), tokens);
    return check(a.run(), b.run(), {{"tokens_per_s", 5}}).front();
  };
  const Checked slower = check_tokens(125);
  EXPECT_EQ(slower.unit, "tokens/s");
  ASSERT_TRUE(slower.base && slower.run) << slower.why;
  EXPECT_DOUBLE_EQ(*slower.base, 500 / 0.100);
  EXPECT_DOUBLE_EQ(*slower.run, 500 / 0.125);
  EXPECT_NEAR(*slower.change_pct, -20, 1e-9);
  EXPECT_EQ(slower.outcome, Checked::Outcome::beyond);
  EXPECT_NE(slower.why.find("19 pairs"), std::string::npos) << slower.why;
  EXPECT_EQ(check_tokens(80).outcome, Checked::Outcome::within) << "it is faster";
}

TEST(Check, JUnitNamesWhatIsBeyond) {
  Checked one{.limit = {"step_ms", 5}};
  one.outcome = Checked::Outcome::beyond;
  one.why = "+9 % <b>";
  const std::string xml = check_junit({one}, "run.zscope");
  EXPECT_NE(xml.find("failures=\"1\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("&lt;b&gt;"), std::string::npos) << xml;
}

}  // namespace
}  // namespace shardscope::analysis
