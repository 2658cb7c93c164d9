// The list of breakpoints: kept by name, searched over all ranks, played up to, and the rule that a live run
// is given.
#include "app/gui/model/break_list.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/gui/model/compare_tables.h"
#include "app/gui/model/compared_series.h"
#include "app/gui/model/format.h"
#include "app/gui/model/held_long.h"
#include "app/gui/model/names.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/gui/known_run.h"
#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

using Rule = ev::StopRule::Kind;
using std::chrono::hours;

/// A tenth of a second each, until nothing is searched or played.
void run_on(AppState& app, double& seconds) {
  for (int i = 0; i < 100'000 && (app.breaks.searching() || app.breaks.playing()); ++i)
    app.breaks.tick(app, seconds += 0.1, hours(1));
}

TEST_F(Model, TheNextBreakpointIsTheEarliestOfAllRanks) {
  AppState& app = app_;
  const std::int64_t end = data().end_ns();
  const std::vector<Breakpoint> wait{{BreakKind::wait, ev::kNoId, 0, true}};
  std::optional<std::int64_t> first;
  std::uint32_t rank = 0;
  for (const store::RankRow& row : data().ranks()) {
    const auto hit = next_hit(*app.run, row.rank, wait, 0, end);
    if (!hit || (first && *first <= hit->at_ns)) continue;
    first = hit->at_ns;
    rank = row.rank;
  }
  ASSERT_TRUE(first);
  app.stepper_rank = rank == 0 ? 1 : 0;  // not the one where it is
  app.cursor_ns = 0;
  app.breaks.add(data(), wait.front());
  app.breaks.to_next(app);
  double seconds = 1;
  run_on(app, seconds);
  EXPECT_EQ(*app.cursor_ns, *first);
  EXPECT_EQ(app.stepper_rank, rank);
  ASSERT_TRUE(app.breaks.stopped());
  EXPECT_EQ(app.breaks.stopped()->which, 0U);

  app.breaks.enable(0, false);
  app.breaks.to_next(app);
  run_on(app, seconds);
  EXPECT_TRUE(app.breaks.none_left());
  EXPECT_EQ(*app.cursor_ns, *first) << "the cursor stays";
}

TEST_F(Model, ASearchInPiecesFindsWhatOneInOneGoDoes) {
  app_.breaks.add(data(), {BreakKind::wait, ev::kNoId, 0, true});
  app_.cursor_ns = data().end_ns() / 3;
  app_.breaks.to_next(app_);
  app_.breaks.tick(app_, 1, hours(1));
  ASSERT_FALSE(app_.breaks.searching());
  const std::int64_t whole = *app_.cursor_ns;
  app_.cursor_ns = data().end_ns() / 3;
  app_.breaks.to_next(app_);
  int pieces = 0;
  for (; app_.breaks.searching(); ++pieces) app_.breaks.tick(app_, 1, std::chrono::microseconds(0));
  EXPECT_EQ(*app_.cursor_ns, whole);
  EXPECT_GE(pieces, static_cast<int>(data().ranks().size())) << "a rank at a time";
}

/// Two ranks with a step every millisecond, and in every hundredth a wait of a tenth of it.
store::Store long_run(std::uint32_t steps) {
  test::RunBuilder run(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    for (std::uint32_t step = 0; step < steps; ++step) {
      const std::int64_t begin = std::int64_t{step} * 1'000'000;
      run.span(rank, begin, begin + 900'000, ev::EventKind::step_begin, ev::StreamId::host, step);
      if (step % 100 == 50)
        run.span(rank, begin + 200'000 + rank, begin + 300'000 + rank, ev::EventKind::fetch_wait_begin,
                 ev::StreamId::compute, 1);
    }
  }
  return std::move(run.build());
}

TEST(BreakList, AWaitIsFoundInTheStoreWhereTheIndexHasNone) {
  const Session run(long_run(100));  // not looked at: nothing is indexed
  ASSERT_TRUE(run.index().waits(0).empty());
  const std::vector<Breakpoint> wait{{BreakKind::wait, ev::kNoId, 0.05, true}};
  const auto hit = next_hit(run, 1, wait, 0, run.store().end_ns());
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->at_ns, 50'300'001);
  EXPECT_FALSE(next_hit(run, 1, wait, hit->at_ns, run.store().end_ns()));
  EXPECT_FALSE(next_hit(run, 1, {{{BreakKind::wait, ev::kNoId, 0.2, true}}}, 0, run.store().end_ns()));
}

TEST(BreakList, AFilterLeavesThoseOfTheRunOrOneThatIsLookedForElsewhere) {
  const Session run(long_run(100));
  const std::vector<Breakpoint> list{{BreakKind::step, 3, 0, true}, {BreakKind::wait, ev::kNoId, 0, true}};
  const std::int64_t end = run.store().end_ns();
  EXPECT_EQ(next_hit(run, 0, list, 0, end)->which, 0U);
  EXPECT_EQ(next_hit(run, 0, list, 0, end, {BreakFilter::Of::rank})->which, 1U);
  EXPECT_EQ(next_hit(run, 0, list, 0, end, {BreakFilter::Of::run})->which, 0U);
  EXPECT_FALSE(next_hit(run, 0, list, 0, end, {BreakFilter::Of::run, 0U}));
}

/// No look reads more than a window of a rank: a run of a month is not read whole within a frame.
TEST(BreakList, ALongRunIsSearchedWindowByWindow) {
  AppState app;
  app.run = std::make_unique<Session>(long_run(20'000));
  app.breaks.add(app.store(), {BreakKind::wait, ev::kNoId, 0.05, true});
  app.breaks.add(app.store(), {BreakKind::step, 1040, 0, true});
  app.cursor_ns = 950'400'000;  // after the wait of step 950
  app.breaks.to_next(app);
  int looks = 0;
  for (; app.breaks.searching(); ++looks) app.breaks.tick(app, 1, std::chrono::microseconds(0));
  EXPECT_EQ(*app.cursor_ns, 1'040'000'000) << "the step comes before the next wait";
  EXPECT_EQ(looks, 2) << "within the first window, rank by rank";
  app.breaks.remove(0);
  app.breaks.to_next(app);
  for (looks = 0; app.breaks.searching(); ++looks) app.breaks.tick(app, 1, std::chrono::microseconds(0));
  EXPECT_TRUE(app.breaks.none_left());
  EXPECT_GE(looks, 4) << "of 20 000 steps a rank, no more than a part at once";
}

TEST_F(Model, ARecordingIsPlayedUpToTheNextBreakpointWithoutAPanel) {
  const store::StepRow& second = data().steps()[1];
  app_.breaks.add(data(), {BreakKind::step, second.step, 0, true});
  app_.jump_to(second.begin_ns / 2);
  app_.breaks.speed() = static_cast<double>(data().end_ns()) * 1e-9 / 20;  // the run in twenty seconds
  app_.breaks.play(app_, true);
  ASSERT_TRUE(app_.breaks.playing());
  double seconds = 1;
  run_on(app_, seconds);
  EXPECT_EQ(*app_.cursor_ns, second.begin_ns);
  EXPECT_GT(seconds, 3) << "at the chosen speed";
  app_.breaks.play(app_, true);
  run_on(app_, seconds);
  EXPECT_EQ(*app_.cursor_ns, data().end_ns()) << "it is passed; the run's end is next";
}

TEST_F(Model, WhoGoesElsewhereWhilePlayingStopsAtTheNextBreakpointFromThere) {
  const auto steps = data().steps();
  ASSERT_GE(steps.size(), 3U);
  app_.breaks.add(data(), {BreakKind::step, steps[1].step, 0, true});
  app_.breaks.add(data(), {BreakKind::step, steps[2].step, 0, true});
  app_.jump_to(0);
  app_.breaks.speed() = static_cast<double>(data().end_ns()) * 1e-9 / 20;
  app_.breaks.play(app_, true);
  double seconds = 1;
  for (int i = 0; i < 5; ++i) app_.breaks.tick(app_, seconds += 0.1, hours(1));
  app_.jump_to((steps[1].begin_ns + steps[2].begin_ns) / 2);
  run_on(app_, seconds);
  EXPECT_EQ(*app_.cursor_ns, steps[2].begin_ns);
}

TEST_F(Model, BreakpointsAreKeptByNameAndFoundAgainInAnotherRun) {
  const std::uint32_t param = 3;
  app_.breaks.add(data(), {BreakKind::param, param, 0, true});
  app_.breaks.add(data(), {BreakKind::wait, ev::kNoId, 2.5, false});
  app_.breaks.add(data(), {BreakKind::step, 1, 0, true});
  const std::vector<std::string> lines = app_.breaks.lines();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_NE(lines[0].find(param_name(data(), param)), std::string::npos);

  AppState again;
  again.run = std::make_unique<Session>(store::make_synthetic_store());
  for (const std::string& line : lines) again.breaks.take_line(line);
  again.breaks.take_line("Break=99\t1\t0\t1\t");
  again.breaks.take_line("Break=0\tbroken");
  again.breaks.tick(again, 1, hours(1));
  EXPECT_EQ(again.breaks.list(), app_.breaks.list());
  EXPECT_EQ(again.breaks.lines(), lines);

  AppState other;
  other.run = std::make_unique<Session>(known::run());
  for (const std::string& line : lines) other.breaks.take_line(line);
  other.breaks.tick(other, 1, hours(1));
  EXPECT_EQ(other.breaks.list()[0].id, ev::kNoId) << "it has no such parameter";
  EXPECT_NE(other.breaks.text(other.store(), 0).find("not in this run"), std::string::npos);
  EXPECT_FALSE(other.breaks.at_gate(other.store()) == 0U);
  EXPECT_EQ(other.breaks.lines(), lines) << "and is kept for one that has";
}

TEST_F(Model, ABreakpointAtOneBucketStopsAtItsFlushAloneAndIsKept) {
  const auto flushes = app_.run->index().flushes(0);
  ASSERT_GE(flushes.size(), 3U);
  const std::uint32_t third = flushes[2].bucket;
  BreakList list;
  list.add(data(), {BreakKind::bucket, third, 0, true});
  const auto hit = next_hit(*app_.run, 0, list.list(), 0, data().end_ns(), {});
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->at_ns, flushes[2].at_ns);
  EXPECT_FALSE(next_hit(*app_.run, 0, list.list(), hit->at_ns, data().end_ns(), {}))
      << "numbers of buckets increase over the run";
  EXPECT_EQ(list.rule(data()).kind, ev::StopRule::Kind::run_to_bucket);
  EXPECT_EQ(list.rule(data()).id, third);
  BreakList read;
  for (const std::string& line : list.lines()) read.take_line(line);
  EXPECT_EQ(read.list(), list.list());
  EXPECT_EQ(read.text(data(), 0), "bucket " + std::to_string(third) + " is flushed");
}

TEST_F(Model, ALiveRunStopsByItselfAtTheFirstEnabledPlaceThatIsAhead) {
  BreakList& breaks = app_.breaks;
  EXPECT_EQ(breaks.rule(data()).kind, Rule::never);
  breaks.add(data(), {BreakKind::wait, ev::kNoId, 1, true});
  EXPECT_EQ(breaks.rule(data()).kind, Rule::never) << "a condition is in the events alone";
  breaks.add(data(), {BreakKind::step, data().steps().back().step, 0, true});
  EXPECT_EQ(breaks.rule(data()).kind, Rule::never) << "that step has begun: the rule would stop at once";
  breaks.add(data(), {BreakKind::bucket, ev::kNoId, 0, true});
  EXPECT_EQ(breaks.rule(data()).kind, Rule::never) << "a gate has one bucket, not any";
  breaks.add(data(), {BreakKind::module, 2, 0, true});
  breaks.add(data(), {BreakKind::param, 1, 0, true});
  EXPECT_EQ(breaks.rule(data()).kind, Rule::run_to_module);
  EXPECT_EQ(breaks.rule(data()).id, 2U);
  EXPECT_EQ(breaks.at_gate(data()), 3U);
  breaks.enable(3, false);
  EXPECT_EQ(breaks.rule(data()).kind, Rule::run_to_param);
  breaks.remove(4);
  breaks.add(data(), {BreakKind::step, data().steps().back().step + 5, 0, true});
  EXPECT_EQ(breaks.rule(data()).kind, Rule::run_to_step);
  EXPECT_EQ(breaks.rule(data()).id, data().steps().back().step + 5);
}

TEST_F(Model, ARunThatWasGivenARuleIsGivenAnotherWhenItsBreakpointIsRemoved) {
  BreakList& breaks = app_.breaks;
  breaks.add(data(), {BreakKind::wait, ev::kNoId, 1, true});
  breaks.add(data(), {BreakKind::module, 2, 0, true});
  breaks.sent(breaks.rule(data()), data(), {});
  EXPECT_EQ(breaks.armed(), 1U);
  EXPECT_FALSE(breaks.rule_due(data())) << "it has it";
  breaks.remove(0);
  EXPECT_EQ(breaks.armed(), 0U) << "it moved up in the list";
  breaks.remove(0);
  EXPECT_EQ(breaks.armed(), std::nullopt) << "what is not in the list any more is not what the run stops at";
  ASSERT_TRUE(breaks.rule_due(data())) << "the run would still stop there";
  EXPECT_EQ(breaks.rule_due(data())->kind, Rule::never);
  breaks.sent({}, data(), {});
  breaks.add(data(), {BreakKind::wait, ev::kNoId, 1, true});
  EXPECT_FALSE(breaks.rule_due(data())) << "a condition is no rule, and the run has none";
}

TEST_F(Model, ABreakpointIsInTheListOnce) {
  app_.breaks.add(data(), {BreakKind::module, 2, 0, true});
  const std::uint64_t before = app_.breaks.revision();
  app_.breaks.enable(0, false);
  app_.breaks.add(data(), {BreakKind::module, 2, 0, true});
  ASSERT_EQ(app_.breaks.list().size(), 1U);
  EXPECT_TRUE(app_.breaks.list()[0].enabled) << "it is switched on";
  EXPECT_GT(app_.breaks.revision(), before);
}

/// A parameter of 1200 elements of 2 bytes: used at 1000 to 2000 and held until 5000; another never used.
TEST(HeldLong, IsFromTheEndOfTheLastUseToTheRelease) {
  using ev::EventKind;
  ev::RunTables tables = known::tables();
  store::Store store;
  store.set_tables(0, tables);
  store::ChunkBuilder events(0);
  const auto change = [&](std::int64_t at, std::uint32_t param, plan::ParamStatus to) {
    events.add(at, EventKind::param_status, ev::StreamId::compute, param,
               ev::status_code(static_cast<std::uint8_t>(to), ev::StatusCause::fetch), known::kElems);
  };
  events.host(0, EventKind::step_begin, 7);
  change(500, 0, plan::ParamStatus::available);
  change(500, 2, plan::ParamStatus::available);
  events.compute(1000, EventKind::module_begin, 1);
  events.compute(2000, EventKind::module_end, 1);
  events.compute(2500, EventKind::module_begin, 3);  // of another parameter
  events.compute(3000, EventKind::module_end, 3);
  change(5000, 0, plan::ParamStatus::not_available);
  change(6000, 2, plan::ParamStatus::not_available);
  change(6500, 0, plan::ParamStatus::available);
  events.compute(6600, EventKind::module_begin, 1);
  change(7000, 0, plan::ParamStatus::not_available);  // while it is used
  events.compute(7100, EventKind::module_end, 1);
  events.host(8000, EventKind::step_end, 7);
  store.ingest(events.chunk);
  store::StepRow step;
  step.step = 7;
  step.begin_ns = 0;
  step.end_ns = 8000;
  const HeldLong held = held_long(store, 0, step);
  EXPECT_EQ(held.missing, "");
  ASSERT_EQ(held.params.size(), 2U);
  EXPECT_EQ(held.params[0].param, 2U) << "never used: from when it was there, 5500 ns";
  EXPECT_EQ(held.params[0].longest_ns, 5500);
  EXPECT_EQ(held.params[1].param, 0U);
  EXPECT_EQ(held.params[1].longest_ns, 3000);
  EXPECT_EQ(held.params[1].longest_at_ns, 2000);
  EXPECT_EQ(held.params[1].total_ns, 3000) << "the second time it was released while it was used";
  EXPECT_EQ(held.params[1].times, 2U);
  EXPECT_EQ(held.params[1].bytes, 2 * known::kElems);
  EXPECT_DOUBLE_EQ(held.mean_bytes(), 2.0 * known::kElems * (5500 + 3000) / 8000);
  ASSERT_EQ(held.stretches.size(), 1U) << "one that was never used was not held after a use";
  EXPECT_EQ(held.stretches[0].begin_ns, 2000);
  EXPECT_EQ(held.stretches[0].end_ns, 5000);
  EXPECT_FALSE(held.stretches[0].used_again);
  const Table table = held_table(store, held);
  EXPECT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0][0].text, "h.1.qkv.weight") << "h is no model's name";
  EXPECT_EQ(table.rows[0][0].tip, "h.1.qkv.weight")
      << "its end distinguishes it from others in a narrow list";

  tables.stage = 2;
  store::Store other;
  other.set_tables(0, tables);
  EXPECT_NE(held_long(other, 0, {}).missing, "");
}

/// A step in which parameter 0 is used from 1000 to 2000 and released at `release_ns`.
store::Store run_that_holds(std::int64_t release_ns) {
  using ev::EventKind;
  const ev::RunTables tables = known::tables();
  store::Store store;
  store.set_tables(0, tables);
  store::ChunkBuilder events(0);
  const auto change = [&](std::int64_t at, plan::ParamStatus to) {
    events.add(at, EventKind::param_status, ev::StreamId::compute, 0,
               ev::status_code(static_cast<std::uint8_t>(to), ev::StatusCause::fetch), known::kElems);
  };
  events.host(0, EventKind::step_begin, 7);
  change(500, plan::ParamStatus::available);
  events.compute(1000, EventKind::module_begin, 1);
  events.compute(2000, EventKind::module_end, 1);
  change(release_ns, plan::ParamStatus::not_available);
  events.host(8000, EventKind::step_end, 7);
  store.ingest(events.chunk);
  return store;
}

TEST(ComparedTable, OfParametersIsHowLongTheyWereWhole) {
  Session a(run_that_holds(5000)), b(run_that_holds(3500));
  a.settle();
  b.settle();
  const ComparedSteps steps = compared_series(a, b, SeriesOf::parameter, 5);
  const Table table = series_table(steps, SeriesOf::parameter, NameCells(a.store()));
  ASSERT_EQ(table.rows.size(), 1U) << "it was there when the run began: never gathered";
  const std::vector<Cell>& row = table.rows[0];
  EXPECT_EQ(row[0].text, "h.0.qkv.weight");
  EXPECT_EQ(row[1].text, "whole on a rank");
  EXPECT_DOUBLE_EQ(*row[2].value, 4500e-6) << "ms, from 500 to 5000";
  EXPECT_DOUBLE_EQ(*row[3].value, 3000e-6);
  EXPECT_EQ(row[4].text, "\u22121.50 \u00b5s");
  EXPECT_EQ(row[5].text, kMissing) << "one step has no interval";
}

}  // namespace
}  // namespace shardscope::gui
