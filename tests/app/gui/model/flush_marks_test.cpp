// Marks of flushes on the timeline: which flushes one stands for, and what it says.
#include "app/gui/model/flush_marks.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "instrumentation/event_fields.h"
#include "runtime/plan/bucket.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::gui {
namespace {

using namespace test;
using plan::FlushReason;

void flush(RunBuilder& run, std::int64_t opened, std::int64_t at, std::uint32_t bucket, FlushReason reason) {
  run.instant(0, opened, EventKind::bucket_open, StreamId::host, bucket, ev::kNoId, 1);
  run.instant(0, at, EventKind::bucket_flush, StreamId::host, bucket,
              reason == FlushReason::full ? 0U : ev::kNoId, 2, static_cast<std::uint8_t>(reason), 640);
}

std::unique_ptr<Session> three_flushes() {
  RunBuilder run(1);
  run.span(0, 0, 100'000, EventKind::step_begin, StreamId::host, 0);
  flush(run, 10'000, 40'000, 7, FlushReason::full);
  flush(run, 41'000, 42'000, 8, FlushReason::full);
  flush(run, 43'000, 90'000, 9, FlushReason::epilogue);
  auto session = std::make_unique<Session>(std::move(run.build()));
  EXPECT_TRUE(session->settle());
  return session;
}

TEST(FlushMarks, TheIndexHasEachFlushWithItsOpening) {
  const auto run = three_flushes();
  const auto flushes = run->index().flushes(0);
  ASSERT_EQ(flushes.size(), 3U);
  EXPECT_EQ(flushes[0].bucket, 7U);
  EXPECT_EQ(flushes[0].opened_ns, 10'000);
  EXPECT_EQ(flushes[2].at_ns, 90'000);
  EXPECT_EQ(flushes[2].opened_ns, 43'000);
  EXPECT_EQ(flushes[2].buffer, 1U);
  EXPECT_TRUE(run->index().flushes(1).empty());
}

TEST(FlushMarks, FlushesCloserThanMarksAreOneMarkThatCountsThem) {
  const auto run = three_flushes();
  const TimeScale wide{{0, 100'000}, 0, 1000};  // 100 ns a point: all apart
  const auto apart = flush_marks(run->index().flushes(0), wide, 10);
  ASSERT_EQ(apart.size(), 3U);
  EXPECT_FLOAT_EQ(apart[0].x, 400);
  EXPECT_EQ(apart[0].shape, FlushShape::full);
  EXPECT_EQ(apart[2].shape, FlushShape::rest);
  const TimeScale narrow{{0, 100'000}, 0, 100};
  const auto joined = flush_marks(run->index().flushes(0), narrow, 10);
  ASSERT_EQ(joined.size(), 2U);
  EXPECT_EQ(joined[0].flushes.size(), 2U);
  const std::string text = text_of(*run, joined[0]);
  EXPECT_NE(text.find("2 flushes here"), std::string::npos) << text;
  EXPECT_NE(text.find("2: the next gradient did not fit"), std::string::npos) << text;
  EXPECT_EQ(text.find("backward had ended"), std::string::npos) << text;
}

TEST(FlushMarks, AreOfTheShownRangeAndSayWhy) {
  const auto run = three_flushes();
  const TimeScale late{{50'000, 100'000}, 0, 500};
  const auto marks = flush_marks(run->index().flushes(0), late, 10);
  ASSERT_EQ(marks.size(), 1U);
  const std::string text = text_of(*run, marks[0]);
  EXPECT_NE(text.find("Bucket 9 was flushed"), std::string::npos) << text;
  EXPECT_NE(text.find("backward has ended"), std::string::npos) << text;
  EXPECT_NE(text.find("2 gradients"), std::string::npos) << text;
  const TimeScale early{{0, 40'001}, 0, 500};
  const std::string full = text_of(*run, flush_marks(run->index().flushes(0), early, 10).at(0));
  EXPECT_NE(full.find("layer.weight"), std::string::npos) << full;
}

}  // namespace
}  // namespace shardscope::gui
