// Curves and bands of statuses: what they say of a rank's events, that no peak is lost between two columns,
// and which rows of the timeline show them.
#include "app/gui/model/rank_tracks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/model/row_curves.h"
#include "app/gui/model/step_series.h"
#include "instrumentation/event_fields.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/scheduler.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

using namespace test;
using plan::ParamStatus;

void status(RunBuilder& run, std::uint32_t rank, std::int64_t at, ParamStatus to, ev::StatusCause cause) {
  run.instant(rank, at, EventKind::param_status, StreamId::compute, 0, 1, 5,
              ev::status_code(static_cast<std::uint8_t>(to), cause), 1000);
}

/// Parameter 0 (1000 elements) is on its way from 100 us, here from 200, and gone from 500; rank 1 does
/// the same 50 us later. A gather of 4000 bytes is open while it is in flight.
RunBuilder fetched_once() {
  RunBuilder run(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::int64_t late = 50'000 * rank;
    run.span(rank, 0, 900'000, EventKind::step_begin, StreamId::host, 0);
    status(run, rank, 100'000 + late, ParamStatus::in_flight, ev::StatusCause::prefetch);
    run.span(rank, 100'000 + late, 200'000 + late, EventKind::collective_begin, StreamId::gather, 5, 0,
             kGatherOp, 1000, 4000);
    status(run, rank, 200'000 + late, ParamStatus::available, ev::StatusCause::fetch);
    status(run, rank, 500'000 + late, ParamStatus::not_available, ev::StatusCause::release);
  }
  return run;
}

constexpr TimeRange kWhole{0, 900'000};

/// Of a column that is one nanosecond.
std::optional<double> value_at(const StepSeries& series, std::int64_t at_ns) {
  const ColumnRange column = series.columns({at_ns, at_ns + 1}, 1).front();
  return column.any ? std::optional(column.high) : std::nullopt;
}

TEST(StepSeries, NoPeakBetweenTwoColumnsIsLost) {
  StepSeries series;
  for (int i = 0; i < 1000; ++i) series.add(i * 10, i == 637 ? 99 : i % 2);
  const std::vector<ColumnRange> columns = series.columns({0, 10'000}, 10);
  ASSERT_EQ(columns.size(), 10U);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    EXPECT_TRUE(columns[i].any);
    EXPECT_EQ(columns[i].low, 0);
    EXPECT_EQ(columns[i].high, i == 6 ? 99 : 1) << i;
  }
  // Between two changes the value holds; before the first there is none.
  StepSeries later;
  later.add(500, 3);
  const auto held = later.columns({0, 1000}, 4);
  EXPECT_FALSE(held[0].any);
  EXPECT_FALSE(held[1].any);
  EXPECT_EQ(held[2].low, 3);
  EXPECT_EQ(held[3].high, 3);
  EXPECT_EQ(value_at(later, 499), std::nullopt);
  EXPECT_EQ(value_at(later, 500), 3);
}

TEST(RankTracks, LiveElementsBytesInFlightAndStatusesAreThoseOfTheEvents) {
  RunBuilder run = fetched_once();
  const store::Store& store = run.build();
  RankTracks tracks;
  tracks.begin_frame(std::nullopt);
  const RankTrack& one = tracks.of(store, 1, kWhole, {true, true, {0}});
  ASSERT_EQ(one.state, RankTrack::State::read);
  EXPECT_EQ(value_at(one.live, 149'999), 0);
  EXPECT_EQ(value_at(one.live, 150'000), 1000);  // in flight counts
  EXPECT_EQ(value_at(one.live, 300'000), 1000);
  EXPECT_EQ(value_at(one.live, 550'000), 0);
  EXPECT_EQ(value_at(one.in_flight, 200'000), 4000);
  EXPECT_EQ(value_at(one.in_flight, 250'000), 0);
  const std::vector<StatusPiece>& pieces = one.status.at(0);
  ASSERT_EQ(pieces.size(), 4U);  // what held when the range began, and three changes
  const StatusPiece* const here = piece_at(pieces, 200'000);
  ASSERT_NE(here, nullptr);
  EXPECT_EQ(ev::status_of(here->state.status), static_cast<std::uint8_t>(ParamStatus::in_flight));
  EXPECT_EQ(here->state.cause, ev::StatusCause::prefetch);
  EXPECT_EQ(piece_at(pieces, 560'000)->state.cause, ev::StatusCause::release);
  EXPECT_FALSE(tracks.behind());
}

TEST(RankTracks, ARangeInTheMiddleBeginsWithWhatHoldsThere) {
  RunBuilder run = fetched_once();
  const store::Store& store = run.build();
  RankTracks tracks;
  tracks.begin_frame(std::nullopt);
  const RankTrack& track = tracks.of(store, 0, {150'000, 160'000}, {true, true, {0}});
  EXPECT_EQ(value_at(track.live, 150'000), 1000);
  EXPECT_EQ(value_at(track.in_flight, 155'000), 4000);
  EXPECT_EQ(ev::status_of(track.status.at(0).front().state.status),
            static_cast<std::uint8_t>(ParamStatus::in_flight));
}

/// Frames without any time read one rank each, and every rank comes to its turn.
TEST(RankTracks, ThatAFrameHasNoTimeForAreReadInTheNext) {
  RunBuilder run = fetched_once();
  const store::Store& store = run.build();
  RankTracks tracks;
  const RankTracks::Wanted wanted{true, false, {}};
  const auto read = [&](std::uint32_t rank) {
    return tracks.of(store, rank, kWhole, wanted).state == RankTrack::State::read;
  };
  tracks.begin_frame(std::chrono::nanoseconds(0));
  EXPECT_TRUE(read(0));
  EXPECT_FALSE(read(1));
  EXPECT_TRUE(tracks.behind());
  tracks.begin_frame(std::chrono::nanoseconds(0));
  EXPECT_TRUE(read(0));
  EXPECT_TRUE(read(1));
  EXPECT_FALSE(tracks.behind());
}

struct Window {
  AppState app;
  Window() {
    app.run = std::make_unique<Session>(std::move(fetched_once().build()));
    EXPECT_TRUE(app.run->settle());
    app.run->tracks().begin_frame(std::nullopt);
  }
};

TEST(RowCurves, EndWithTheRanksLastEventAndSayWhatTheyShow) {
  Window window;
  window.app.timeline.counters = {RowCounter::live_elements};
  const TimeRange beyond{0, 1'800'000};
  const RowCurve curve = row_curve(window.app, RowCounter::live_elements, 0, beyond, 18);
  EXPECT_EQ(curve.highest(), 1000);
  EXPECT_TRUE(curve.columns[8].any);
  EXPECT_FALSE(curve.columns[12].any);  // 1.2 ms: nothing is known
  const std::string tip = tip_of(window.app, RowCounter::live_elements, 0, curve, beyond, 300'000);
  EXPECT_NE(tip.find("live elements of rank 0: 1.00k"), std::string::npos) << tip;
}

TEST(RowCurves, OfAllRanksAreOneValueAStep) {
  Window window;
  const RowCurve curve = row_curve(window.app, RowCounter::step_time, ev::kNoId, kWhole, 9);
  for (const ColumnRange& column : curve.columns) EXPECT_EQ(column.high, 900'000);
}

TEST_F(Model, CurvesOfStepsAreThoseOfTheStore) {
  const TimeRange range{0, data().end_ns()};
  constexpr std::size_t kColumns = 200;
  const std::vector<std::pair<RowCounter, std::function<double(const store::StepRow&)>>> all{
      {RowCounter::loss, [](const store::StepRow& step) { return step.loss; }},
      {RowCounter::gradient_norm, [](const store::StepRow& step) { return step.grad_norm; }},
      {RowCounter::learning_rate, [](const store::StepRow& step) { return step.learning_rate; }},
      {RowCounter::throughput, [](const store::StepRow& step) {
         return static_cast<double>(step.tokens) * 1e9 /
                static_cast<double>(step.end_ns - step.begin_ns - step.paused_ns);
       }}};
  std::size_t known = 0;
  for (const auto& [counter, value] : all) {
    const RowCurve curve = row_curve(app_, counter, ev::kNoId, range, kColumns);
    ASSERT_EQ(curve.columns.size(), kColumns) << word(counter);
    for (const store::StepRow& step : data().steps()) {
      const std::int64_t middle = step.begin_ns + (step.end_ns - step.begin_ns) / 2;
      const auto column = static_cast<std::size_t>(
          static_cast<double>(middle) / static_cast<double>(range.end_ns) * static_cast<double>(kColumns));
      const double expected = value(step);
      EXPECT_EQ(curve.columns[column].any, std::isfinite(expected) && expected != 0) << word(counter);
      if (!curve.columns[column].any) continue;
      EXPECT_DOUBLE_EQ(curve.columns[column].high, expected) << word(counter) << " of step " << step.step;
      ++known;
    }
  }
  EXPECT_GT(known, 3U);
  EXPECT_NE(row_curve(app_, RowCounter::outside, 0, range, kColumns).instead, "") << "a CPU has no driver";
}

TEST(RowCurves, ATipOfABandSaysStatusCauseAndHowLong) {
  Window window;
  window.app.timeline.params = {0};
  const auto& track =
      window.app.run->tracks().of(window.app.store(), 1, kWhole, wanted_of(window.app.timeline));
  const std::string tip = status_tip(window.app, 0, 1, track.status.at(0), 160'000);
  EXPECT_NE(tip.find("layer.weight on rank 1: in flight for 100"), std::string::npos) << tip;
  EXPECT_NE(tip.find("Cause: prefetched, at layer, gather 5"), std::string::npos) << tip;
  EXPECT_NE(tip.find("Then available"), std::string::npos) << tip;
}

TEST(TimelineRows, CurvesStandUnderEachRankAndThoseOfAllRanksAndBandsAtTheTop) {
  RunBuilder run = fetched_once();
  const store::Store& store = run.build();
  TimelineOptions options;
  toggle(options, RowCounter::live_elements);
  toggle(options, RowCounter::loss);
  follow_param(options, 0);
  follow_param(options, 0);
  const TimelineRows rows = layout_rows(store, options);
  std::vector<RowKind> kinds;
  for (const TimelineRow& row : rows.rows) kinds.push_back(row.kind);
  EXPECT_EQ(kinds, (std::vector{RowKind::counter, RowKind::param, RowKind::status, RowKind::status,
                                RowKind::rank, RowKind::counter, RowKind::rank, RowKind::counter}));
  EXPECT_EQ(rows.rows[3].rank, 1U);
  EXPECT_EQ(rows.rows[0].rank, ev::kNoId);
  EXPECT_EQ(rows.rows[7].counter, RowCounter::live_elements);
  unfollow_param(options, 0);
  toggle(options, RowCounter::loss);
  toggle(options, RowCounter::live_elements);
  EXPECT_EQ(layout_rows(store, options).rows.size(), 2U);
}

}  // namespace
}  // namespace shardscope::gui
