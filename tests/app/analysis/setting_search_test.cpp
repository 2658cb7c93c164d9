// Which settings are played and which are best, on formulas whose best is known.
#include "app/analysis/setting_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <stdexcept>

#include "app/analysis/search_space.h"

namespace shardscope::analysis {
namespace {

SearchSetting setting(const std::string& name, std::size_t values) {
  SearchSetting made{name, {{"recorded"}}};
  for (std::size_t i = 1; i < values; ++i)
    made.values.push_back({std::to_string(i), {name + "=" + std::to_string(i)}});
  return made;
}

/// Nothing is played twice, and the recorded settings first.
void expect_sane(const SearchResult& result) {
  std::set<Choice> seen;
  for (const Played& played : result.played) EXPECT_TRUE(seen.insert(played.choice).second);
  ASSERT_FALSE(result.played.empty());
  EXPECT_EQ(result.played.front().choice, Choice(result.played.front().choice.size(), 0));
}

/// A bowl: the settings do not depend on one another.
PlayOutcome bowl(const Choice& choice) {
  double step = 10;
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const double away = static_cast<double>(choice[i]) - static_cast<double>((i + 1) % 3);
    step += away * away;
  }
  return {step, 100 * static_cast<std::int64_t>(choice.front()) + 50, {}};
}

TEST(SettingSearch, PlaysAllWhereThatIsPossible) {
  const std::vector<SearchSetting> space{setting("a", 3), setting("b", 4)};
  const SearchResult result = search_settings(space, {0, 12}, bowl);
  expect_sane(result);
  EXPECT_EQ(result.choices, 12U);
  EXPECT_EQ(result.played.size(), 12U);
  EXPECT_TRUE(result.complete);
  EXPECT_FALSE(result.cut_short);
  EXPECT_EQ(result.played[best_played(result, {0, 12}, 1).front()].choice, (Choice{1, 2}));
}

TEST(SettingSearch, FindsTheBestOfMoreThanItPlays) {
  const std::vector<SearchSetting> space{setting("a", 3), setting("b", 4), setting("c", 3), setting("d", 4)};
  const SearchBounds bounds{0, 60};
  const SearchResult result = search_settings(space, bounds, bowl);
  expect_sane(result);
  EXPECT_EQ(result.choices, 144U);
  EXPECT_LT(result.played.size(), 60U);
  EXPECT_FALSE(result.complete);
  EXPECT_FALSE(result.cut_short);
  EXPECT_EQ(result.played[best_played(result, bounds, 1).front()].choice, (Choice{1, 2, 0, 1}));
}

// With the first setting's value 2 everything is slower until the others have followed: one change at a time
// from the recorded settings does not get there.
TEST(SettingSearch, BeginsAgainWithEveryValueOfTheFirstSetting) {
  const std::vector<SearchSetting> space{setting("a", 3), setting("b", 4), setting("c", 4), setting("d", 4)};
  const auto valley = [](const Choice& choice) -> PlayOutcome {
    if (choice[0] != 2) return {10.0 + static_cast<double>(choice[1] + choice[2] + choice[3]), 1, {}};
    return {20.0 - 5 * static_cast<double>(choice[1]) + static_cast<double>(choice[2] + choice[3]), 1, {}};
  };
  const SearchBounds bounds{0, 100};
  const SearchResult result = search_settings(space, bounds, valley);
  expect_sane(result);
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(result.played[best_played(result, bounds, 1).front()].choice, (Choice{2, 3, 0, 0}));
}

TEST(SettingSearch, LeavesOutWhatNeedsMoreMemory) {
  const std::vector<SearchSetting> space{setting("a", 3), setting("b", 4), setting("c", 3), setting("d", 4)};
  for (const std::size_t plays : {60U, 1000U}) {
    const SearchBounds bounds{100, plays};  // a: 0 alone
    const SearchResult result = search_settings(space, bounds, bowl);
    const std::vector<std::size_t> best = best_played(result, bounds, 3);
    ASSERT_EQ(best.size(), 1U) << "all that fit need the same";
    EXPECT_EQ(result.played[best.front()].choice, (Choice{0, 2, 0, 1})) << plays;
  }
}

TEST(SettingSearch, AfterTheFastestComesWhatNeedsLess) {
  const std::vector<SearchSetting> space{setting("a", 4), setting("b", 2)};
  // a: 1 is fastest; 2 is slower and larger; 0 is slower and smaller, 3 slower still and smallest.
  const auto trade = [](const Choice& choice) -> PlayOutcome {
    constexpr double kStep[] = {11, 10, 12, 13};
    constexpr std::int64_t kPeak[] = {60, 80, 90, 50};
    return {kStep[choice[0]] + static_cast<double>(choice[1]), kPeak[choice[0]], {}};
  };
  const SearchResult result = search_settings(space, {0, 100}, trade);
  const std::vector<std::size_t> best = best_played(result, {0, 100}, 5);
  ASSERT_EQ(best.size(), 3U);
  EXPECT_EQ(result.played[best[0]].choice, (Choice{1, 0}));
  EXPECT_EQ(result.played[best[1]].choice, (Choice{0, 0}));
  EXPECT_EQ(result.played[best[2]].choice, (Choice{3, 0}));
  EXPECT_EQ(best_played(result, {0, 100}, 2).size(), 2U);
}

TEST(SettingSearch, NamesTheSmallestWhereNothingFits) {
  const std::vector<SearchSetting> space{setting("a", 3), setting("b", 3), setting("c", 3)};
  const auto memory = [](const Choice& choice) -> PlayOutcome {
    const auto peak = static_cast<std::int64_t>(1000 - 100 * choice[0] - 10 * choice[1] - choice[2]);
    return {1.0 + static_cast<double>(choice[0]), peak, {}};
  };
  for (const std::size_t plays : {20U, 100U}) {
    const SearchBounds bounds{500, plays};
    const SearchResult result = search_settings(space, bounds, memory);
    EXPECT_TRUE(best_played(result, bounds, 5).empty());
    EXPECT_EQ(result.played[smallest_played(result)].choice, (Choice{2, 2, 2})) << plays;
  }
}

TEST(SettingSearch, WhatHasNoEffectIsPlayedOnce) {
  std::vector<SearchSetting> space{setting("stage", 3), setting("b", 4), setting("prefetch", 5)};
  space[2].only_with = {2};
  const SearchResult result = search_settings(space, {0, 1000}, bowl);
  expect_sane(result);
  EXPECT_EQ(result.choices, 4U + 4U + 4U * 5U);
  EXPECT_EQ(result.played.size(), result.choices);
  for (const Played& played : result.played) EXPECT_TRUE(played.choice[0] == 2 || played.choice[2] == 0);
}

TEST(SettingSearch, WhatIsRefusedIsNeverBest) {
  const std::vector<SearchSetting> space{setting("a", 3), setting("b", 3), setting("c", 3)};
  const auto half = [](const Choice& choice) -> PlayOutcome {
    if (choice[1] == 1) return {0, 0, "not this one"};
    return bowl(choice);
  };
  for (const std::size_t plays : {20U, 100U}) {
    const SearchResult result = search_settings(space, {0, plays}, half);
    for (const std::size_t i : best_played(result, {0, plays}, 100))
      EXPECT_NE(result.played[i].choice[1], 1U);
    EXPECT_NE(result.played[smallest_played(result)].choice[1], 1U);
  }
  const SearchResult none = search_settings(space, {0, 100}, [](const Choice&) -> PlayOutcome {
    return {0, 0, "no"};
  });
  EXPECT_TRUE(best_played(none, {0, 100}, 5).empty());
  EXPECT_EQ(smallest_played(none), none.played.size());
}

TEST(SettingSearch, SaysWhereItWasCutShort) {
  const std::vector<SearchSetting> space{setting("a", 3), setting("b", 4), setting("c", 3), setting("d", 4)};
  const SearchResult result = search_settings(space, {0, 5}, bowl);
  EXPECT_EQ(result.played.size(), 5U);
  EXPECT_TRUE(result.cut_short);
  EXPECT_FALSE(result.complete);
}

// b and c bring something until d has changed; then neither does, and both are given back.
TEST(SettingSearch, ProposesNoChangeThatBringsNothing) {
  const std::vector<SearchSetting> space{setting("a", 2), setting("b", 2), setting("c", 9), setting("d", 2)};
  const auto late = [](const Choice& choice) -> PlayOutcome {
    return {choice[3] == 1 ? 8.0 : 10.0 - (choice[1] == 1 ? 0.5 : 0) - (choice[2] == 1 ? 0.5 : 0), 1, {}};
  };
  const SearchBounds bounds{0, 60};
  const SearchResult result = search_settings(space, bounds, late);
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(result.played[best_played(result, bounds, 1).front()].choice, (Choice{0, 0, 0, 1}));
}

TEST(SettingSearch, TheSamePlaysEveryTime) {
  const std::vector<SearchSetting> space{setting("a", 3), setting("b", 4), setting("c", 3), setting("d", 4)};
  const SearchResult first = search_settings(space, {0, 60}, bowl);
  const SearchResult second = search_settings(space, {0, 60}, bowl);
  ASSERT_EQ(first.played.size(), second.played.size());
  for (std::size_t i = 0; i < first.played.size(); ++i)
    EXPECT_EQ(first.played[i].choice, second.played[i].choice);
}

TEST(SettingSearch, ADefaultThatFollowsTheStageIsHeld) {
  std::vector<SearchSetting> space{setting("stage", 3), setting("overlap", 2)};
  space[1].held = "overlap=0";
  EXPECT_TRUE(sets_of(space, {0, 0}).empty());
  EXPECT_EQ(sets_of(space, {2, 0}), (std::vector<std::string>{"stage=2", "overlap=0"}));
  EXPECT_EQ(sets_of(space, {2, 1}), (std::vector<std::string>{"stage=2", "overlap=1"}));
  space[1].only_with = {0};
  EXPECT_EQ(sets_of(space, {2, 0}), (std::vector<std::string>{"stage=2"}));
}

const SearchSetting* find(const std::vector<SearchSetting>& space, const std::string& name) {
  for (const SearchSetting& one : space)
    if (one.name == name) return &one;
  return nullptr;
}

instrumentation::RunTables small_model() {
  instrumentation::RunTables tables;
  tables.elems = 1'000'000;
  instrumentation::ParamInfo matrix, vector;
  matrix.shape = {1000, 990};
  matrix.elems = 990'000;
  vector.shape = {10'000};
  vector.elems = 10'000;
  tables.params = {matrix, vector};
  return tables;
}

config::TrainingConfig parsed(const std::string& text) {
  config::ParseOptions options;
  options.world = 2;
  return config::parse_config(text, options);
}

TEST(SearchSpace, HasTheSettingsOfTheRecordedRun) {
  const config::TrainingConfig recorded = parsed(
      R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2,
          "zero_optimization": {"stage": 3, "reduce_bucket_size": 250000}})");
  const auto space = usual_space(recorded, small_model(), HostKnown::no);
  ASSERT_EQ(space.front().name, "zero_optimization.stage");
  EXPECT_EQ(space.front().values.front().text, "3");
  EXPECT_EQ(space.front().values.size(), 4U);
  const SearchSetting* bucket = find(space, "zero_optimization.reduce_bucket_size");
  ASSERT_NE(bucket, nullptr);
  EXPECT_EQ(bucket->values.front().text, "250000");
  EXPECT_EQ(bucket->values.size(), 4U) << "a quarter of the model is what was recorded: 16000, 62000, all";
  EXPECT_EQ(bucket->only_with, (std::vector<std::size_t>{0, 2, 3})) << "not stage 0, the second value";
  const SearchSetting* live = find(space, "zero_optimization.stage3_max_live_parameters");
  ASSERT_NE(live, nullptr);
  EXPECT_EQ(live->only_with, (std::vector<std::size_t>{0}));
  EXPECT_EQ(live->values.size(), 4U) << "1e9, as recorded, is all of the model: not tried again";
  const SearchSetting* threshold = find(space, "zero_optimization.stage3_param_persistence_threshold");
  ASSERT_NE(threshold, nullptr);
  EXPECT_EQ(threshold->values.back().text, "10001");
  const SearchSetting* batch = find(space, "micro-batch x accumulation");
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->values.front().text, "2 x 2");
  EXPECT_EQ(batch->values.back().sets,
            (std::vector<std::string>{"train_micro_batch_size_per_gpu=4", "gradient_accumulation_steps=1"}));
  EXPECT_EQ(find(space, "zero_optimization.overlap_comm")->held, "zero_optimization.overlap_comm=true");
  EXPECT_EQ(find(space, "zero_optimization.offload_optimizer.device"), nullptr);
  const auto with_host = usual_space(recorded, small_model(), HostKnown::yes);
  EXPECT_NE(find(with_host, "zero_optimization.offload_optimizer.device"), nullptr);
}

TEST(SearchSpace, StaysWhereTheStageIsNeeded) {
  const auto hpz = usual_space(parsed(R"({"train_micro_batch_size_per_gpu": 1,
                 "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 2}})"),
                               small_model(), HostKnown::no);
  EXPECT_EQ(hpz.front().values.size(), 1U);
  const auto offloaded = usual_space(parsed(R"({"train_micro_batch_size_per_gpu": 1,
                 "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})"),
                                     small_model(), HostKnown::yes);
  EXPECT_EQ(offloaded.front().values.size(), 3U) << "stage 0 has no offloading";
  EXPECT_EQ(find(offloaded, "micro-batch x accumulation"), nullptr) << "one sample cannot be divided";
}

TEST(SearchSpace, ReadsGivenValues) {
  const SearchSetting plain = setting_from("zero_optimization.stage=1,2,3", "2");
  EXPECT_EQ(plain.name, "zero_optimization.stage");
  ASSERT_EQ(plain.values.size(), 3U) << "the recorded value counts once";
  EXPECT_EQ(plain.values[0].text, "2");
  EXPECT_TRUE(plain.values[0].sets.empty());
  EXPECT_EQ(plain.values[2].sets, std::vector<std::string>{"zero_optimization.stage=3"});
  const SearchSetting nested =
      setting_from(R"(zero_optimization.offload_optimizer={"device":"cpu","x":[1,2]},"a,\"b",null)", "null");
  ASSERT_EQ(nested.values.size(), 3U);
  EXPECT_EQ(nested.values[1].text, R"({"device":"cpu","x":[1,2]})");
  EXPECT_EQ(nested.values[2].text, R"("a,\"b")");
  EXPECT_TRUE(nested.held.empty());
  for (const char* wrong : {"stage", "=1,2", "stage=", "stage=1,,2", "stage=1,1", "stage=2"})
    EXPECT_THROW(static_cast<void>(setting_from(wrong, "2")), std::invalid_argument) << wrong;
}

TEST(SearchSpace, WhatIsGivenIsNotSearched) {
  const config::TrainingConfig with_set = parsed(
      R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 2}})");
  auto space = usual_space(with_set, small_model(), HostKnown::no);
  ASSERT_NE(find(space, "zero_optimization.stage3_max_live_parameters"), nullptr) << "of stage 3";
  leave_out(space, {"zero_optimization.stage", "gradient_accumulation_steps"});
  ASSERT_EQ(space.front().values.size(), 1U) << "others refer to it";
  EXPECT_EQ(space.front().values.front().text, "2") << "the given stage";
  EXPECT_EQ(find(space, "micro-batch x accumulation"), nullptr) << "one of its two keys is given";
  EXPECT_EQ(find(space, "zero_optimization.stage3_max_live_parameters"), nullptr)
      << "of no effect in stage 2";
  EXPECT_NE(find(space, "zero_optimization.reduce_bucket_size"), nullptr);
}

TEST(SearchSpace, SaysForWhatTheErrorOfPredictionsWasNotMeasured) {
  instrumentation::RunTables tables;
  tables.world = 2;
  tables.device = "AMD EPYC 7B13, 2 hardware threads, 8 GiB";
  EXPECT_EQ(unmeasured_of(tables), "");
  tables.world = 8;
  EXPECT_EQ(unmeasured_of(tables), "with 8 ranks");
  tables.device = "NVIDIA H100, 132 multiprocessors, 80 GiB, compute capability 9.0, CUDA 12.4 (driver 12.4)";
  EXPECT_EQ(unmeasured_of(tables), "on GPUs with 8 ranks");
  tables.world = 1;
  EXPECT_EQ(unmeasured_of(tables), "on GPUs");
  tables.simulated = true;
  EXPECT_EQ(unmeasured_of(tables), "");
}

}  // namespace
}  // namespace shardscope::analysis
