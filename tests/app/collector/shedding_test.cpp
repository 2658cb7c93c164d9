// A recorder that is slower than its input: what the collector sheds, in which order, and that every event
// is accounted for.
#include "instrumentation/shedding.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include "app/collector/rank_session.h"
#include "app/store/gap_text.h"
#include "app/store/recording.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {
namespace {

constexpr std::int64_t kStep = 10'000'000, kEvery = 1000;  // ns
constexpr std::int64_t kWatermark = 123'456'789;

constexpr std::size_t kStepEvents = 1032;

/// A step of so many events: mostly of parameters, some of modules and memory, two of the step itself.
std::vector<Event> busy_step(std::uint32_t step, std::int64_t begin_ns) {
  std::vector<Event> events;
  const auto add = [&](Event event) -> Event& {
    event.ticks = static_cast<std::uint64_t>(begin_ns + kEvery * static_cast<std::int64_t>(events.size()));
    events.push_back(event);
    return events.back();
  };
  add(event_of(EventKind::step_begin, 0, StreamId::host, step));
  while (events.size() < kStepEvents - 1) {
    const auto n = static_cast<std::uint32_t>(events.size());
    add(event_of(EventKind::module_begin, 0, StreamId::compute, 1));
    for (int i = 0; i < 6; ++i) add(event_of(EventKind::release_kept, 0, StreamId::host, 1, 0));
    Event& alloc = add(event_of(EventKind::memory_alloc, 0, StreamId::host, 1));
    alloc.v0 = alloc.v1 = step == 7 && n > 500 && n < 511 ? kWatermark : 4096;
    Event& free = add(event_of(EventKind::memory_free, 0, StreamId::host, 1));
    free.v0 = alloc.v0;
    add(event_of(EventKind::module_end, 0, StreamId::compute, 1));
  }
  add(event_of(EventKind::step_end, 0, StreamId::host, step));
  return events;
}

TEST(Shedding, TakesOneClassAndKeepsTheWatermarks) {
  std::vector<Event> events = busy_step(7, 0);
  std::int64_t first = INT64_MAX, last = INT64_MIN;
  const std::size_t before = events.size();
  const std::uint32_t params = shed(events, ShedClass::params, first, last);
  EXPECT_GT(params, 600U);
  EXPECT_EQ(events.size(), before - params);
  EXPECT_EQ(first, 2 * kEvery) << "the first event of that class";
  EXPECT_GT(last, 1000 * kEvery);
  (void)shed(events, ShedClass::memory, first, last);
  std::int64_t most = 0;
  std::size_t memory = 0;
  for (const Event& event : events) {
    if (shed_class(event.kind) != ShedClass::memory) continue;
    ++memory;
    most = std::max(most, event.v1);
  }
  EXPECT_EQ(most, kWatermark);
  EXPECT_LE(memory, 2U);
  EXPECT_EQ(shed_class(EventKind::overflow), ShedClass::steps);
  EXPECT_EQ(shed_class(EventKind::kernel_begin), ShedClass::kernels);
}

TEST(Shedding, AChunkSaysHowManyAndWhere) {
  RankSession rank(3);
  wire::Batch batch;
  batch.events = busy_step(0, kStep);
  rank.add(std::move(batch), 0);
  const std::uint32_t gone = rank.shed(ShedClass::modules);
  ASSERT_GT(gone, 0U);
  const store::Chunk chunk = rank.take_chunk();
  EXPECT_EQ(chunk.shed_before, gone);
  EXPECT_EQ(chunk.dropped_before, gone);
  EXPECT_EQ(chunk.events.size(), kStepEvents - gone);
  EXPECT_EQ(chunk.missing_begin_ns, kStep + kEvery);
  EXPECT_LT(chunk.missing_end_ns, kStep + static_cast<std::int64_t>(kStepEvents) * kEvery);
  EXPECT_EQ(rank.take_chunk().shed_before, 0U) << "reported once";
}

TEST(Shedding, WhatARecorderThatStallsCannotTakeIsShedAndCounted) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("shedding_test-" + std::to_string(getpid()) + ".zscope"))
          .string();
  CollectorOptions options = local();
  options.record_path = path;
  options.intake_bytes = 4U << 20;  // about a hundred thousand events; four times as many will come
  Collector collector(options);
  constexpr std::uint32_t kRanks = 2, kSteps = 200;
  auto hold = std::make_unique<IntakeHold>(collector);
  std::vector<std::unique_ptr<Rank>> ranks;
  for (std::uint32_t r = 0; r < kRanks; ++r) {
    ranks.push_back(std::make_unique<Rank>(collector.publish_endpoint(), r, kRanks));
  }
  const std::int64_t origin = monotonic_now_ns();
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    for (auto& rank : ranks) {
      const std::int64_t begin = origin + kStep * step;
      rank->link->push(busy_step(step, begin), 0, begin, begin + kStep, 0);
      rank->link->pump();
    }
  }
  constexpr std::uint64_t kEach = kStepEvents * kSteps;
  ASSERT_TRUE(eventually(
      [&] {
        for (auto& rank : ranks) rank->link->pump();
        return collector.status().events == kRanks * kEach;
      },
      60s))
      << "all of it has arrived while nothing was recorded: " << collector.status().events;
  const CollectorStatus slow = collector.status();
  EXPECT_GT(slow.shed, 0U);
  hold.reset();
  for (auto& rank : ranks) {
    EXPECT_EQ(rank->link->shed(), 0U) << "the rank itself had room";
    rank->finish();
  }
  ASSERT_TRUE(eventually([&] { return collector.status().finished; }));
  collector.stop();
  EXPECT_EQ(collector.status().recording_error, "");
  EXPECT_EQ(collector.status().dropped, collector.status().shed);

  store::RecordingInfo info;
  const store::Store store = store::open_recording(path, &info);
  EXPECT_TRUE(info.complete);
  ASSERT_EQ(store.ranks().size(), kRanks);
  std::uint64_t shed = 0;
  for (const store::RankRow& row : store.ranks()) {
    EXPECT_EQ(row.events + row.dropped, kEach) << "rank " << row.rank;
    EXPECT_GT(row.dropped, 0U);
    EXPECT_EQ(row.lost_messages, 0U);
    std::uint64_t in_gaps = 0;
    for (const store::Gap& gap : store.gaps()) {
      if (gap.rank != row.rank) continue;
      in_gaps += gap.events;
      EXPECT_EQ(gap.shed, gap.events);
      EXPECT_LT(gap.begin_ns, gap.end_ns);
      EXPECT_NE(store::what_is_missing(gap).find("shed by a collector"), std::string::npos);
    }
    EXPECT_EQ(in_gaps, row.dropped) << "rank " << row.rank;
    shed += row.dropped;
    const auto peak = store.memory_peak(row.rank, MemoryPool::device);
    ASSERT_TRUE(peak.has_value());
    EXPECT_EQ(peak->total(), kWatermark) << "rank " << row.rank;
  }
  EXPECT_EQ(shed, collector.status().shed);
  ASSERT_EQ(store.steps().size(), kSteps);
  for (const store::StepRow& step : store.steps()) EXPECT_NE(step.end_ns, store::kOpen) << step.step;
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace shardscope::collector
