// Advice is tried before it is given: of findings made by hand and a player that is a formula.
#include "app/analysis/advice.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shardscope::analysis {
namespace {

/// Steps by the value of the first change; what is not there is refused.
Player player_of(const std::map<std::string, double>& steps, std::size_t* plays = nullptr) {
  return [steps, plays](const std::vector<Change>& changes) -> PlayOutcome {
    if (changes.empty()) return {100, 1000, {}};
    if (plays != nullptr) ++*plays;
    const auto at = steps.find(changes.front().value);
    return at == steps.end() ? PlayOutcome{0, 0, "no such thing"} : PlayOutcome{at->second, 1200, {}};
  };
}

Finding finding_with(const std::string& key, const std::vector<std::string>& values,
                     const std::string& otherwise = {}) {
  Finding finding;
  finding.severity = instrumentation::Severity::warning;
  finding.title = key;
  finding.cost_ms = 50;
  finding.otherwise = otherwise;
  for (const std::string& value : values) advise(finding, {{{key, value}}, "Set it to " + value + "."});
  return finding;
}

TEST(Advice, TheBestOfSeveralIsAdvisedWithWhatWasPredicted) {
  std::vector<Finding> findings{finding_with("bucket", {"1", "2", "3"})};
  try_advice(findings, player_of({{"1", 90}, {"2", 60}, {"3", 59.9}}));
  ASSERT_EQ(findings[0].changes.size(), 1U);
  EXPECT_EQ(findings[0].changes[0].value, "2");  // as good as 3, and disturbs less
  EXPECT_EQ(findings[0].next_step, "Set it to 2.");
  EXPECT_NEAR(*findings[0].gain_ms, 40, 1e-9);
  EXPECT_EQ(findings[0].gain_basis,
            "what-if: 100.0 ms become 60.0 ms; the device's peak of 0.98 KiB becomes 1.17 KiB");
}

/// Twice the peak for the last tenth of the gain is not what somebody who shards wants.
TEST(Advice, MostOfTheGainWithoutMoreMemoryGoesFirst) {
  for (const double frugal : {60.0, 90.0}) {
    std::vector<Finding> findings{finding_with("live", {"all", "some"})};
    try_advice(findings, [&](const std::vector<Change>& changes) {
      if (changes.empty()) return PlayOutcome{100, 1000, {}};
      return changes[0].value == "all" ? PlayOutcome{55, 2000, {}} : PlayOutcome{frugal, 1050, {}};
    });
    EXPECT_EQ(findings[0].changes[0].value, frugal < 70 ? "some" : "all");
  }
}

TEST(Advice, WhatGainsNothingIsNotAdvised) {
  std::vector<Finding> findings{finding_with("bucket", {"1", "2"}),
                                finding_with("other", {"1"}, "A larger micro-batch.")};
  try_advice(findings, player_of({{"1", 160}, {"2", 99}}));
  for (const Finding& finding : findings) {
    EXPECT_TRUE(finding.changes.empty());
    EXPECT_FALSE(finding.gain_ms);
    EXPECT_NE(finding.gain_basis.find(" none makes a step 2 % shorter"), std::string::npos)
        << finding.gain_basis;
  }
  EXPECT_NE(findings[0].gain_basis.find("bucket=2, -1.0 %"), std::string::npos) << findings[0].gain_basis;
  // Nothing can be done about the one: a note. The other has something else to do.
  EXPECT_EQ(findings[0].severity, instrumentation::Severity::info);
  EXPECT_EQ(findings[1].severity, instrumentation::Severity::warning);
  EXPECT_EQ(findings[1].next_step, "A larger micro-batch.");
}

TEST(Advice, TwoFindingsDoNotAdviseTwoValuesOfAKey) {
  std::vector<Finding> findings{finding_with("bucket", {"1"}), finding_with("bucket", {"2"})};
  findings[0].title = "the small one";
  findings[1].title = "the large one";
  try_advice(findings, player_of({{"1", 90}, {"2", 60}}));
  EXPECT_TRUE(findings[0].changes.empty());
  EXPECT_FALSE(findings[0].gain_ms);
  EXPECT_EQ(gain_text(findings[0]), "") << "no gain is claimed for what is not advised";
  EXPECT_EQ(findings[0].next_step, "First what \"the large one\" advises: it sets the same key.");
  EXPECT_EQ(findings[1].changes.size(), 1U);
}

TEST(Advice, WithoutAPlayTheGainIsNotPredicted) {
  std::vector<Finding> findings{finding_with("bucket", {"1", "2"}), Finding{}};
  try_advice(findings, {});
  EXPECT_EQ(findings[0].changes[0].value, "1");
  EXPECT_FALSE(findings[0].gain_ms);
  EXPECT_EQ(findings[0].gain_basis.rfind("not predicted: ", 0), 0U);
  EXPECT_EQ(findings[1].gain_basis, "");  // advises no setting
  try_advice(findings, [](const std::vector<Change>&) { return PlayOutcome{0, 0, "too large"}; });
  EXPECT_EQ(findings[0].gain_basis, "not predicted: too large");
  // Asked again, where it can be played.
  try_advice(findings, player_of({{"2", 60}}));
  EXPECT_EQ(findings[0].changes[0].value, "2");
}

TEST(Advice, TheSameChangesArePlayedOnce) {
  std::size_t plays = 0;
  std::vector<Finding> findings{finding_with("bucket", {"1", "2"}), finding_with("bucket", {"2", "1"})};
  try_advice(findings, player_of({{"1", 90}, {"2", 60}}, &plays));
  EXPECT_EQ(plays, 2U);
  EXPECT_EQ(findings[0].changes[0].value, findings[1].changes[0].value);
}

TEST(Advice, WhereMemoryIsWhatItCostsThePeakDecides) {
  std::vector<Finding> findings{finding_with("live", {"1", "2"})};
  findings[0].cost_ms.reset();
  findings[0].cost_bytes = 300;
  try_advice(findings, [](const std::vector<Change>& changes) {
    if (changes.empty()) return PlayOutcome{100, 1000, {}};
    return changes[0].value == "1" ? PlayOutcome{90, 1000, {}} : PlayOutcome{101, 700, {}};
  });
  EXPECT_EQ(findings[0].changes[0].value, "2");
  EXPECT_EQ(findings[0].gain_bytes, 300);
  EXPECT_FALSE(findings[0].gain_ms);
  EXPECT_NE(findings[0].gain_basis.find("a step of 100.0 ms becomes 101.0 ms"), std::string::npos);
}

/// What is communicated may be hidden: that no step gets longer is enough, and the text says what is saved.
TEST(Advice, FewerBytesOnTheWayAreAGainWhereNoStepGetsLonger) {
  for (const double step : {80.0, 100.5, 103.0}) {
    std::vector<Finding> findings{finding_with("scatter", {"true"})};
    findings[0].cost_ms.reset();
    findings[0].cost_bytes = 300;
    findings[0].bytes_of = BytesOf::communication;
    try_advice(findings, [&](const std::vector<Change>& changes) {
      return changes.empty() ? PlayOutcome{100, 1000, {}} : PlayOutcome{step, 1000, {}};
    });
    EXPECT_EQ(findings[0].changes.size(), step < 101 ? 1U : 0U) << step;
    EXPECT_EQ(findings[0].gain_ms.has_value(), step < 90) << step;
    EXPECT_FALSE(findings[0].gain_bytes) << "the peak is not what it is about";
    EXPECT_EQ(
        findings[0].gain_basis.ends_with("; no step is predicted to be shorter: it is advised for the 300 B "
                                         "of communication in a step that it saves, not for time"),
        step > 90 && step < 101)
        << findings[0].gain_basis;
    EXPECT_EQ(bytes_cost_text(findings[0]), "300 B of communication in a step");
  }
}

/// Of an attached run the peak is not known, only the part of it that the settings change.
TEST(Advice, ThePartOfThePeakThatIsKnownCountsWhereThePeakIsNot) {
  for (const std::int64_t held : {1050, 1200}) {
    std::vector<Finding> findings{finding_with("live", {"all", "some"})};
    try_advice(findings, [&](const std::vector<Change>& changes) -> PlayOutcome {
      if (changes.empty()) return {.step_ms = 100, .held_bytes = 1000, .model_error_pct = -3};
      if (changes[0].value == "all") return {.step_ms = 55, .held_bytes = 3000, .model_error_pct = -3};
      return {.step_ms = 60, .held_bytes = held, .model_error_pct = -3};
    });
    ASSERT_EQ(findings[0].changes.size(), 1U);
    EXPECT_EQ(findings[0].changes[0].value, held < 1100 ? "some" : "all");
    EXPECT_EQ(findings[0].gain_basis.find("what-if: 100.0 ms become"), 0U);
    EXPECT_NE(findings[0].gain_basis.find("; model states and gathered parameters of 0.98 KiB become "),
              std::string::npos)
        << findings[0].gain_basis;
    EXPECT_TRUE(findings[0].gain_basis.ends_with("; replayed as recorded a step is -3.0 % off"));
  }
}

TEST(Advice, WithoutAPeakAnOptionThatSavesMemorySaysWhatIsKnown) {
  std::vector<Finding> findings{finding_with("reshard", {"true"})};
  findings[0].cost_ms.reset();
  findings[0].cost_bytes = 300;
  try_advice(findings, [](const std::vector<Change>& changes) -> PlayOutcome {
    if (changes.empty()) return {.step_ms = 100, .held_bytes = 2048};
    return {.step_ms = 104, .held_bytes = 1024};
  });
  EXPECT_EQ(findings[0].changes.size(), 1U);
  EXPECT_FALSE(findings[0].gain_bytes);
  EXPECT_EQ(findings[0].gain_basis,
            "not predicted: a replay of this run has times, not the device's peak; model states and gathered "
            "parameters of 2.00 KiB become 1.00 KiB, a step of 100.0 ms becomes 104.0 ms");
}

TEST(Advice, WithoutAPeakARefusedOptionHasItsReason) {
  std::vector<Finding> findings{finding_with("reshard", {"true"})};
  findings[0].cost_ms.reset();
  findings[0].cost_bytes = 300;
  try_advice(findings, [](const std::vector<Change>& changes) -> PlayOutcome {
    if (changes.empty()) return {.step_ms = 100, .held_bytes = 2048};
    return {.refused = "the time for it was over"};
  });
  EXPECT_EQ(findings[0].gain_basis,
            "not predicted: a replay of this run has times, not the device's peak; the time for it was over");
}

TEST(Advice, EveryOptionIsListedWithWhatBecameOfIt) {
  std::vector<Finding> findings{finding_with("bucket", {"1", "2", "3"}), Finding{}};
  findings[0].id = "small_bucket";
  const TriedAdvice tried = try_advice(findings, player_of({{"1", 90}, {"2", 60}}));
  EXPECT_EQ(tried.recorded.step_ms, 100);
  ASSERT_EQ(tried.options.size(), 3U);
  EXPECT_EQ(tried.options[0].finding, "small_bucket");
  EXPECT_EQ(tried.options[0].outcome.step_ms, 90);
  EXPECT_FALSE(tried.options[0].advised);
  EXPECT_TRUE(tried.options[1].advised);
  EXPECT_EQ(tried.options[2].outcome.refused, "no such thing");
  const auto json = nlohmann::json::parse(findings_json(findings, false, tried));
  ASSERT_EQ(json[0]["options"].size(), 3U);
  EXPECT_EQ(json[0]["options"][1]["step_ms"], 60);
  EXPECT_EQ(json[0]["options"][1]["peak_bytes"], 1200);
  EXPECT_EQ(json[0]["options"][1]["advised"], true);
  EXPECT_TRUE(json[0]["options"][1]["refused"].is_null());
  EXPECT_TRUE(json[0]["options"][2]["step_ms"].is_null());
  EXPECT_EQ(json[0]["options"][2]["refused"], "no such thing");
  EXPECT_TRUE(json[1]["options"].empty());
  // Where nothing can be played each option says why.
  const TriedAdvice none = try_advice(findings, [](const std::vector<Change>&) {
    return PlayOutcome{0, 0, "on a GPU"};
  });
  ASSERT_EQ(none.options.size(), 3U);
  for (const TriedOption& one : none.options) EXPECT_EQ(one.outcome.refused, "on a GPU");
  EXPECT_TRUE(none.options[0].advised);
}

PlayOutcome invalid() { return {.refused = "reduce_bucket_size: 0 is not above 0", .invalid = true}; }

TEST(Advice, WhatNoRunCanHaveIsNotAdvised) {
  std::vector<Finding> findings{finding_with("bucket", {"0"}, "A larger micro-batch."),
                                finding_with("size", {"0", "1"})};
  try_advice(findings, [](const std::vector<Change>& changes) -> PlayOutcome {
    if (changes.empty()) return {100, 1000, {}};
    return changes[0].value == "0" ? invalid() : PlayOutcome{.refused = "the time for it was over"};
  });
  EXPECT_TRUE(findings[0].changes.empty());
  EXPECT_EQ(findings[0].next_step, "A larger micro-batch.");
  EXPECT_EQ(findings[0].gain_basis, "what-if: no run can have it: reduce_bucket_size: 0 is not above 0");
  ASSERT_EQ(findings[1].changes.size(), 1U);
  EXPECT_EQ(findings[1].changes[0].value, "1") << "which may gain";
  EXPECT_EQ(findings[1].next_step, "Set it to 1.");
  EXPECT_EQ(findings[1].gain_basis, "not predicted: the time for it was over");
}

TEST(Advice, WhatWasNotPlayedBesideWhatGainsNothingIsSaid) {
  std::vector<Finding> findings{finding_with("bucket", {"1", "2"})};
  try_advice(findings, player_of({{"1", 99}}));
  EXPECT_TRUE(findings[0].changes.empty());
  EXPECT_EQ(findings[0].gain_basis,
            "what-if: of 1 change none makes a step 2 % shorter; the best, bucket=1, -1.0 %; 1 was not "
            "played: no such thing");
}

/// The window asks again as a run goes on.
TEST(Advice, WhatAnEarlierPlayChoseDoesNotStay) {
  std::vector<Finding> findings{finding_with("bucket", {"1", "2"})};
  try_advice(findings, player_of({{"1", 90}, {"2", 60}}));
  ASSERT_TRUE(findings[0].gain_ms);
  try_advice(findings, {});
  EXPECT_EQ(findings[0].changes[0].value, "1");
  EXPECT_EQ(findings[0].next_step, "Set it to 1.");
  EXPECT_FALSE(findings[0].gain_ms);
  EXPECT_EQ(findings[0].gain_basis,
            "not predicted: nothing was played; `shardscope findings` of a recording does");
}

}  // namespace
}  // namespace shardscope::analysis
