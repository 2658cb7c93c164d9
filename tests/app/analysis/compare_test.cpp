// Two runs compared: a verdict only where enough steps and their spread bear it.
#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "app/analysis/verdict_basis.h"
#include "tests/app/analysis/made_steps.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

store::Store* steps_of(RunBuilder& run, std::initializer_list<std::int64_t> lengths_ns) {
  std::int64_t at = 0;
  std::uint32_t step = 0;
  for (const std::int64_t length : lengths_ns) {
    run.span(0, at, at + length, EventKind::step_begin, StreamId::host, step++);
    at += length + 100;
  }
  return &run.build();
}

TEST(Compare, VerdictOnlyWhatTheStepsBear) {
  RunBuilder fast(1), slow(1), noisy(1);
  const store::Store* a = steps_of(fast, {9'000'000, 1'000'000, 1'010'000, 1'020'000, 1'000'000, 1'000'000,
                                          1'010'000, 1'020'000, 1'000'000});
  const store::Store* b = steps_of(slow, {9'000'000, 2'000'000, 2'010'000, 2'020'000, 2'000'000, 2'000'000,
                                          2'010'000, 2'020'000, 2'000'000});
  const store::Store* c = steps_of(
      noisy, {9'000'000, 500'000, 1'600'000, 900'000, 1'400'000, 600'000, 1'500'000, 800'000, 1'300'000});
  const Summary sa = summarize(*a), sb = summarize(*b), sc = summarize(*c);
  const Comparison slower = compare({{a, &sa}}, {{b, &sb}});
  EXPECT_NE(slower.verdict.find("slower than A"), std::string::npos) << slower.verdict;
  const Comparison alike = compare({{a, &sa}}, {{c, &sc}});
  EXPECT_NE(alike.verdict.find("No significant difference"), std::string::npos) << alike.verdict;
  EXPECT_TRUE(slower.config_changes.empty());
  EXPECT_EQ(slower.no_config_changes, "The two configurations are the same.");
  EXPECT_NE(slower.method.find("8 pairs of steps with the same number"), std::string::npos) << slower.method;
  EXPECT_TRUE(slower.unlike.empty());
}

/// Of an attached run only its framework's settings are known.
TEST(Compare, ClaimsNoEqualityOfScripts) {
  RunBuilder run(1);
  const store::Store* store = steps_of(run, {9'000'000, 1'000'000, 1'010'000});
  Summary summary = summarize(*store);
  const auto said = [&] { return compare({{store, &summary}}, {{store, &summary}}).no_config_changes; };
  summary.framework = "FSDP2 (PyTorch 2.15.0)";
  summary.config_json = R"({"fully_shard": {"groups": 7}})";
  EXPECT_EQ(said(), "No recorded setting differs. What else the scripts do differently is not recorded.");
  for (const char* none : {"{}", ""}) {
    summary.config_json = none;
    EXPECT_EQ(said(), "No configuration was recorded.");
  }
}

TEST(Compare, ExposedCommunicationIsSaidOfAFirst) {
  const auto with_exposed = [](RunBuilder& run, std::initializer_list<double> exposed_ms) {
    std::int64_t at = 0;
    std::uint32_t step = 0;
    for (const double ms : exposed_ms) {
      run.span(0, at, at + 10 * kMs, EventKind::step_begin, StreamId::host, step);
      run.span(0, at, at + kMs, EventKind::module_begin, StreamId::compute, 1);
      run.span(0, at + 2 * kMs, at + 2 * kMs + static_cast<std::int64_t>(ms * 1e6),
               EventKind::collective_begin, StreamId::gather, step, step, kGatherOp, 1000, 4000);
      ++step;
      at += 11 * kMs;
    }
    return &run.build();
  };
  RunBuilder first(1), second(1), third(1);
  const store::Store* a = with_exposed(first, {5, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0});
  const store::Store* b = with_exposed(second, {5, 2.2, 1.0, 1.2, 1.9, 1.9, 1.1, 2.2, 1.6});
  const store::Store* c = with_exposed(third, {5, 4.0, 4.1, 4.0, 4.1, 4.0, 4.1, 4.0, 4.1});
  const Summary sa = summarize(*a), sb = summarize(*b), sc = summarize(*c);
  const std::string alike = compare({{a, &sa}}, {{b, &sb}}).verdict;
  EXPECT_NE(alike.find("Exposed communication is alike (1.5 and 1."), std::string::npos) << alike;
  const std::string more = compare({{a, &sa}}, {{c, &sc}}).verdict;
  EXPECT_NE(more.find("Exposed communication goes from 1.5 to 4."), std::string::npos) << more;
}

TEST(Compare, ShortExposedCommunicationKeepsItsDigits) {
  constexpr std::int64_t kUs = 1000;
  const auto with_exposed = [](RunBuilder& run, std::int64_t exposed_us) {
    for (std::uint32_t step = 0; step < 12; ++step) {
      const std::int64_t at = step * 11'000 * kUs;
      run.span(0, at, at + 10'000 * kUs, EventKind::step_begin, StreamId::host, step);
      run.span(0, at, at + 1000 * kUs, EventKind::module_begin, StreamId::compute, 1);
      run.span(0, at + 2000 * kUs, at + (2000 + exposed_us) * kUs, EventKind::collective_begin,
               StreamId::gather, step, step, kGatherOp, 1000, 4000);
    }
    return &run.build();
  };
  RunBuilder first(1), second(1);
  const store::Store* a = with_exposed(first, 140);
  const store::Store* b = with_exposed(second, 70);
  const Summary sa = summarize(*a), sb = summarize(*b);
  const std::string verdict = compare({{a, &sa}}, {{b, &sb}}).verdict;
  EXPECT_NE(verdict.find("goes from 0.14 to 0.07 ms"), std::string::npos) << verdict;
}

TEST(Compare, StepsOfDifferentWorkAreComparedByTokens) {
  const auto with_tokens = [](RunBuilder& run, std::int64_t step_ns, std::int64_t tokens) {
    for (std::uint32_t step = 0; step < 12; ++step) {
      const std::int64_t at = step * (step_ns + 100);
      run.span(0, at, at + step_ns + step * 100, EventKind::step_begin, StreamId::host, step, ev::kNoId, 0,
               tokens);
    }
    return &run.build();
  };
  RunBuilder first(1), second(1);
  const store::Store* a = with_tokens(first, 1'000'000, 1000);
  const store::Store* b = with_tokens(second, 1'550'000, 2000);
  ASSERT_EQ(a->steps()[1].tokens, 1000);
  Summary sa = summarize(*a), sb = summarize(*b);
  sa.config_json = R"({"gradient_accumulation_steps": 1, "lr": 1})";
  sb.config_json = R"({"gradient_accumulation_steps": 2, "lr": 2})";
  const std::string verdict = compare({{a, &sa}}, {{b, &sb}}).verdict;
  EXPECT_NE(verdict.find("B is 29.1 % faster than A in tokens per second"), std::string::npos) << verdict;
  EXPECT_EQ(verdict.find("2000"), verdict.rfind("2000")) << "stated once: " << verdict;
  EXPECT_NE(verdict.find("(tokens of a step: 1000 and 2000)"), std::string::npos) << verdict;
  EXPECT_NE(verdict.find("not the same work in both (gradient_accumulation_steps: 1 -> 2)"),
            std::string::npos)
      << verdict;
  // A difference that is none between trainings is said with the verdict.
  RunBuilder third(1);
  const store::Store* c = with_tokens(third, 1'010'000, 1020);
  const Summary sc = summarize(*c);
  const std::string alike = compare({{a, &sa}}, {{c, &sc}}).verdict;
  EXPECT_NE(alike.find("not the same work in both: 1000 tokens in A, 1020 in B"), std::string::npos) << alike;
}

TEST(Compare, EveryRunHasEnoughStepsOrThereIsNoVerdict) {
  RunBuilder whole(1), cut(1), once(1);
  const store::Store* a = steps_of(whole, {9'000'000, 1'000'000, 1'010'000, 1'020'000, 1'000'000, 1'000'000,
                                           1'010'000, 1'020'000, 1'000'000});
  const store::Store* b = steps_of(cut, {9'000'000, 2'000'000});
  const store::Store* c = steps_of(once, {9'000'000});
  const Summary sa = summarize(*a), sb = summarize(*b), sc = summarize(*c);
  using Runs = std::vector<analysis::Run>;  // not testing::Test::Run
  const auto none = [](const Runs& left, const Runs& right) {
    EXPECT_FALSE(verdict_basis(left, right).enough());
    EXPECT_EQ(verdict_basis(left, right).steps_b, 1U);
    const std::string verdict = compare(left, right).verdict;
    EXPECT_EQ(verdict.rfind("No verdict: too few measured steps (A 8, B 1;", 0), 0U) << verdict;
    EXPECT_EQ(verdict.find("than A"), std::string::npos) << verdict;
  };
  none({{a, &sa}}, {{b, &sb}});
  // Three repeats of one step each are three warm-ups.
  none({{a, &sa}}, {{c, &sc}, {c, &sc}, {c, &sc}});
  // One repeat that was cut short is not outvoted by the others.
  none({{a, &sa}, {a, &sa}}, {{a, &sa}, {b, &sb}});
  EXPECT_TRUE(verdict_basis({{a, &sa}}, {{a, &sa}}).enough());
}

TEST(Compare, OfTwoHundredPairsOfLikeRunsFewAreCalledDifferent) {
  int different = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Made a(noisy(2 * seed, 100)), b(noisy(2 * seed + 1, 100));
    const Comparison found = compare({a.run()}, {b.run()});
    ASSERT_TRUE(found.metrics[0].interval);
    const bool differs = found.metrics[0].differs();
    EXPECT_EQ(found.verdict.find("than A") != std::string::npos, differs) << found.verdict;
    different += differs ? 1 : 0;
  }
  EXPECT_LE(different, 18);
}

TEST(Difference, ChangesByPointsIfItIsAShareAndElseInPercentOfA) {
  const auto shown = [](const char* unit, std::optional<double> a, std::optional<double> b, bool lower) {
    return Difference{.metric = "", .unit = unit, .a = a, .b = b, .lower_is_better = lower}.change();
  };
  const auto share = shown("%", 47, 12, false);
  ASSERT_TRUE(share);
  EXPECT_EQ(share->value, -35);
  EXPECT_TRUE(share->points);
  EXPECT_FALSE(share->better) << "less overlap";
  EXPECT_EQ(shown("%", 0, 12, false)->value, 12) << "from no share at all";
  const auto time = shown("ms", 10, 12.5, true);
  ASSERT_TRUE(time);
  EXPECT_EQ(time->value, 25);
  EXPECT_FALSE(time->points);
  EXPECT_FALSE(time->better);
  EXPECT_TRUE(shown("ms", 10, 9, true)->better);
  EXPECT_EQ(shown("loss", -2, -1, true)->value, 50) << "up, though A is negative";
  EXPECT_FALSE(shown("ms", 0, 1, true)) << "no percentage of nothing";
  EXPECT_FALSE(shown("ms", std::nullopt, 1, true));
  EXPECT_FALSE(shown("%", 1, std::nullopt, true));
  EXPECT_FALSE(shown("%", std::nan(""), 1, true));
}

TEST(Compare, ARunAgainstItselfIsNoDifference) {
  const Made a(noisy(1, 100));
  const Comparison found = compare({a.run()}, {a.run()});
  EXPECT_EQ(found.verdict.rfind("No significant difference in step time", 0), 0U) << found.verdict;
  for (const Difference& one : found.metrics) EXPECT_FALSE(one.differs()) << one.metric;
}

TEST(Compare, SaysThatTheTrainingsAreNotTheSame) {
  Made a(noisy(1, 100)), b(noisy(2, 50));
  b.summary.model = "another";
  b.summary.world = 4;
  const Comparison found = compare({a.run()}, {b.run()});
  ASSERT_EQ(found.unlike.size(), 2U);
  EXPECT_EQ(found.verdict.rfind("Not the same training (model: hand-made (1000 parameters) and another (1000 "
                                "parameters); ranks: 1 and 4). ",
                                0),
            0U)
      << found.verdict;
}

}  // namespace
}  // namespace shardscope::analysis
