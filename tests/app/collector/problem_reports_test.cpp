// How often a problem that comes again and again is reported.
#include "app/collector/problem_reports.h"

#include <gtest/gtest.h>

namespace shardscope::collector {
namespace {

constexpr double kInterval = ProblemReports::kInterval_s;
using Take = ProblemReports::Take;
using Texts = std::vector<std::string>;

TEST(ProblemReports, TheFirstOfAKindIsReportedAtOnce) {
  ProblemReports problems;
  EXPECT_EQ(problems.add("order", "twice", 1), "twice");
  EXPECT_EQ(problems.add("run", "another run", 1), "another run");
  EXPECT_TRUE(problems.take(1000, Take::all).empty());
}

TEST(ProblemReports, AFloodIsOneTextPerIntervalWithTheLastTextAndTheNumber) {
  ProblemReports problems;
  EXPECT_TRUE(problems.add("order", "message 0", 0));
  for (int i = 1; i <= 1000; ++i) {
    ASSERT_EQ(problems.add("order", "message " + std::to_string(i), 0.001 * i), std::nullopt);
  }
  EXPECT_TRUE(problems.take(kInterval - 0.1, Take::due).empty());
  EXPECT_EQ(problems.take(kInterval, Take::due),
            Texts{"message 1000, the last of 1000 since the last report"});
  EXPECT_TRUE(problems.take(2 * kInterval, Take::due).empty()) << "reported once";
}

TEST(ProblemReports, ASingleProblemIsReportedAsItIs) {
  ProblemReports problems;
  EXPECT_TRUE(problems.add("order", "one", 0));
  EXPECT_FALSE(problems.add("order", "two", 1));
  EXPECT_EQ(problems.take(kInterval, Take::due), Texts{"two"});
}

TEST(ProblemReports, TheIntervalBeginsAgainWithEachReport) {
  ProblemReports problems;
  EXPECT_TRUE(problems.add("order", "one", 0));
  EXPECT_FALSE(problems.add("order", "two", 1));
  EXPECT_EQ(problems.take(kInterval, Take::due), Texts{"two"});
  EXPECT_FALSE(problems.add("order", "three", kInterval + 1));
  EXPECT_EQ(problems.add("run", "another kind", kInterval + 1), "another kind");
  EXPECT_TRUE(problems.take(kInterval + 2, Take::due).empty());
  EXPECT_EQ(problems.take(2 * kInterval, Take::due), Texts{"three"});
  EXPECT_EQ(problems.add("order", "four", 4 * kInterval), "four");
}

TEST(ProblemReports, AtTheEndNothingIsLeftUnreported) {
  ProblemReports problems;
  EXPECT_TRUE(problems.add("order", "one", 0));
  EXPECT_FALSE(problems.add("order", "two", 1));
  EXPECT_EQ(problems.take(2, Take::all), Texts{"two"});
}

}  // namespace
}  // namespace shardscope::collector
