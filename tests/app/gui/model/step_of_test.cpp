// Which step a time belongs to, and that all that name one at the cursor name the same.
#include "app/gui/model/step_of.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/gui/model/format.h"
#include "app/gui/model/rank_pace.h"
#include "app/gui/model/state_dump.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

std::vector<store::StepRow> rows() {
  std::vector<store::StepRow> steps(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    steps[i].step = 5 + i;
    steps[i].begin_ns = 100 * (i + 1);
    steps[i].end_ns = 100 * (i + 1) + 60;
  }
  return steps;
}

TEST(StepOf, ATimeBelongsToTheStepThatBeganLast) {
  const auto steps = rows();
  EXPECT_EQ(step_of(steps, 99), std::nullopt);
  EXPECT_EQ(step_of(steps, 100), 0U);
  EXPECT_EQ(step_of(steps, 130), 0U);
  EXPECT_EQ(step_of(steps, 199), 0U) << "between two steps: the one before";
  EXPECT_EQ(step_of(steps, 200), 1U);
  EXPECT_EQ(step_of(steps, 1000), 2U);
  EXPECT_EQ(step_of({}, 1000), std::nullopt);
}

TEST(StepOf, AnAxisOfStepNumbersHasEachTimeWithinItsStep) {
  auto steps = rows();
  EXPECT_EQ(position_on_steps(steps, 99, 360), std::nullopt);
  EXPECT_DOUBLE_EQ(*position_on_steps(steps, 100, 360), 4.5);
  EXPECT_DOUBLE_EQ(*position_on_steps(steps, 150, 360), 5) << "half of the time until the next step";
  EXPECT_DOUBLE_EQ(*position_on_steps(steps, 330, 360), 7) << "the last step: half of itself";
  EXPECT_DOUBLE_EQ(*position_on_steps(steps, 9000, 360), 7.5);
  for (const std::int64_t at : {100, 130, 199, 200, 330, 359})
    EXPECT_EQ(time_on_steps(steps, *position_on_steps(steps, at, 360), 360), at);
  EXPECT_EQ(time_on_steps(steps, 4.4, 360), std::nullopt);
  EXPECT_EQ(time_on_steps(steps, 7.6, 360), std::nullopt);
  steps[1].step = 6;
  steps[2].step = 9;
  EXPECT_EQ(time_on_steps(steps, 7.2, 360), std::nullopt) << "between them no step was recorded";
  EXPECT_EQ(time_on_steps(steps, 8.5, 360), 300);
  steps[2].end_ns = store::kOpen;
  EXPECT_DOUBLE_EQ(*position_on_steps(steps, 320, 340), 9) << "while it runs: of what is known";
}

TEST(StepOf, FiguresAreOfThatStepOrOfTheLastBeforeItThatHasEnded) {
  auto steps = rows();
  EXPECT_EQ(measured_step_of(steps, 130), 0U);
  EXPECT_EQ(measured_step_of(steps, 330), 2U);
  steps[2].end_ns = store::kOpen;
  EXPECT_EQ(measured_step_of(steps, 330), 1U);
  steps[0].end_ns = store::kOpen;
  EXPECT_EQ(measured_step_of(steps, 130), std::nullopt);
  EXPECT_EQ(measured_step_of(steps, 50), std::nullopt);
}

TEST(StepOf, TheNewestCompletedStepsLastFromTheBeginOfTheFirstToTheEndOfTheLast) {
  auto steps = rows();
  EXPECT_EQ(newest_steps_ns(steps, 2), 160);
  EXPECT_EQ(newest_steps_ns(steps, 50), 260) << "as many as there are";
  EXPECT_EQ(newest_steps_ns(steps, 0), std::nullopt);
  steps[2].end_ns = store::kOpen;
  EXPECT_EQ(newest_steps_ns(steps, 1), 60) << "the open one is not completed";
  EXPECT_EQ(newest_steps_ns({}, 1), std::nullopt);
}

TEST_F(Model, RankLabelsAndTopBarSpeakOfTheStepUnderTheCursor) {
  const auto steps = data().steps();
  ASSERT_GE(steps.size(), 3U);
  // Ranks are not in step: some begin the next one before the last has ended this one.
  const std::int64_t last = steps[2].begin_ns - 1;
  for (const std::int64_t at : {steps[1].begin_ns, (steps[1].begin_ns + last) / 2, last}) {
    app_.cursor_ns = at;
    for (const store::RankRow& rank : data().ranks()) {
      const RankPace pace = rank_pace(app_, rank.rank);
      EXPECT_EQ(pace.step, steps[1].step) << at;
      EXPECT_EQ(pace.busy_ns, app_.run->step_times(steps[1].step)->ranks[rank.rank].time.compute_ns);
    }
    EXPECT_EQ(nlohmann::json::parse(state_json(app_, {}, 0))["shown_step"], steps[1].step) << at;
  }
  app_.cursor_ns.reset();  // the end
  EXPECT_EQ(rank_pace(app_, 0).step, steps.back().step);
}

/// Steps of 1000 ns each, with so much computation by step and rank.
test::RunBuilder computed(const std::vector<std::vector<std::int64_t>>& compute_ns) {
  using namespace test;
  RunBuilder run(static_cast<std::uint32_t>(compute_ns.front().size()));
  for (std::uint32_t step = 0; step < compute_ns.size(); ++step) {
    const std::int64_t begin = 1000 * step;
    for (std::uint32_t rank = 0; rank < compute_ns[step].size(); ++rank) {
      run.span(rank, begin, begin + 1000, EventKind::step_begin, StreamId::host, step);
      if (compute_ns[step][rank] > 0)
        run.span(rank, begin + 100, begin + 100 + compute_ns[step][rank], EventKind::module_begin,
                 StreamId::compute, 1);
    }
  }
  return run;
}

TEST(Slowness, LastsWhereItIsInMostOfTheStepsAndInMoreThanAMoment) {
  EXPECT_FALSE((Slowness{1, 8}.lasting()));
  EXPECT_FALSE((Slowness{4, 8}.lasting())) << "half is not most";
  EXPECT_TRUE((Slowness{5, 8}.lasting()));
  EXPECT_TRUE((Slowness{3, 3}.lasting()));
  EXPECT_FALSE((Slowness{2, 2}.lasting())) << "two steps are a moment";
  EXPECT_FALSE(Slowness{}.lasting());
}

TEST(RankPace, OneNoisyStepMarksNoRankAndTheTipSaysOverHowManyStepsOneIsMarked) {
  std::vector<std::vector<std::int64_t>> steps(12, {400, 400, 400});
  for (std::size_t step = 0; step < steps.size(); ++step) steps[step][2] = 500;  // slow all the time
  steps.back()[1] = 600;                                                         // in the last one
  steps[10][2] = steps[3][2] = 400;
  test::RunBuilder run = computed(steps);
  AppState app;
  app.run = std::make_unique<Session>(std::move(run.build()));
  app.run->settle();
  EXPECT_EQ(RankPaces(app).step(), 11U);
  EXPECT_EQ(RankPaces(app).slow(), std::set<std::uint32_t>{2});
  const std::string lasting = pace_text(rank_pace(app, 2));
  EXPECT_NE(lasting.find("Slow in 6 of the last 8 steps."), std::string::npos) << lasting;
  const std::string once = pace_text(rank_pace(app, 1));
  EXPECT_NE(once.find("Slow in 1 of the last 8 steps; marked where"), std::string::npos) << once;
  EXPECT_EQ(pace_text(rank_pace(app, 0)).find("Slow"), std::string::npos);
  const RankPace alone{.step = 0, .busy_ns = 600, .others_ns = 400, .recent = {1, 1}};
  EXPECT_NE(pace_text(alone).find("Slow in the only step that is compared; marked where"), std::string::npos)
      << pace_text(alone);
  // Only steps up to the one that is looked at.
  app.cursor_ns = 1500;
  EXPECT_EQ(RankPaces(app).slow(), std::set<std::uint32_t>{});
  app.cursor_ns = 2500;
  EXPECT_EQ(RankPaces(app).slow(), std::set<std::uint32_t>{2});
}

TEST(RankPace, TheSlowOneOfTwoRanksIsAStraggler) {
  const auto stragglers = [](const std::vector<std::int64_t>& compute_ns) {
    test::RunBuilder run = computed({compute_ns, compute_ns, compute_ns});
    AppState app;
    app.run = std::make_unique<Session>(std::move(run.build()));
    app.run->settle();
    std::vector<std::uint32_t> found;
    for (std::uint32_t rank = 0; rank < compute_ns.size(); ++rank) {
      EXPECT_EQ(rank_pace(app, rank).busy_ns, compute_ns[rank]);
      if (rank_pace(app, rank).straggler()) found.push_back(rank);
    }
    return found;
  };
  using Ranks = std::vector<std::uint32_t>;
  EXPECT_EQ(stragglers({300, 600}), Ranks{1}) << "compared with the other alone";
  EXPECT_EQ(stragglers({400, 430}), Ranks{});
  EXPECT_EQ(stragglers({400, 400, 441}), Ranks{2}) << "as the finding: 1.1 times the median of the others";
  EXPECT_EQ(stragglers({400, 400, 439}), Ranks{});
  EXPECT_EQ(stragglers({600}), Ranks{}) << "no rank to compare with";
  EXPECT_EQ(stragglers({0, 0}), Ranks{});
}

TEST(RankPace, TheSlowestIsGoneToAndWhatIsSaidOfItHasItsFigures) {
  using namespace test;
  RunBuilder run(3);
  for (std::uint32_t step = 0; step < 3; ++step) {
    const std::int64_t begin = step * 1'000'000;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      run.span(rank, begin, begin + 900'000, EventKind::step_begin, StreamId::host, step);
      run.span(rank, begin + 100'000, begin + (rank == 1 ? 600'000 : 500'000), EventKind::module_begin,
               StreamId::compute, 1);
    }
  }
  AppState app;
  app.run = std::make_unique<Session>(std::move(run.build()));
  app.run->settle();
  const std::string said = go_to_slowest(app);
  EXPECT_NE(said.find("Rank 1 is the slowest"), std::string::npos) << said;
  EXPECT_NE(said.find("1.25 times the median of the others (400"), std::string::npos) << said;
  EXPECT_EQ(app.rank_to_show, 1U);
  EXPECT_TRUE(app.timeline.expanded.contains(1));
  EXPECT_EQ(app.selection.rank, 1U);
  EXPECT_EQ(RankPaces(app).slow(), (std::set<std::uint32_t>{1}));
}

/// A run of a thousand ranks records few events: then it says what would have to be recorded.
TEST(RankPace, WithoutASlowestItSaysWhy) {
  using namespace test;
  const auto said = [](std::uint32_t ranks) {
    RunBuilder run(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      run.span(rank, 0, 900'000, EventKind::step_begin, StreamId::host, 0);
    AppState app;
    app.run = std::make_unique<Session>(std::move(run.build()));
    app.run->settle();
    return go_to_slowest(app);
  };
  EXPECT_NE(said(2).find("spans of computation are recorded from detail modules on, and nothing above steps"),
            std::string::npos)
      << said(2);
  EXPECT_NE(said(1).find("there is one rank"), std::string::npos) << said(1);
}

TEST(RankPace, WhatOthersWaitedForARankIsTheSummarys) {
  using namespace test;
  RunBuilder run(2);
  // Rank 1 comes to the collective 300 us after rank 0, which has nothing else to do.
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    run.span(rank, 0, 900'000, EventKind::step_begin, StreamId::host, 0);
    const std::int64_t comes = rank == 0 ? 100'000 : 400'000;
    run.span(rank, 1'000, comes, EventKind::module_begin, StreamId::compute, 1);
    run.span(rank, comes, 500'000, EventKind::collective_begin, StreamId::gather, 7, 0, kGatherOp, 100, 400);
    run.instant(rank, 400'000, EventKind::collective_entered, StreamId::gather, 7, 0, ev::kNoId, kGatherOp);
  }
  AppState app;
  app.run = std::make_unique<Session>(std::move(run.build()));
  app.run->settle();
  const std::string late = waited_for_text(app, 1);
  const auto& ranks = app.run->summary().ranks;
  ASSERT_EQ(ranks.size(), 2U);
  ASSERT_GT(ranks[1].others_waited_ns, 0);
  EXPECT_NE(late.find(duration(ranks[1].others_waited_ns).text()), std::string::npos) << late;
  EXPECT_NE(late.find("entered 1 collective last; it computed 0.4 ms"), std::string::npos) << late;
  EXPECT_EQ(waited_for_text(app, 0), "");
}

}  // namespace
}  // namespace shardscope::gui
