// How long things took: without pauses, and no longer than is known where a rank ended in the middle.
#include "app/store/span_time.h"

#include <gtest/gtest.h>

#include "app/store/rank_end.h"
#include "app/store/recorded_run.h"
#include "app/store/recording.h"
#include "tests/app/store/event_builder.h"
#include "tests/app/store/recording_files.h"

namespace shardscope::store {
namespace {

using ev::EventKind;
using ev::StreamId;
constexpr LaneId kGather{0, StreamId::gather};

/// A module of 100 us, of which the rank was held for 70 in two pauses, and a gather that runs on into the
/// first of them.
std::vector<Chunk> held_run() {
  ChunkBuilder first(0, 0);
  first.host(0, EventKind::step_begin, 0).compute(10'000, EventKind::module_begin, 1);
  first.add(15'000, EventKind::collective_begin, StreamId::gather, 7);
  first.host(20'000, EventKind::paused_begin, 3);
  first.add(25'000, EventKind::collective_end, StreamId::gather, 7);
  ChunkBuilder second(0, 1);
  second.host(80'000, EventKind::paused_end, 3).host(90'000, EventKind::paused_begin, 4);
  second.host(100'000, EventKind::paused_end, 4).compute(110'000, EventKind::module_end, 1);
  second.host(120'000, EventKind::step_end, 0);
  return {first.chunk, second.chunk};
}

Store store_of(const std::vector<Chunk>& chunks, std::size_t seal_after = SIZE_MAX,
               Keep keep = Keep::everything) {
  Store store(keep);
  store.seal_after(seal_after);
  for (const Chunk& chunk : chunks) store.ingest(chunk);
  return store;
}

void expect_durations_without_pauses(const Store& store) {
  const Span module = store.spans(kCompute, 0).front();
  const SpanTime time = time_of(store, 0, module);
  EXPECT_TRUE(time.ended);
  EXPECT_EQ(time.running_ns, 30'000);
  EXPECT_EQ(time.paused_ns, 70'000);
  EXPECT_EQ(time.until_ns, 110'000);
  // What the stream was given before the pause ran on beside it.
  const SpanTime gather = time_of(store, 0, store.spans(kGather, 0).front());
  EXPECT_EQ(gather.running_ns, 10'000);
  EXPECT_EQ(gather.paused_ns, 0);
  EXPECT_EQ(paused_ns(store, 0, 70'000, 95'000), 15'000);
  EXPECT_EQ(time_within(store, 0, module, 70'000, 95'000).running_ns, 10'000);
  EXPECT_EQ(time_between(store, 70'000, 95'000).running_ns, 10'000);
  EXPECT_EQ(time_between(store, 10'000, 110'000).paused_ns, 70'000);
  EXPECT_EQ(store.spans({0, StreamId::host}, kPauses).size(), 2U);
  ASSERT_EQ(store.steps().size(), 1U);
  EXPECT_EQ(time_of(store, store.steps()[0]).running_ns, 50'000);
  for (const SpanTotal& total : store.span_totals()) {
    if (total.kind == EventKind::module_begin) {
      EXPECT_EQ(total.total_ns, 30'000);
      EXPECT_EQ(total.max_ns, 30'000);
    } else if (total.kind == EventKind::paused_begin) {
      EXPECT_EQ(total.total_ns, 70'000);
    } else if (total.kind == EventKind::collective_begin) {
      EXPECT_EQ(total.total_ns, 10'000);
    }
  }
}

TEST(SpanTime, CountsNoPause) { expect_durations_without_pauses(store_of(held_run())); }
TEST(SpanTime, CountsNoPauseThatLiesInABlock) { expect_durations_without_pauses(store_of(held_run(), 1)); }

TEST_F(RecordingTest, TotalsAndDurationsCountNoPause) {
  const Store totals = store_of(held_run(), SIZE_MAX, Keep::totals);
  bool any = false;
  for (const SpanTotal& total : totals.span_totals()) {
    if (total.kind != EventKind::module_begin) continue;
    any = true;
    EXPECT_EQ(total.total_ns, 30'000);
  }
  EXPECT_TRUE(any);
  const std::string path = file("held.zscope");
  {
    RecordingWriter writer(path);
    for (const Chunk& chunk : held_run()) writer.append(chunk);
    writer.finish(totals);
    ASSERT_EQ(writer.error(), "");
  }
  expect_durations_without_pauses(open_recording(path, nullptr));
}

TEST(SpanTime, APauseThatGoesOnIsNotCountedEither) {
  const Store store = store_of({held_run().front()});
  ASSERT_EQ(store.end_ns(), 25'000);
  const SpanTime time = time_of(store, 0, store.spans(kCompute, 0).front());
  EXPECT_FALSE(time.ended);
  EXPECT_EQ(time.running_ns, 10'000);
  EXPECT_EQ(time.paused_ns, 5'000);
  EXPECT_EQ(time_of(store, store.steps()[0]).running_ns, 20'000);
}

/// Rank 1 is gone in the middle of a module at 30 us; rank 0 goes on to 100 us.
Store after_a_kill(bool connected, std::int32_t exit_code = 0) {
  Store store;
  ChunkBuilder survivor(0), gone(1);
  survivor.compute(0, EventKind::module_begin, 1).compute(100'000, EventKind::module_end, 1);
  gone.compute(10'000, EventKind::module_begin, 1).compute(15'000, EventKind::module_begin, 2);
  gone.add(20'000, EventKind::collective_begin, StreamId::gather, 7).host(30'000, EventKind::tokens, 0);
  store.ingest(survivor.chunk);
  store.ingest(gone.chunk);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    RankRow row;
    row.rank = rank;
    row.connected = rank == 0 || connected;
    row.events = rank == 0 ? 2 : 4;
    row.exit_code = rank == 0 ? 0 : exit_code;
    store.set_rank(row);
  }
  return store;
}

TEST(SpanTime, AnOpenSpanOfARankThatIsGoneEndsWithItsLastEvent) {
  const LaneId lane{1, StreamId::compute};
  const Store running = after_a_kill(true);
  EXPECT_EQ(time_of(running, 1, running.spans(lane, 0).front()).until_ns, 100'000);
  EXPECT_EQ(why_open(running, 1), "still open");
  EXPECT_TRUE(time_of(running, 1, running.spans(lane, 0).front()).still_running);
  const Store gone = after_a_kill(false);
  const SpanTime time = time_of(gone, 1, gone.spans(lane, 0).front());
  EXPECT_FALSE(time.ended);
  EXPECT_FALSE(time.still_running);
  EXPECT_EQ(time.until_ns, 30'000);
  EXPECT_EQ(time.running_ns, 20'000);
  EXPECT_EQ(why_open(gone, 1), "rank 1 ended without a word at 0.000 s");
  EXPECT_EQ(why_open(after_a_kill(false, 128 + 9), 1), "rank 1 was killed by signal 9 (SIGKILL) at 0.000 s");
}

TEST(SpanTime, ARankThatIsGoneIsNotDrawnAsComputingToTheEndOfTheRun) {
  const auto busy = [](const Store& store, StreamId stream, std::uint8_t depth) {
    std::vector<Density> columns(10);
    store.density({1, stream}, depth, 0, 100'000, columns);
    double sum = 0;
    for (const Density& column : columns) sum += column.busy;
    return sum * 10'000;
  };
  const Store gone = after_a_kill(false), running = after_a_kill(true);
  EXPECT_NEAR(busy(gone, StreamId::compute, 0), 20'000, 1);
  EXPECT_NEAR(busy(gone, StreamId::compute, 1), 15'000, 1);
  EXPECT_NEAR(busy(gone, StreamId::gather, 0), 10'000, 1);
  EXPECT_NEAR(busy(running, StreamId::compute, 0), 90'000, 1);
}

TEST(SpanTime, ACutRecordingHasOpenSpansThatEndWithIt) {
  Store store;
  ChunkBuilder chunk(0);
  chunk.compute(0, EventKind::module_begin, 1).compute(10'000, EventKind::fetch_wait_begin, 1);
  chunk.host(40'000, EventKind::tokens, 0);
  store.ingest(chunk.chunk);
  RecordedRun(store).note_cut_off(0, 12);
  const Span wait = store.spans(kCompute, 1).front();
  EXPECT_EQ(wait.end_ns, kOpen);
  EXPECT_EQ(time_of(store, 0, wait).running_ns, 30'000);
  EXPECT_FALSE(time_of(store, 0, wait).still_running);
  EXPECT_EQ(why_open(store, 0), "events of rank 0 end at 0.000 s");
  // It did not end: the file does.
  EXPECT_FALSE(first_failure(store));
  ASSERT_EQ(store.gaps().size(), 1U);
  EXPECT_TRUE(store.gaps()[0].cut_off);
}

}  // namespace
}  // namespace shardscope::store
