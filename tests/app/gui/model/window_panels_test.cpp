// What the panels Trace info, Connection and Options show.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/model/analyst.h"
#include "app/gui/model/connection_facts.h"
#include "app/gui/model/connection_rates.h"
#include "app/gui/model/format.h"
#include "app/gui/model/map_rows.h"
#include "app/gui/model/rank_groups.h"
#include "app/gui/model/trace_info.h"
#include "app/gui/model/view_options.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

std::string value_of(const Table& table, const std::string& what) {
  for (const auto& row : table.rows) {
    if (row[0].text == what) return row[1].text;
  }
  return "no row " + what;
}

TEST_F(Model, TraceInfoNamesTheRunItsRanksAndWhatTheStoreHolds) {
  const Table table = trace_table(app_);
  EXPECT_EQ(value_of(table, "model"), data().tables().model);
  EXPECT_EQ(value_of(table, "ranks"), std::to_string(data().ranks().size()) + " of " +
                                          std::to_string(data().tables().world) + " have sent events");
  EXPECT_EQ(value_of(table, "events"), grouped(static_cast<std::int64_t>(data().event_count())));
  EXPECT_EQ(value_of(table, "steps"), std::to_string(data().steps().size()));
  EXPECT_EQ(value_of(table, "file: size"), "no row file: size") << "it is of no file";
  EXPECT_EQ(value_of(table, "load: opened in"), "no row load: opened in");
  EXPECT_FALSE(load_text(*app_.run));
}

TEST(TraceInfo, ListsWhatIsNotRecordedWithItsReasonAndThePartitionSaysIt) {
  AppState app;
  store::Store store;
  EXPECT_EQ(no_partition(store).first, "No parameters known yet");
  ev::RunTables tables;
  tables.framework = "Megatron-Core 0.16.1";
  store.set_tables(0, tables);
  EXPECT_EQ(no_partition(store).first, "No parameters known yet") << "they may still come";
  tables.records = ev::bit_of(ev::Capability::steps);
  tables.not_recorded = {{ev::bit_of(ev::Capability::layout) | ev::bit_of(ev::Capability::flush_reasons),
                          "stages of a pipeline have different modules"}};
  store.set_tables(0, tables);
  EXPECT_EQ(no_partition(store).first, "No partition is recorded");
  EXPECT_EQ(no_partition(store).second, "stages of a pipeline have different modules");
  app.run = std::make_unique<Session>(std::move(store));
  app.run->settle();
  const Table table = trace_table(app);
  const auto row = std::ranges::find(table.rows, std::string("not recorded"),
                                     [](const std::vector<Cell>& cells) { return cells[0].text; });
  ASSERT_NE(row, table.rows.end());
  EXPECT_EQ((*row)[1].text, "layout, flush reasons");
  EXPECT_EQ((*row)[2].text, "stages of a pipeline have different modules");
}

TEST(TraceInfo, OfAFailedAnalysisSaysWhyAndNotThatItGoesOn) {
  const Analyst analyst("/this/recording/is/gone.zscope");
  ASSERT_TRUE(analyst.wait(std::chrono::minutes(1)));
  EXPECT_TRUE(no_analysis(*analyst.latest()).starts_with("not analysed: ")) << no_analysis(*analyst.latest());
  EXPECT_EQ(no_analysis({}), "analysis is running");
  Analysis whole;
  whole.whole = true;
  EXPECT_EQ(no_analysis(whole), "");
}

/// A rank whose machine differs from the others of its host has a row of its own; what was not recorded is
/// not guessed.
TEST(TraceInfo, ListsEachHostWithItsRanksAndMachine) {
  store::Store store;
  const auto add = [&](std::uint32_t rank, const char* host, const char* device, const char* hardware) {
    ev::RunTables tables;
    tables.rank = rank;
    tables.world = 5;
    tables.host = host;
    tables.device = device;
    tables.hardware = hardware;
    store.set_tables(rank, tables);
    store::RankRow row;
    row.rank = rank;
    row.host = host;
    store.set_rank(row);
  };
  for (const std::uint32_t rank : {0U, 1U, 2U}) add(rank, "node-a", "cuda", "H200");
  add(3, "node-b", "cuda", "H200");
  add(4, "node-b", "cpu", "");
  store::RankRow silent;
  silent.rank = 5;
  store.set_rank(silent);
  const Table table = machine_table(store);
  const auto texts = [&](std::size_t row) {
    std::vector<std::string> out;
    for (const Cell& cell : table.rows[row]) out.push_back(cell.text);
    return out;
  };
  using Texts = std::vector<std::string>;
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_EQ(texts(0), (Texts{kMissing, "1", "5", kMissing, kMissing, kMissing}));
  EXPECT_EQ(texts(1), (Texts{"node-a", "3", numbers_text({0, 1, 2}), "cuda", "H200", kMissing}));
  EXPECT_EQ(texts(2), (Texts{"node-b", "1", "4", "cpu", kMissing, kMissing}));
  EXPECT_EQ(texts(3), (Texts{"node-b", "1", "3", "cuda", "H200", kMissing}));
  EXPECT_EQ(sorted_rows(table, 1, true).front(), 1U) << "sorted by the number of ranks";
}

TEST(TraceInfo, CountsEndedSpansAndInstantsByKind) {
  test::RunBuilder run(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    run.span(rank, 0, 100, ev::EventKind::step_begin, ev::StreamId::host, 0);
    for (std::int64_t at = 0; at < 3; ++at)
      run.span(rank, 10 * at + 1, 10 * at + 6, ev::EventKind::module_begin, ev::StreamId::compute, 1);
    run.instant(rank, 50, ev::EventKind::param_status, ev::StreamId::compute, 0);
  }
  const Session session(std::move(run.build()));
  const Table table = event_counts(session);
  EXPECT_EQ(value_of(table, "module"), "6");
  EXPECT_EQ(value_of(table, "step"), "2");
  EXPECT_EQ(value_of(table, "param status"), "2");
  ASSERT_FALSE(table.rows.empty());
  EXPECT_EQ(table.rows.front()[0].text, "module") << "the most frequent first";
  EXPECT_EQ(table.rows.front()[2].text, "60.0 %");
}

TEST(ConnectionRates, AreTakenOverTheLastSecondsAndForgetWhatIsOld) {
  ConnectionRates rates;
  EXPECT_TRUE(rates.empty());
  rates.add({0, 0, 0});
  rates.add({0.1, 50, 500});  // too early
  EXPECT_TRUE(rates.empty());
  for (int i = 1; i <= 20; ++i)
    rates.add(
        {static_cast<double>(i), static_cast<std::uint64_t>(i) * 100, static_cast<std::uint64_t>(i) * 1000});
  EXPECT_DOUBLE_EQ(rates.events_per_s(), 100);
  EXPECT_DOUBLE_EQ(rates.bytes_per_s(), 1000);
  rates.add({21, 2000 + 600, 20'000});
  EXPECT_DOUBLE_EQ(rates.events_per_s(1), 600) << "over the last second";
  EXPECT_DOUBLE_EQ(rates.events_per_s(5), 200) << "4 times 100 and 600, in 5 s";
  const ConnectionRates::Curve curve = rates.curve();
  ASSERT_EQ(curve.x.size(), 21U);
  EXPECT_DOUBLE_EQ(curve.x.back(), 0);
  EXPECT_DOUBLE_EQ(curve.events.back(), 600);
  rates.add({21 + ConnectionRates::kLongest, 3000, 30'000});
  EXPECT_EQ(rates.curve().x.size(), 1U);
  rates.add({300, 10, 10});
  EXPECT_TRUE(rates.empty()) << "the counters began anew";
}

TEST_F(Model, ARecordingIsNoConnection) {
  EXPECT_EQ(link_text(*app_.run), "recording");
  app_.run->disconnect();
  EXPECT_FALSE(app_.run->disconnected());
}

TEST(Connection, WhatHadArrivedStaysWhenItEnds) {
  AppState app;
  app.run = Session::connect("ipc:///tmp/shardscope-no-such-collector-of-a-test");
  EXPECT_TRUE(app.run->live());
  EXPECT_EQ(value_of(connection_table(app), "state"), "connecting");
  EXPECT_EQ(value_of(connection_table(app), "backlog"), "none");
  app.run->disconnect();
  EXPECT_FALSE(app.run->live());
  EXPECT_EQ(link_text(*app.run), "disconnected");
  EXPECT_EQ(value_of(connection_table(app), "endpoint"), "ipc:///tmp/shardscope-no-such-collector-of-a-test");
  app.reconnect();
  ASSERT_TRUE(app.open_request);
  EXPECT_EQ(app.open_request->source, app.run->source());
}

TEST(RowChoices, AreKeptAsLinesAndWrongOnesChangeNothing) {
  RowChoices choices;
  choices.order = RankOrder::exposed;
  choices.rank_height = RankHeight::heat;
  choices.grouping = "shard group";
  choices.counters = {RowCounter::memory, RowCounter::step_time};
  choices.sampled = {"GPU power", "queue = 2"};
  RowChoices read;
  for (const std::string& line : lines_of(choices)) take_line(read, line);
  EXPECT_EQ(read, choices);
  for (const char* wrong :
       {"RankOrder=3", "RankOrder=-1", "RankHeight=3", "RankHeight=", "Curves=1024", "Curves=2x"})
    take_line(read, wrong);
  EXPECT_EQ(read, choices);
  choices.order = RankOrder::own;
  for (const std::string& line : lines_of(choices)) take_line(read, line);
  EXPECT_EQ(read.order, RankOrder::number) << "an own order is that of one run";
}

TEST(ViewOptions, AreKeptAsLinesAndWrongOnesChangeNothing) {
  ViewOptions options;
  EXPECT_EQ(hidden_text(options), "");
  options.set(ItemClass::waits, false);
  options.set(ItemClass::gpu, false);
  options.lane_height = 24;
  options.curve_height = 80;
  options.step_target_ns = 61'500'000;
  options.followed_steps = 12;
  options.memory_linked = false;
  options.steps_linked = true;
  EXPECT_EQ(hidden_text(options), "hidden: waits, GPU lanes");
  ViewOptions read;
  for (const std::string& line : lines_of(options)) take_line(read, line);
  EXPECT_EQ(read, options);
  for (const char* wrong :
       {"Hidden=-1", "Hidden=4096", "Hidden=", "Hidden=3x", "LaneHeight=4", "LaneHeight=99", "CurveHeight=23",
        "CurveHeight=121", "StepTarget=-5", "StepTarget=9223372036854775807", "StepTarget=6s",
        "FollowedSteps=1001", "FollowedSteps=-1", "LinkedAxes=4", "LinkedAxes=x"})
    take_line(read, wrong);
  EXPECT_EQ(read, options);
  read.set(ItemClass::waits, true);
  EXPECT_EQ(hidden_text(read), "hidden: GPU lanes");
  EXPECT_TRUE(hides(options, ev::EventKind::fetch_wait_begin));
  EXPECT_TRUE(hides(options, ev::EventKind::gpu_begin));
  EXPECT_FALSE(hides(options, ev::EventKind::module_begin));
}

TEST_F(Model, HiddenLanesTakeNoRoom) {
  TimelineOptions options;
  options.expanded = {0};
  const auto has = [&](RowKind kind) {
    const TimelineRows rows = layout_rows(data(), options);
    return std::ranges::any_of(rows.rows, [&](const TimelineRow& row) { return row.kind == kind; });
  };
  const float before = layout_rows(data(), options).height;
  ASSERT_TRUE(has(RowKind::gather));
  ASSERT_TRUE(has(RowKind::waits));
  ASSERT_TRUE(has(RowKind::host));
  options.view.set(ItemClass::gathers, false);
  options.view.set(ItemClass::waits, false);
  EXPECT_FALSE(has(RowKind::gather));
  EXPECT_TRUE(has(RowKind::reduce));
  options.view.set(ItemClass::reductions, false);
  EXPECT_FALSE(has(RowKind::reduce));
  options.view.set(ItemClass::steps, false);
  EXPECT_FALSE(has(RowKind::host));
  EXPECT_FALSE(has(RowKind::waits));
  EXPECT_TRUE(has(RowKind::compute));
  EXPECT_LT(layout_rows(data(), options).height, before);
  options.view = {};
  options.counters = {RowCounter::loss};
  const float with_curve = layout_rows(data(), options).height;
  options.view.set(ItemClass::curves, false);
  EXPECT_FALSE(has(RowKind::counter));
  options.view.set(ItemClass::curves, true);
  options.view.curve_height += 50;
  EXPECT_EQ(layout_rows(data(), options).height, with_curve + 50) << "one curve, of all ranks";
  options.counters = {};
  options.view.lane_height = 30;
  EXPECT_GT(layout_rows(data(), options).height, before);
}

TEST_F(Model, DeeperLevelsOfALaneAreHiddenOnItsRankOnlyAndCounted) {
  TimelineOptions options;
  options.automatic = false;
  options.expanded = {0, 1};
  const auto rows_of = [&](std::uint32_t rank, RowKind kind) {
    std::vector<TimelineRow> out;
    for (const TimelineRow& row : layout_rows(data(), options).rows)
      if (row.rank == rank && row.kind == kind) out.push_back(row);
    return out;
  };
  const store::LaneId lane{0, ev::StreamId::compute};
  const std::size_t all = rows_of(0, RowKind::compute).size();
  ASSERT_GE(all, 3U);
  EXPECT_EQ(rows_of(0, RowKind::compute)[0].cropped, 0);
  crop(options.crops, data(), lane, 2);
  EXPECT_EQ(rows_of(0, RowKind::compute).size(), 2U);
  EXPECT_EQ(rows_of(0, RowKind::compute)[0].cropped, all - 2);
  EXPECT_EQ(rows_of(1, RowKind::compute).size(), all) << "another rank";
  EXPECT_EQ(cropped_text(options.crops), "deeper levels of a lane");
  crop_everywhere(options.crops, data(), ev::StreamId::compute, 1);
  EXPECT_EQ(rows_of(1, RowKind::compute).size(), 1U);
  EXPECT_EQ(crops_from(crops_line(options.crops)), options.crops);
  EXPECT_TRUE(crops_from("0:1,1:1:0,x:1:1,1:1:2:3,,").empty()) << "invalid entries";
  // No more levels than the lane has: nothing is hidden.
  crop(options.crops, data(), lane, static_cast<std::uint8_t>(all));
  crop(options.crops, data(), {1, ev::StreamId::compute}, 0);
  EXPECT_FALSE(options.crops.levels().contains(lane));
  EXPECT_FALSE(options.crops.levels().contains({1, ev::StreamId::compute}));
}

}  // namespace
}  // namespace shardscope::gui
