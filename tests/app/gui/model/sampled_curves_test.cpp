// Sampled counters on the timeline: what the window offers, their curves, tool tips and rows.
#include "app/gui/model/sampled_curves.h"

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/app/analysis/run_builder.h"

namespace shardscope::gui {
namespace {

using namespace test;

constexpr std::int64_t kSampleSecond = 1'000'000'000;

/// Ten seconds of two ranks. Rank 0: a queue of 5 from second 2, 9 from second 4, 1 from second 6; it
/// used 1.5 processors in seconds 3 and 4.
struct SampledWindow {
  AppState app;
  SampledWindow() {
    RunBuilder run(2);
    for (std::uint32_t rank = 0; rank < 2; ++rank)
      run.span(rank, 0, 10 * kSampleSecond, EventKind::step_begin, StreamId::host, 0);
    const auto queue = [&](std::int64_t at_s, double value) {
      run.instant(0, at_s * kSampleSecond, EventKind::counter, StreamId::host, 1, 2, ev::kNoId, 0,
                  std::bit_cast<std::int64_t>(value));
    };
    queue(2, 5);
    queue(4, 9);
    queue(6, 1);
    run.instant(0, 5 * kSampleSecond, EventKind::processor_wait, StreamId::host, 0, 3000, ev::kNoId, 0, 0,
                2 * kSampleSecond);
    store::Store store = std::move(run.build());
    store.add_name(0, 1, "queue");
    store.add_name(0, 2, "requests");
    app.run = std::make_unique<Session>(std::move(store));
    EXPECT_TRUE(app.run->settle());
  }
};
constexpr TimeRange kTenSeconds{0, 10 * kSampleSecond};

TEST(SampledCurves, TheLibrarysAreOfferedFirst) {
  SampledWindow window;
  const std::vector<SampledCounter> all = sampled_counters(window.app);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].name, "processors in use");
  EXPECT_EQ(all[2].name, "queue");
  EXPECT_TRUE(all[2].own);
  EXPECT_EQ(value_text(all[2], 5), "5 requests");
  EXPECT_FALSE(sampled_counter(window.app, 0, "no such"));
}

TEST(SampledCurves, AStateHoldsToTheNextAndAMeanOnlyInItsInterval) {
  SampledWindow window;
  const RowCurve queue = sampled_curve(window.app, "queue", 0, kTenSeconds, 10);
  ASSERT_EQ(queue.columns.size(), 10U);
  EXPECT_FALSE(queue.columns[1].any) << "before the first sample";
  EXPECT_EQ(queue.columns[3].high, 5);
  EXPECT_EQ(queue.columns[5].high, 9);
  EXPECT_EQ(queue.columns[8].high, 1);
  const RowCurve used = sampled_curve(window.app, "processors in use", 0, kTenSeconds, 10);
  EXPECT_FALSE(used.columns[2].any);
  EXPECT_EQ(used.columns[3].high, 1.5);
  EXPECT_EQ(used.columns[4].high, 1.5);
  EXPECT_FALSE(used.columns[6].any) << "nothing is known after its interval";
  const std::string tip =
      tip_of(*sampled_counter(window.app, 0, "queue"), 0, queue, kTenSeconds, 4 * kSampleSecond + 1000);
  EXPECT_EQ(tip.find("queue of rank 0: 9 requests"), 0U) << tip;
}

TEST(SampledCurves, ARankWithoutSamplesSaysSo) {
  SampledWindow window;
  const RowCurve none = sampled_curve(window.app, "queue", 1, kTenSeconds, 10);
  EXPECT_TRUE(none.columns.empty());
  EXPECT_EQ(none.instead, "rank 1 has no samples of it");
}

TEST(SampledCurves, AreRowsUnderTheRanksThatHaveCounters) {
  SampledWindow window;
  toggle_sampled(window.app.timeline, "queue");
  const TimelineRows rows = layout_rows(window.app.store(), window.app.timeline);
  std::vector<std::pair<std::uint32_t, std::string>> found;
  for (const TimelineRow& row : rows.rows) {
    if (row.kind == RowKind::counter) found.emplace_back(row.rank, row.label());
  }
  EXPECT_EQ(found, (std::vector<std::pair<std::uint32_t, std::string>>{{0, "queue"}}));
  toggle_sampled(window.app.timeline, "queue");
  EXPECT_TRUE(window.app.timeline.sampled.empty());
}

}  // namespace
}  // namespace shardscope::gui
