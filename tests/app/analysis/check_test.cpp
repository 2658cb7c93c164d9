// Limits against a baseline: what is read, and that the verdict claims no more than the steps bear.
#include "app/analysis/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

/// A run of one rank whose steps take so many milliseconds and have so many tokens; the first is warm-up.
struct Made {
  RunBuilder builder{1, 0};
  store::Store* store = nullptr;
  Summary summary;
  explicit Made(const std::vector<double>& ms, const std::vector<std::int64_t>& tokens = {}) {
    std::int64_t at = 0;
    std::uint32_t step = 0;
    for (const double one : ms) {
      const auto length = static_cast<std::int64_t>(one * 1e6);
      builder.span(0, at, at + length, EventKind::step_begin, StreamId::host, step, ev::kNoId, 0,
                   step < tokens.size() ? tokens[step] : 0);
      ++step;
      at += length + 1000;
    }
    store = &builder.build();
    summary = summarize(*store);
  }
  [[nodiscard]] Run run() const { return {store, &summary}; }
};

/// Steps with noise that depends on the step before: AR(1), 3 % of 100 ms.
std::vector<double> noisy(unsigned seed, double mean, std::size_t steps = 41) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, 3);
  std::vector<double> out;
  double drift = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    drift = 0.5 * drift + noise(random);
    out.push_back(mean + drift);
  }
  return out;
}

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
  EXPECT_FALSE(one.interval->without_zero());
}

TEST(Check, OfTwoHundredPairsOfLikeRunsFewAreCalledDifferent) {
  int different = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Checked one = check_step(noisy(2 * seed, 100), noisy(2 * seed + 1, 100));
    ASSERT_TRUE(one.interval);
    different += one.interval->without_zero() ? 1 : 0;
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
  EXPECT_EQ(one.outcome, Checked::Outcome::within) << one.why;
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
  EXPECT_NE(slower.why.find("19 steps"), std::string::npos) << slower.why;
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
