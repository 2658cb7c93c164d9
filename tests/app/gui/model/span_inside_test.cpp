// The contents of a span, and the figures of a sample of times.
#include "app/gui/model/span_inside.h"

#include <gtest/gtest.h>

#include <cmath>

#include "app/export/notes.h"
#include "app/gui/model/details.h"
#include "app/gui/model/find_spans.h"
#include "app/gui/model/span_statistics.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/gui/model_fixture.h"
#include "tests/app/store/own_spans.h"
#include "tests/instrumentation/packed_codes.h"

namespace shardscope::gui {
namespace {

/// A forward phase of 100 ns with three passes of a module in it and a wait of 5 inside the second.
store::Store nested() {
  test::RunBuilder run(1);
  run.span(0, 0, 200, ev::EventKind::step_begin, ev::StreamId::host, 0);
  run.span(0, 0, 100, ev::EventKind::phase_begin, ev::StreamId::compute, 0);
  run.span(0, 10, 20, ev::EventKind::module_begin, ev::StreamId::compute, 1);
  run.span(0, 30, 50, ev::EventKind::module_begin, ev::StreamId::compute, 1);
  run.span(0, 35, 40, ev::EventKind::fetch_wait_begin, ev::StreamId::compute, 1, 7);
  run.span(0, 60, 67, ev::EventKind::module_begin, ev::StreamId::compute, 1, ev::kNoId, 1);
  run.instant(0, 5, ev::EventKind::memory_alloc, ev::StreamId::host, ev::kNoId, ev::kNoId, ev::kNoId,
              test::memory_code(ev::MemoryPool::device, ev::MemoryCategory::activation), 500, 0);
  store::Store store = std::move(run.build());
  store.add_message({45, 0, ev::Severity::info, "in it"});
  store.add_message({150, 0, ev::Severity::info, "after it"});
  return store;
}

store::Span span_of(const store::Store& store, std::uint8_t depth, std::int64_t at) {
  return store.spans({0, ev::StreamId::compute}, depth, at, at + 1).at(0);
}

TEST(SpanInside, ChildrenByNameTheirTimeMessagesAndMemory) {
  const store::Store store = nested();
  const SpanInside inside = inside_of(store, {0, ev::StreamId::compute}, span_of(store, 0, 50));
  ASSERT_EQ(inside.children.size(), 2U) << "forward and backward of the module; the wait is deeper";
  EXPECT_EQ(inside.children[0].count, 2U);
  EXPECT_EQ(inside.children[0].time_ns, 30);
  EXPECT_EQ(inside.children[0].first_ns, 10);
  EXPECT_EQ(inside.children[1].time_ns, 7);
  ASSERT_EQ(inside.messages.size(), 1U);
  EXPECT_EQ(store.messages()[inside.messages[0]].text, "in it");
  EXPECT_EQ(inside.memory_bytes, 500);
  EXPECT_FALSE(inside.too_many);
}

TEST(SpanInside, TheInspectorListsIt) {
  AppState app;
  app.run = std::make_unique<Session>(nested());
  app.run->settle();
  app.select_span({0, ev::StreamId::compute}, span_of(app.store(), 0, 50));
  const Details details = describe_selection(app);
  ASSERT_EQ(details.inside.size(), 3U);
  EXPECT_EQ(details.inside[0].value, "2 x, 30 ns");
  EXPECT_EQ(details.inside[2].text, "in it");
}

/// Highlighted are those that Find would find by the name.
TEST_F(Model, AlikeAreThoseOfTheSameName) {
  std::vector<store::Span> all;
  const store::LaneId lane{0, ev::StreamId::compute};
  const store::StepRow& step = data().steps().front();
  for (std::uint8_t depth = 0; depth < data().depth_count(lane); ++depth) {
    for (const store::Span& span : data().spans(lane, depth, step.begin_ns, step.end_ns)) all.push_back(span);
  }
  ASSERT_GT(all.size(), 50U);
  for (std::size_t i = 0; i < all.size(); i += 7) {
    for (std::size_t k = 0; k < all.size(); k += 3) {
      if (all[i].kind != ev::EventKind::module_begin && all[i].kind != ev::EventKind::phase_begin) continue;
      EXPECT_EQ(alike(all[i], all[k]), shared_name(data(), 0, all[i]) == shared_name(data(), 0, all[k]))
          << shared_name(data(), 0, all[i]) << " and " << shared_name(data(), 0, all[k]);
    }
  }
}

TEST(SpanInside, SpansOfTheProgramsOwnAreAlikeByName) {
  const store::Store store = store::own_spans();
  const store::Span load = span_of(store, 0, 5), save = span_of(store, 0, 12);
  EXPECT_FALSE(alike(load, save));
  EXPECT_TRUE(alike(load, load));
}

TEST(TimeSample, SigmaAndTheModeOfItsHistogram) {
  TimeSample times;
  for (const std::int64_t ns : {2, 4, 4, 4, 5, 5, 7, 9}) times.add(ns);
  times.settle();
  EXPECT_DOUBLE_EQ(times.sigma(), 2);
  EXPECT_EQ(TimeSample().sigma(), 0);
  TimeSample many;
  for (int i = 0; i < 100'000; ++i) many.add(1'000'000'000'000 + i % 2);
  EXPECT_NEAR(many.sigma(), 0.5, 1e-3) << "small next to large values";
  const TimeHistogram bars = histogram(times, 8, HistogramScale::linear);
  EXPECT_FALSE(bars.logarithmic);
  EXPECT_NEAR(mode_of(bars), 4.5, 0.01);
  EXPECT_TRUE(histogram(times, 8, HistogramScale::logarithmic).logarithmic);
  EXPECT_FALSE(histogram(times, 8).logarithmic) << "they do not differ much";
}

}  // namespace
}  // namespace shardscope::gui
