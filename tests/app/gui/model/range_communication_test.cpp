// Figures of a range: communication, flushes, what an export has of it; how much a followed range shows.
#include "app/gui/model/range_communication.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "app/gui/model/communication_tables.h"
#include "app/gui/model/export_parts.h"
#include "app/gui/model/flush_marks.h"
#include "app/gui/model/names.h"
#include "app/gui/model/panel_range.h"
#include "runtime/plan/bucket.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

/// Three steps of 1000 ns on two ranks: 500 ns of a module, in it a wait of 100 (rank 1: 150); a gather of
/// 4000 bytes for 200 ns, half of it behind the module.
store::Store three_steps() {
  test::RunBuilder run(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    for (std::uint32_t step = 0; step < 3; ++step) {
      const std::int64_t at = step * 1000;
      run.span(rank, at, at + 1000, ev::EventKind::step_begin, ev::StreamId::host, step);
      run.span(rank, at + 100, at + 600, ev::EventKind::module_begin, ev::StreamId::compute, 1);
      run.span(rank, at + 300, at + 400 + 50 * rank, ev::EventKind::fetch_wait_begin, ev::StreamId::compute,
               1, step);
      run.span(rank, at + 500, at + 700, ev::EventKind::collective_begin, ev::StreamId::gather, step, step,
               test::kGatherOp, 1000, 4000);
    }
  }
  return std::move(run.build());
}

class RangeFiguresOfRun : public ::testing::Test {
 protected:
  RangeFiguresOfRun() {
    app_.run = std::make_unique<Session>(three_steps());
    app_.run->settle();
  }
  const RangeCommunication::Figures& of(std::int64_t begin, std::int64_t end) {
    while (range_.advance(app_, {begin, end}, std::chrono::hours(1))) {
    }
    return *range_.figures();
  }
  AppState app_;
  RangeCommunication range_;
};

TEST_F(RangeFiguresOfRun, CollectivesAreCountedWhereTheyBegin) {
  const auto count_of = [&](std::int64_t begin, std::int64_t end) {
    const auto& ops = of(begin, end).summary.ops;
    return ops.empty() ? 0U : static_cast<unsigned>(ops.front().count);
  };
  EXPECT_EQ(count_of(0, 3000), 3U);
  EXPECT_EQ(count_of(400, 1600), 2U);
  EXPECT_EQ(count_of(600, 1400), 0U) << "the first has begun before, the second begins after";
  EXPECT_EQ(of(0, 2000).summary.ops.front().bytes, 8000);
  EXPECT_EQ(of(0, 2000).summary.ops.front().op, ev::CollectiveOp::all_gather);
}

TEST_F(RangeFiguresOfRun, TimesAreCutAtTheEnds) {
  const auto& cut = of(350, 1000);
  ASSERT_EQ(cut.summary.ranks.size(), 2U);
  EXPECT_EQ(cut.summary.ranks[0].time.compute_ns, 200);
  EXPECT_EQ(cut.summary.ranks[1].time.compute_ns, 150);
  EXPECT_EQ(cut.summary.ranks[0].time.comm_ns, 200);
  EXPECT_EQ(cut.summary.ranks[0].time.exposed_comm_ns, 100);
  EXPECT_EQ(cut.summary.ranks[0].fetch_wait_ns, 50);
  EXPECT_EQ(cut.summary.ranks[1].fetch_wait_ns, 100);
  EXPECT_TRUE(cut.longest_waits.empty()) << "the wait began before the range";
}

TEST_F(RangeFiguresOfRun, OfAllStepsTheyAreThoseOfTheRun) {
  const auto& all = of(0, 3000);
  EXPECT_EQ(all.summary.ranks[0].time.compute_ns, 3 * 400);
  EXPECT_EQ(all.summary.ranks[0].time.exposed_comm_ns, 3 * 100);
  ASSERT_EQ(all.longest_waits.size(), 6U);
  EXPECT_EQ(all.longest_waits.front().rank, 1U);
  EXPECT_EQ(all.longest_waits.front().running_ns, 150);
}

TEST_F(RangeFiguresOfRun, AreReadPieceByPieceAndShownWhenComplete) {
  int calls = 1;
  while (range_.advance(app_, {0, 3000}, std::chrono::nanoseconds(0))) {
    EXPECT_EQ(range_.figures(), nullptr);
    EXPECT_LT(range_.progress(), 1);
    ++calls;
  }
  EXPECT_GE(calls, 6) << "three steps of two ranks";
  ASSERT_NE(range_.figures(), nullptr);
  EXPECT_EQ(range_.progress(), 1);
  const std::uint64_t version = range_.version();
  EXPECT_FALSE(range_.advance(app_, {0, 3000}, std::chrono::hours(1)));
  EXPECT_EQ(range_.version(), version) << "the same range is not read again";
  (void)of(0, 1000);
  EXPECT_NE(range_.version(), version);
}

TEST_F(RangeFiguresOfRun, TablesOfARangeHaveItsFigures) {
  const std::vector<LabelledRun> runs{{app_.run.get(), "", &of(0, 1000)}};
  const Table ops = operation_table(runs);
  ASSERT_EQ(ops.rows.size(), 1U);
  EXPECT_EQ(ops.rows[0][1].text, "1");
  EXPECT_EQ(overlap_table(runs).rows.size(), 2U);
  EXPECT_EQ(wait_table(runs).places.size(), 2U);
}

TEST_F(Model, PanelsAreOfTheMeasuredRangeElseOfTheOneShown) {
  app_.time.set({1000, 3000}, data().end_ns());
  EXPECT_EQ(panel_range(app_).range, (TimeRange{1000, 3000}));
  EXPECT_EQ(text_of(panel_range(app_)), "range shown, 2.00 \u00b5s");
  app_.measured = TimeRange{1000, 1500};
  EXPECT_EQ(panel_range(app_).range, (TimeRange{1000, 1500}));
  EXPECT_EQ(text_of(panel_range(app_)), "measured range, 500 ns");
}

TEST_F(Model, AnExportHasTheRunOrARange) {
  const store::StepRow& second = data().steps()[1];
  app_.time.set({second.begin_ns, second.end_ns}, data().end_ns());
  EXPECT_TRUE(export_parts(app_, ExportFormat::report).empty());
  auto parts = export_parts(app_, ExportFormat::chrome);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_FALSE(parts[0].range_ns) << "the whole run";
  EXPECT_EQ(parts[1].range_ns, std::pair(second.begin_ns, second.end_ns));
  // Ranks are not in step: near its ends the steps beside it go on.
  const std::int64_t middle = (second.begin_ns + second.end_ns) / 2;
  app_.measured = TimeRange{middle, middle + 20};
  parts = export_parts(app_, ExportFormat::perfetto);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[2].range_ns, std::pair(middle, middle + 20));
  parts = export_parts(app_, ExportFormat::kineto);
  EXPECT_EQ(parts[2].steps, std::pair(second.step, second.step));
  app_.measured = TimeRange{-20, -10};
  EXPECT_FALSE(export_parts(app_, ExportFormat::kineto)[2].possible) << "no step there";
}

TEST(Flushes, OfARangeAreSummedWithTheirReasons) {
  std::vector<BucketFlush> flushes(3);
  for (BucketFlush& flush : flushes) {
    flush.at_ns = 5000;
    flush.opened_ns = 3000;
    flush.elems = 500;
    flush.reason = plan::FlushReason::full;
  }
  flushes[2].opened_ns = 0;  // not known
  flushes[2].reason = plan::FlushReason::epilogue;
  const store::Vocabulary zero;
  EXPECT_EQ(
      figures_text(zero, flushes, 1000),
      "3 flushes, 1.50k elements; on average 50 % full, filled for 2.00 \u00b5s. 2: the next gradient did "
      "not fit; 1: backward had ended");
  EXPECT_EQ(figures_text(zero, {}, 1000), "0 flushes");
  store::Vocabulary fsdp;
  fsdp.bucket = "reduction";
  fsdp.has_buckets = false;
  EXPECT_EQ(figures_text(fsdp, {}, {}), "0 reductions");
}

TEST(FollowedRange, HasTheWantedTimeBeforeTheEdge) {
  TimeAxis axis;
  axis.follow(100'000, 19'000);
  EXPECT_EQ(axis.range(), (TimeRange{81'000, 101'000}));
  axis.follow(200'000);
  EXPECT_EQ(axis.range(), (TimeRange{181'000, 201'000})) << "the length stays";
}

TEST_F(Model, ZoomingWhileFollowingHoldsUntilFollowingIsResumed) {
  app_.follow_newest(5);
  EXPECT_TRUE(app_.follow);
  EXPECT_EQ(app_.timeline.view.followed_steps, 5U);
  app_.zoom(0.5, data().end_ns() / 2);
  EXPECT_TRUE(app_.own_length);
  app_.toggle_follow();
  app_.toggle_follow();
  EXPECT_FALSE(app_.own_length);
  app_.toggle_follow();
  app_.zoom(0.5, data().end_ns() / 2);
  EXPECT_FALSE(app_.own_length) << "it does not follow";
}

}  // namespace
}  // namespace shardscope::gui
