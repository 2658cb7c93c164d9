// Records of launches, owners and work, in any order, as events: every figure here is made up and exact.
#include "runtime/profile/record_join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "runtime/profile/open_spans.h"
#include "tests/instrumentation/packed_codes.h"

namespace shardscope::profile {
namespace {

using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::GpuOwner;
using instrumentation::GpuSync;
using instrumentation::GpuWork;
using instrumentation::kNoDelay;
using instrumentation::kNoId;
using instrumentation::StreamId;

constexpr std::uint32_t kCompute = 7;

GpuLanes lanes() {
  GpuLanes out;
  out.know(kCompute, StreamId::gpu_compute);
  out.know(8, StreamId::gpu_gather);
  return out;
}

WorkRecord kernel(std::uint32_t correlation, std::int64_t begin, std::int64_t end,
                  std::uint32_t stream = kCompute) {
  return {GpuWork::kernel, 1, stream, correlation, begin, end, 256, {}};
}

std::vector<TimedEvent> of_kind(const std::vector<TimedEvent>& events, EventKind kind) {
  std::vector<TimedEvent> out;
  for (const TimedEvent& event : events) {
    if (event.second.kind == kind) out.push_back(event);
  }
  return out;
}

TEST(RecordJoin, WorkGetsItsDelayOwnerStreamAndAmount) {
  RecordJoin join(lanes(), 0);
  RecordBatch batch;
  batch.launches = {{11, 1, 100, 105}};
  batch.owners = {{11, owner_id({GpuOwner::backward, 42})}};
  batch.work = {kernel(11, 130, 180)};
  join.add(batch);
  const auto events = join.take(1000, 0);
  const auto begins = of_kind(events, EventKind::gpu_begin);
  ASSERT_EQ(begins.size(), 1U);
  const auto& [at, begin] = begins[0];
  EXPECT_EQ(at, 130);
  EXPECT_EQ(begin.stream, StreamId::gpu_compute);
  EXPECT_EQ(instrumentation::work_of(begin.code), GpuWork::kernel);
  EXPECT_EQ(instrumentation::owner_of(begin.code), GpuOwner::backward);
  EXPECT_EQ(begin.a, 1U);
  EXPECT_EQ(begin.b, 42U);
  EXPECT_EQ(begin.c, kCompute);
  EXPECT_EQ(begin.v0, 30);
  EXPECT_EQ(begin.v1, 256);
  EXPECT_EQ(of_kind(events, EventKind::gpu_end).at(0).first, 180);
  const auto known = of_kind(events, EventKind::gpu_records_end);
  ASSERT_EQ(known.size(), 1U);
  EXPECT_EQ(known[0].first, 1000);
  EXPECT_EQ(known[0].second.v0, 3);
  EXPECT_EQ(known[0].second.v1, 0);
}

TEST(RecordJoin, WhatHasATimeThatCannotBeIsDroppedAndLeavesTheLanesAsTheyWere) {
  constexpr std::int64_t kBegin = 100'000'000'000;
  constexpr std::int64_t kFlushed = kBegin + 1'000;
  constexpr std::int64_t kWrong = RecordJoin::kWrongByNs;
  RecordJoin join(lanes(), kBegin);
  RecordBatch batch;
  batch.launches = {
      {11, 1, kBegin + 1, kBegin + 2}, {12, 1, kBegin + 3, kBegin + 4}, {13, 1, kBegin + 5, kBegin + 6}};
  batch.work = {kernel(11, kBegin - kWrong - 1, kBegin + 10), kernel(12, kBegin + 20, kFlushed + kWrong + 1),
                kernel(13, kBegin + 30, kBegin + 40)};
  batch.syncs = {{GpuSync::stream, kCompute, kBegin + 5, kFlushed + kWrong + 1}};
  batch.memory = {{instrumentation::MemoryPool::device, false, 64, 0xA0, kFlushed + kWrong + 1}};
  join.add(batch);
  const auto events = join.take(kFlushed, 0);
  const auto begins = of_kind(events, EventKind::gpu_begin);
  ASSERT_EQ(begins.size(), 1U);
  EXPECT_EQ(begins[0].first, kBegin + 30);
  EXPECT_EQ(begins[0].second.stream, StreamId::gpu_compute);
  EXPECT_TRUE(of_kind(events, EventKind::gpu_sync_begin).empty());
  EXPECT_TRUE(of_kind(events, EventKind::gpu_memory).empty());
  const auto known = of_kind(events, EventKind::gpu_records_begin);
  ASSERT_EQ(known.size(), 1U);
  EXPECT_EQ(known[0].second.v1, 4) << "dropped";
}

TEST(RecordJoin, WorkWaitsOneFlushForItsLaunchAndLaterWorkWaitsWithIt) {
  RecordJoin join(lanes(), 0);
  RecordBatch batch;
  batch.launches = {{12, 1, 100, 101}};
  batch.work = {kernel(11, 130, 180), kernel(12, 180, 190)};
  join.add(batch);
  const auto first = join.take(1000, 0);
  EXPECT_TRUE(of_kind(first, EventKind::gpu_begin).empty());
  // Nothing is claimed beyond what is still waiting.
  EXPECT_EQ(of_kind(first, EventKind::gpu_records_end).at(0).first, 130);
  batch.clear();
  batch.launches = {{11, 1, 90, 91}};
  join.add(batch);
  const auto second = join.take(2000, 0);
  const auto begins = of_kind(second, EventKind::gpu_begin);
  ASSERT_EQ(begins.size(), 2U);
  EXPECT_EQ(begins[0].second.v0, 40);
  EXPECT_EQ(begins[1].second.v0, 80);
  EXPECT_EQ(of_kind(second, EventKind::gpu_records_begin).at(0).first, 130);
  EXPECT_EQ(of_kind(second, EventKind::gpu_records_end).at(0).first, 2000);
}

TEST(RecordJoin, WithoutALaunchTheDelayIsUnknownAndThatIsCounted) {
  RecordJoin join(lanes(), 0);
  RecordBatch batch;
  batch.work = {kernel(11, 130, 180)};
  batch.dropped = 5;
  join.add(batch);
  EXPECT_TRUE(of_kind(join.take(1000, 0), EventKind::gpu_begin).empty());
  const auto events = join.take(2000, 0);
  ASSERT_EQ(of_kind(events, EventKind::gpu_begin).size(), 1U);
  EXPECT_EQ(of_kind(events, EventKind::gpu_begin)[0].second.v0, kNoDelay);
  EXPECT_EQ(of_kind(events, EventKind::gpu_begin)[0].second.b, kNoId);
  EXPECT_EQ(of_kind(events, EventKind::gpu_records_end).at(0).second.c, 1U);
}

TEST(RecordJoin, NothingIsClaimedBeyondALaunchWhoseWorkIsNotHere) {
  RecordJoin join(lanes(), 0);
  RecordBatch batch;
  batch.launches = {{11, 1, 100, 101}, {12, 1, 400, 401}};
  batch.work = {kernel(11, 130, 180)};
  batch.dropped = 2;
  join.add(batch);
  const auto first = join.take(1000, 0);
  EXPECT_EQ(of_kind(first, EventKind::gpu_records_end).at(0).first, 400);
  EXPECT_EQ(of_kind(first, EventKind::gpu_records_end).at(0).second.v1, 2);
  // It runs for long: still nothing more is known.
  EXPECT_TRUE(of_kind(join.take(2000, 0), EventKind::gpu_records_end).empty());
  batch.clear();
  batch.work = {kernel(12, 500, 1900)};
  join.add(batch);
  EXPECT_EQ(of_kind(join.take(3000, 0), EventKind::gpu_records_end).at(0).first, 3000);
}

/// In a buffer that has not come back there may be launches of which nothing is known.
TEST(RecordJoin, NothingIsClaimedBeyondABufferThatIsBeingFilled) {
  RecordJoin join(lanes(), 0);
  RecordBatch batch;
  batch.launches = {{11, 1, 100, 101}};
  batch.work = {kernel(11, 130, 180)};
  batch.held_since_ns = 600;
  join.add(batch);
  EXPECT_EQ(of_kind(join.take(1000, 0), EventKind::gpu_records_end).at(0).first, 600);
  batch.clear();
  batch.launches = {{12, 1, 700, 701}};
  batch.work = {kernel(12, 730, 780)};
  batch.held_since_ns = 1500;
  join.add(batch);
  EXPECT_EQ(of_kind(join.take(2000, 0), EventKind::gpu_records_end).at(0).first, 1500);
  // At the end everything has come.
  batch.clear();
  batch.held_since_ns = 1500;
  join.add(batch);
  EXPECT_EQ(of_kind(join.take_all(3000, 0), EventKind::gpu_records_end).at(0).first, 3000);
}

TEST(RecordJoin, ALaunchThatQueuedNothingHoldsUpNothingForLong) {
  RecordJoin join(lanes(), 0);
  RecordBatch batch;
  batch.launches = {{12, 1, 400, 401}};
  join.add(batch);
  const std::int64_t later = RecordJoin::kGiveUpNs + 400;
  EXPECT_EQ(of_kind(join.take(later - 1, 0), EventKind::gpu_records_end).at(0).first, 400);
  EXPECT_EQ(of_kind(join.take(later, 0), EventKind::gpu_records_end).at(0).first, later);
  // Nor is it remembered for ever.
  (void)join.take(3 * RecordJoin::kGiveUpNs, 0);
  EXPECT_EQ(join.remembered(), 0U);
}

TEST(RecordJoin, OfCallsInsideOneAnotherTheWorkOfTheOutermostIsWaitedFor) {
  for (const bool inner_first : {true, false}) {
    RecordJoin join(lanes(), 0);
    RecordBatch batch;
    batch.launches = {{21, 1, 110, 120}, {20, 1, 100, 130}};
    if (!inner_first) std::swap(batch.launches[0], batch.launches[1]);
    batch.work = {kernel(20, 150, 160)};
    join.add(batch);
    EXPECT_EQ(of_kind(join.take(1000, 0), EventKind::gpu_records_end).at(0).first, 1000) << inner_first;
  }
  // Another thread's call at the same time is another call.
  RecordJoin join(lanes(), 0);
  RecordBatch batch;
  batch.launches = {{21, 2, 110, 120}, {20, 1, 100, 130}};
  batch.work = {kernel(20, 150, 160)};
  join.add(batch);
  EXPECT_EQ(of_kind(join.take(1000, 0), EventKind::gpu_records_end).at(0).first, 110);
}

TEST(RecordJoin, AKernelMayStartBeforeItsLaunchByTheErrorOfTheClocks) {
  RecordJoin join(lanes(), 0);
  RecordBatch batch;
  batch.launches = {{11, 1, 140, 145}};
  batch.work = {kernel(11, 130, 180)};
  join.add(batch);
  EXPECT_EQ(of_kind(join.take(1000, 0), EventKind::gpu_begin).at(0).second.v0, -10);
}

TEST(RecordJoin, AllWorkOfAGraphHasTheDelayOfItsLaunch) {
  RecordJoin join(lanes(), 0);
  RecordBatch batch;
  batch.launches = {{11, 1, 100, 105}};
  batch.work = {kernel(11, 130, 180), kernel(11, 180, 190), kernel(11, 185, 250)};
  join.add(batch);
  const auto begins = of_kind(join.take(1000, 0), EventKind::gpu_begin);
  ASSERT_EQ(begins.size(), 3U);
  EXPECT_EQ(begins[1].second.v0, 80);
  EXPECT_EQ(begins[2].second.stream, StreamId::gpu_other_3);  // ran beside the one before
  EXPECT_EQ(begins[2].first, 185);
}

TEST(RecordJoin, SynchronizationMemoryAndWhatHasNoPlace) {
  RecordJoin join(lanes(), 0);
  RecordBatch batch;
  batch.syncs = {
      {GpuSync::stream, 7, 300, 350}, {GpuSync::event, kNoId, 100, 150}, {GpuSync::context, kNoId, 120, 130}};
  batch.memory = {{instrumentation::MemoryPool::pinned, true, 4096, 0xABC0, 70}};
  join.add(batch);
  const auto events = join.take(1000, 0);
  const auto syncs = of_kind(events, EventKind::gpu_sync_begin);
  ASSERT_EQ(syncs.size(), 2U);  // the third was at the time of another
  EXPECT_EQ(syncs[0].first, 100);
  EXPECT_EQ(syncs[1].second.code, static_cast<std::uint8_t>(GpuSync::stream));
  EXPECT_EQ(join.not_placed(), 1U);
  EXPECT_EQ(of_kind(events, EventKind::gpu_records_end).at(0).second.b, 1U);
  const auto memory = of_kind(events, EventKind::gpu_memory);
  ASSERT_EQ(memory.size(), 1U);
  EXPECT_EQ(memory[0].first, 70);
  EXPECT_EQ(memory[0].second.code,
            shardscope::test::gpu_memory_code(instrumentation::MemoryPool::pinned, true));
  EXPECT_EQ(memory[0].second.v0, 4096);
  EXPECT_EQ(memory[0].second.v1, 0xABC0);
}

/// The line from clock to clock moves a little from flush to flush.
TEST(RecordJoin, WaitsThatOverlapByTheErrorOfTheClocksFollowOneAnother) {
  RecordJoin join(lanes(), 0);
  RecordBatch batch;
  batch.syncs = {{GpuSync::stream, 7, 100, 200}};
  join.add(batch);
  static_cast<void>(join.take(1000, 20));
  batch.syncs = {{GpuSync::stream, 7, 190, 300}, {GpuSync::stream, 7, 270, 400}};
  join.add(batch);
  const auto syncs = of_kind(join.take(2000, 20), EventKind::gpu_sync_begin);
  ASSERT_EQ(syncs.size(), 1U);
  EXPECT_EQ(syncs[0].first, 200);
  EXPECT_EQ(join.not_placed(), 1U) << "30 is more than the error";
}

/// Whatever the order in which records arrive: every kernel comes out once, lanes are in order and do not
/// overlap, and what was claimed to be known was.
TEST(RecordJoin, RecordsInAnyOrderGiveOrderedLanesAndTrueClaims) {
  std::mt19937 random(3);
  constexpr std::uint32_t kKernels = 2000;
  struct Planned {
    LaunchRecord launch;
    WorkRecord work;
    std::size_t launch_flush = 0, work_flush = 0;
  };
  std::vector<Planned> plan(kKernels);
  std::map<std::uint32_t, std::int64_t> free_at;
  std::int64_t host = 1000;
  for (std::uint32_t i = 0; i < kKernels; ++i) {
    Planned& one = plan[i];
    host += 5 + random() % 40;
    one.launch = {i, 1, host, host + 3};
    const std::uint32_t stream = random() % 3 == 0 ? 8 : kCompute;
    const std::int64_t begin = std::max<std::int64_t>(host + 5 + random() % 100, free_at[stream]);
    one.work = kernel(i, begin, begin + 10 + random() % 60, stream);
    free_at[stream] = one.work.end_ns;
    // A launch is known at the flush after it, work at one of the two after its end; on a stream in order.
    one.launch_flush = static_cast<std::size_t>((host + 3) / 1000 + 1);
    one.work_flush = static_cast<std::size_t>(one.work.end_ns / 1000 + 1);
  }
  RecordJoin join(lanes(), 0);
  std::map<std::uint32_t, std::int64_t> begun;
  std::array<std::int64_t, instrumentation::kStreamCount> lane_end{};
  std::int64_t known_until = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> claims;  // known until, at which number of begun
  const auto take = [&](const std::vector<TimedEvent>& events) {
    for (const auto& [at, event] : events) {
      if (event.kind == EventKind::gpu_begin) {
        EXPECT_GE(at, lane_end[static_cast<std::size_t>(event.stream)]);
        EXPECT_GE(at, known_until) << "known until then, and now this";
        begun[static_cast<std::uint32_t>(begun.size())] = at;
      }
      if (event.kind == EventKind::gpu_end) lane_end[static_cast<std::size_t>(event.stream)] = at;
    }
    for (const auto& [at, event] : of_kind(events, EventKind::gpu_records_end)) {
      EXPECT_GT(at, known_until);
      known_until = at;
    }
  };
  const auto last = static_cast<std::size_t>(plan.back().work.end_ns / 1000 + 3);
  for (std::size_t flush = 1; flush <= last; ++flush) {
    RecordBatch batch;
    for (const Planned& one : plan) {
      if (one.launch_flush == flush) batch.launches.push_back(one.launch);
      if (one.work_flush == flush) batch.work.push_back(one.work);
    }
    std::shuffle(batch.work.begin(), batch.work.end(), random);
    join.add(batch);
    take(join.take(static_cast<std::int64_t>(flush) * 1000, 0));
  }
  take(join.take_all(static_cast<std::int64_t>(last + 1) * 1000, 0));
  EXPECT_EQ(begun.size(), kKernels);
  EXPECT_EQ(join.not_placed(), 0U);
  EXPECT_EQ(known_until, static_cast<std::int64_t>(last + 1) * 1000);
}

}  // namespace
}  // namespace shardscope::profile
