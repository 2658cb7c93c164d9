// The item log, the order of messages, what is held before it is recorded, and waiting for
// sockets.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "app/collector/collector_pace.h"
#include "app/collector/held_chunks.h"
#include "app/collector/item_log.h"
#include "app/collector/rank_session.h"
#include "app/collector/run_record.h"
#include "app/collector/socket_poll.h"
#include "app/collector/status_board.h"
#include "app/collector/view_log.h"
#include "app/store/compaction.h"
#include "instrumentation/sockets.h"

namespace shardscope::collector {
namespace {

wire::ViewItem item_of(std::uint32_t number, std::size_t bytes) {
  wire::ViewItem item;
  item.kind = wire::ViewItem::Kind::chunk;
  item.id = number;
  item.data.assign(bytes, static_cast<std::uint8_t>(number));
  return item;
}

TEST(ItemLog, OlderItemsComeBackFromTheFileUnchanged) {
  ItemLog log(testing::TempDir(), {10'000, 1U << 20});
  for (std::uint32_t i = 0; i < 500; ++i) log.append(item_of(i, 100 + i % 7));
  EXPECT_LE(log.memory_bytes(), 10'000U);
  EXPECT_GT(log.file_bytes(), 30'000U);
  ASSERT_EQ(log.begin(), 0U);
  ASSERT_EQ(log.end(), 500U);
  for (std::uint32_t i = 0; i < 500; ++i) {
    const wire::ViewItem item = log.get(i);
    ASSERT_EQ(item.id, i);
    ASSERT_EQ(item.data, item_of(i, 100 + i % 7).data);
  }
}

TEST(ItemLog, StaysWithinBothBoundsAndForgetsTheOldest) {
  ItemLog log(testing::TempDir(), {10'000, 50'000});
  for (std::uint32_t i = 0; i < 5000; ++i) {
    log.append(item_of(i, 100));
    ASSERT_LE(log.memory_bytes(), 10'000U);
    ASSERT_LE(log.file_bytes(), 50'000U);
  }
  EXPECT_EQ(log.end(), 5000U);
  EXPECT_EQ(log.end() - log.begin(), 100U + 50'000U / (100 + ItemLog::kItemHead));
  EXPECT_EQ(log.get(log.begin()).id, static_cast<std::uint32_t>(log.begin()));
  EXPECT_EQ(log.get(4999).data, item_of(4999, 100).data);
}

TEST(ItemLog, WithoutADiskItKeepsTheNewestInMemory) {
  ItemLog log("/nonexistent/folder", {10'000, 50'000});
  for (std::uint32_t i = 0; i < 500; ++i) log.append(item_of(i, 100));
  EXPECT_EQ(log.end(), 500U);
  EXPECT_EQ(log.begin(), 400U);
  EXPECT_EQ(log.get(499).id, 499U);
}

wire::Header header(std::uint64_t incarnation, std::uint64_t sequence) {
  wire::Header h;
  h.incarnation = incarnation;
  h.sequence = sequence;
  return h;
}

TEST(RankSession, NoticesGapsReplaysAndNewProcesses) {
  RankSession rank(0);
  using Order = RankSession::Order;
  EXPECT_TRUE(rank.accept(header(5, 0), 1).new_process);
  EXPECT_EQ(rank.accept(header(5, 1), 1).missing, 0U);
  EXPECT_EQ(rank.accept(header(5, 4), 1).missing, 2U);
  EXPECT_EQ(rank.accept(header(5, 4), 1).order, Order::duplicate);
  EXPECT_EQ(rank.accept(header(5, 2), 1).order, Order::duplicate);
  EXPECT_EQ(rank.row.lost_messages, 2U);
  const auto other = rank.accept(header(6, 0), 1);
  EXPECT_TRUE(other.new_process);
  EXPECT_EQ(other.missing, 0U);
  EXPECT_EQ(rank.accept(header(5, 9), 1).order, Order::stale);
  EXPECT_EQ(rank.row.lost_messages, 2U);
  wire::Batch batch;
  batch.events.resize(1);
  rank.add(std::move(batch), 0);
  EXPECT_EQ(rank.take_chunk().lost_before, 2U);
}

/// [Note: what is sent twice]
TEST(RankSession, RepeatedIsWhatTheSenderMayNotKnowToBeReceived) {
  RankSession rank(0);
  using Order = RankSession::Order;
  rank.another_process(5);
  rank.route = "control";
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(rank.accept(header(5, i), 10).order, Order::next);
  rank.confirmed(10);
  rank.control_received(10.1);
  EXPECT_EQ(rank.accept(header(5, 0), 10.2).order, Order::again) << "the confirmation may be on its way";
  for (std::uint64_t i = 10; i < 20; ++i) EXPECT_EQ(rank.accept(header(5, i), 11).order, Order::next);
  rank.confirmed(11);
  EXPECT_EQ(rank.unconfirmed(), 0U);
  EXPECT_EQ(rank.accept(header(5, 0), 60).order, Order::again) << "it may have been cut off";
  EXPECT_NE(rank.unconfirmed(), 0U) << "so it is owed anew";
  rank.control_received(60);
  EXPECT_EQ(rank.accept(header(5, 9), 60).order, Order::duplicate);
  EXPECT_EQ(rank.accept(header(5, 10), 60).order, Order::again);
  rank.control_received(60 + RankSession::kConfirmationLasts_s);
  EXPECT_EQ(rank.accept(header(5, 19), 63).order, Order::duplicate);
  EXPECT_EQ(rank.accept(header(6, 0), 64).order, Order::next);
  rank.another_process(6);
  EXPECT_EQ(rank.accept(header(6, 0), 64).order, Order::again) << "another process knows nothing of that";
}

wire::Batch batch_at(std::int64_t ns) {
  wire::Batch batch;
  batch.events.resize(1);
  batch.events[0].kind = instrumentation::EventKind::tokens;
  batch.events[0].ticks = static_cast<std::uint64_t>(ns);
  return batch;
}

/// What waits to be a chunk when another process comes, perhaps from another host, stays where it was in
/// time.
/// A sender whose window is full sends nothing more without it.
TEST(RankSession, WhatMayHaveBeenCutOffIsConfirmedAgainOverTheNextConnection) {
  RankSession rank(0);
  using Order = RankSession::Order;
  rank.control_incarnation = 5;
  rank.another_route("first");
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(rank.accept(header(5, i), 10).order, Order::next);
  rank.confirmed(10);
  EXPECT_EQ(rank.unconfirmed(), 0U);
  rank.another_route("second");
  EXPECT_EQ(rank.unconfirmed(), 10U);
  rank.confirmed(11);
  rank.control_received(20);
  rank.control_received(20 + RankSession::kConfirmationLasts_s);  // so that one has arrived
  for (std::uint64_t i = 10; i < 14; ++i) EXPECT_EQ(rank.accept(header(5, i), 23).order, Order::next);
  rank.confirmed(24);
  rank.route.clear();
  EXPECT_EQ(rank.accept(header(5, 10), 25).order, Order::again) << "before it greets";
  EXPECT_EQ(rank.accept(header(5, 9), 25).order, Order::duplicate);
  rank.another_route("third");
  EXPECT_EQ(rank.unconfirmed(), 4U);
}

TEST(RankSession, EventsOfAReplacedProcessStayOnItsClock) {
  RankSession rank(0);
  rank.another_process(5);
  rank.clock.add(10'000, 3'000, 3'000, 10'000);  // 7 us behind
  (void)rank.accept(header(5, 0), 1);
  rank.add(batch_at(3'000), 0);
  rank.another_process(6);
  rank.clock.add(10'000, 12'000, 12'000, 10'000);  // 2 us ahead
  (void)rank.accept(header(5, 1), 1);
  rank.add(batch_at(3'500), 0);
  (void)rank.accept(header(6, 0), 1);
  EXPECT_TRUE(rank.on_refinable_clock());
  rank.add(batch_at(12'500), 0);
  const store::Chunk before = rank.take_chunk(), after = rank.take_chunk();
  EXPECT_EQ(before.events.size(), 2U);
  EXPECT_EQ(before.clock_offset_ns, 7'000);
  EXPECT_EQ(after.clock_offset_ns, -2'000);
  EXPECT_FALSE(rank.pending());

  // A process whose first message came before its hello is on no clock that is known.
  (void)rank.accept(header(7, 0), 1);
  EXPECT_FALSE(rank.clock_known());
  EXPECT_FALSE(rank.on_refinable_clock());
}

TEST(RankSession, BelievesNoNumberThatIsFurtherAheadThanAProcessCanHaveSent) {
  RankSession rank(0);
  using Order = RankSession::Order;
  EXPECT_EQ(rank.accept(header(5, std::uint64_t{1} << 63), 1).order, Order::implausible)
      << "of a new process";
  EXPECT_EQ(rank.accept(header(5, 3), 1).missing, 3U) << "which may have been there for long";
  EXPECT_EQ(rank.accept(header(5, std::uint64_t{1} << 63), 2).order, Order::implausible);
  EXPECT_EQ(rank.accept(header(5, UINT64_MAX), 2).order, Order::implausible);
  const auto far = static_cast<std::uint64_t>(RankSession::kMostPerSecond) + RankSession::kMostAtOnce;
  EXPECT_EQ(rank.accept(header(5, 4 + far + 1), 2).order, Order::implausible) << "within a second";
  EXPECT_EQ(rank.accept(header(5, 4), 2).missing, 0U) << "the next right one counts on where it was";
  EXPECT_EQ(rank.row.lost_messages, 3U);
  EXPECT_EQ(rank.accept(header(5, 5 + far), 3).missing, far) << "what can be is believed";
  EXPECT_EQ(rank.row.lost_messages, 3 + far);
}

TEST(RankSession, ManyRestartsOfARankTakeNoMemory) {
  RankSession rank(0);
  using Order = RankSession::Order;
  (void)rank.accept(header(1, 0), 1);
  const std::uint64_t many = 100'000;
  for (std::uint64_t process = 2; process <= many; ++process) {
    ASSERT_TRUE(rank.accept(header(process, 0), 1).new_process);
    ASSERT_EQ(rank.accept(header(1, process), 1).order, Order::stale) << "who goes on speaking stays known";
  }
  EXPECT_EQ(rank.accept(header(many - 1, 1), 1).order, Order::stale);
  EXPECT_EQ(rank.known_replaced(), RankSession::kKnownReplaced);
}

TEST(RankSession, DropsAreTakenFromTotalsSoALostMessageHidesNone) {
  RankSession rank(3);
  (void)rank.accept(header(5, 0), 1);
  const auto batch = [](std::uint64_t total, std::uint64_t here, std::vector<std::uint64_t> times) {
    wire::Batch b;
    b.dropped_total = total;
    b.dropped_here = here;
    for (const std::uint64_t t : times) {
      b.events.emplace_back();
      b.events.back().ticks = t;
    }
    return b;
  };
  rank.add(batch(0, 0, {10, 20}), 1);
  rank.add(batch(10, 4, {15, 30}), 1);  // six more were reported in a message that did not come
  EXPECT_TRUE(rank.due(1.06, 0.05));
  EXPECT_FALSE(rank.due(1.02, 0.05));
  const store::Chunk chunk = rank.take_chunk();
  EXPECT_EQ(chunk.rank, 3U);
  EXPECT_EQ(chunk.dropped_before, 10U);
  EXPECT_EQ(chunk.sequence, 0U);
  ASSERT_EQ(chunk.events.size(), 4U);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_LE(chunk.events[i - 1].ticks, chunk.events[i].ticks);
  EXPECT_FALSE(rank.pending());
  // Large batches become several chunks, numbered without gaps.
  rank.add(batch(10, 0, std::vector<std::uint64_t>(1U << 16, 40)), 2);
  rank.add(batch(10, 0, std::vector<std::uint64_t>(10, 41)), 2);
  EXPECT_TRUE(rank.due(2, 1e9));
  EXPECT_EQ(rank.take_chunk().events.size(), 1U << 16) << "a batch is not cut";
  const store::Chunk rest = rank.take_chunk();
  EXPECT_EQ(rest.events.size(), 10U);
  EXPECT_EQ(rest.sequence, 2U);
}

TEST(RankSession, ABlockOfEventsIsWaitedWithNoLongerWhateverTheAgeOfChunks) {
  RankSession rank(0);
  (void)rank.accept(header(5, 0), 1);
  wire::Batch batch;
  batch.events.resize(RankSession::kEnoughEvents - 1);
  rank.add(batch, 1);
  EXPECT_FALSE(rank.due(1.4, 0.5)) << "not a block yet";
  EXPECT_TRUE(rank.due(1.5, 0.5));
  batch.events.resize(1);
  rank.add(batch, 1.01);
  EXPECT_FALSE(rank.due(1.04, 0.5)) << "the rest of a look may be on its way";
  EXPECT_TRUE(rank.due(1.06, 0.5));
  EXPECT_TRUE(rank.due(1.03, 0.02)) << "never later than the age of chunks";
}

TEST(CollectorPace, HurriesOnlyWhileAViewerWouldNotice) {
  const CollectorPace alone = pace_of(Watch::idle, 2), watched = pace_of(Watch::active, 2);
  EXPECT_LE(watched.chunk_age_s + watched.iteration_s, 0.1)
      << "a live view is to follow within a tenth of a second";
  EXPECT_GE(alone.iteration_s, 4 * watched.iteration_s);
  EXPECT_GE(alone.chunk_age_s, 4 * watched.chunk_age_s);
  EXPECT_EQ(watched.look_ms, 0) << "ranks look as often as a live view needs";
  EXPECT_GE(alone.look_ms, 200);
  EXPECT_LE(alone.chunk_age_s, 0.5) << "what a crash of the collector may lose";
  EXPECT_EQ(watched.pack_ms, 0) << "nodes pass on as often as a live view needs";
  EXPECT_GT(pace_of(Watch::active, 64).chunk_age_s, watched.chunk_age_s) << "many ranks: larger chunks";
  EXPECT_LE(pace_of(Watch::active, 100'000).chunk_age_s, 0.5);
}

TEST(CollectorPace, WhereItOnlyRecordsThereAreNoMoreChunksAndBatchesWithMoreRanks) {
  for (const std::size_t ranks : {1U, 128U, 256U, 1000U, 2048U, 4096U}) {
    const CollectorPace pace = pace_of(Watch::idle, ranks);
    EXPECT_LE(static_cast<double>(ranks) / pace.chunk_age_s, kChunksPerSecond) << ranks;
    EXPECT_LE(1000.0 * static_cast<double>(ranks) / pace.pack_ms, 2 * kChunksPerSecond) << ranks;
    EXPECT_LT(pace.look_ms, pace.pack_ms) << "ranks publish as often as before: their rings are bounded";
  }
  EXPECT_EQ(pace_of(Watch::idle, 128).chunk_age_s, 0.5) << "few ranks: no older than they were";
  EXPECT_EQ(pace_of(Watch::idle, 1024).chunk_age_s, 4);
  EXPECT_EQ(pace_of(Watch::idle, 1024).pack_ms, 4000);
  EXPECT_EQ(pace_of(Watch::idle, 100'000).chunk_age_s, kLongestIdleAge_s) << "what a crash loses is bounded";
  EXPECT_EQ(pace_of(Watch::idle, 100'000).pack_ms, 1000 * kLongestPack_s);
}

TEST(RunRecord, WhatIsPendingIsHandedOverBeforeItWouldHaveToBeShed) {
  constexpr std::size_t kIntake = 64 * sizeof(instrumentation::Event);
  StatusBoard board;
  CollectorOptions options;
  options.intake_bytes = kIntake;
  RunRecord record(options, board);
  record.begin({});
  RankSession rank(0);
  for (std::size_t events = 0; !record.crowded(); events += 8) {
    ASSERT_LT(events, 64U);
    EXPECT_FALSE(record.full());
    wire::Batch batch;
    batch.events.resize(8);
    record.add(rank, batch, 1);
  }
  EXPECT_FALSE(record.full()) << "half of the intake is left";
  record.flush_all(rank);
  EXPECT_FALSE(record.crowded());
}

/// Chunks of ranks by their next numbers, and what HeldChunks made of them.
struct Holding {
  struct Row {
    std::uint32_t rank = 0;
    std::uint64_t sequence = 0;
    std::uint32_t parts = 0;
    std::size_t events = 0;
    bool encoded = false;
    bool operator==(const Row&) const = default;
  };
  std::vector<Row> rows;
  std::map<std::uint32_t, std::uint64_t> next;
  HeldChunks held{[this](const store::Chunk& chunk, std::span<const std::byte> encoded) {
    rows.push_back({chunk.rank, chunk.sequence, chunk.parts, chunk.events.size(), !encoded.empty()});
    if (encoded.empty()) return;
    EXPECT_TRUE(std::ranges::equal(encoded, chunk.encode()));
  }};
  void add(std::uint32_t rank, std::size_t events, std::int64_t now_ns, std::uint64_t dropped = 0) {
    store::Chunk chunk;
    chunk.rank = rank;
    chunk.sequence = next[rank]++;
    chunk.dropped_before = dropped;
    chunk.events.resize(events, instrumentation::Event{.kind = instrumentation::EventKind::loss});
    held.add(chunk, chunk.encode(), now_ns);
  }
  std::vector<Row> take() { return std::exchange(rows, {}); }
};
using Rows = std::vector<Holding::Row>;

TEST(HeldChunks, JoinsWhatMakesABlockAndLeavesWhatIsOne) {
  constexpr std::size_t kBlock = store::Compaction::kJoinedEvents;
  Holding h;
  h.add(0, kBlock, 0);
  EXPECT_EQ(h.take(), (Rows{{0, 0, 1, kBlock, true}})) << "at once, as it is";
  h.add(0, kBlock / 2, 0);
  h.add(1, 10, 0);
  h.add(0, kBlock / 2 - 1, 0);
  EXPECT_EQ(h.take(), Rows{}) << "a block of half as many events would take more room";
  EXPECT_EQ(h.held.events(), kBlock - 1 + 10);
  h.add(0, 1, 0);
  EXPECT_EQ(h.take(), (Rows{{0, 1, 3, kBlock, false}})) << "the other rank's waits on";
  h.add(0, 20, 0);
  h.add(0, kBlock, 0);
  EXPECT_EQ(h.take(), (Rows{{0, 4, 1, 20, true}, {0, 5, 1, kBlock, true}})) << "in order";
}

TEST(HeldChunks, AGapBeginsARow) {
  Holding h;
  h.add(0, 100, 0);
  h.add(0, 100, 0, 7);
  h.add(0, 100, 0);
  EXPECT_EQ(h.take(), (Rows{{0, 0, 1, 100, true}}));
  h.held.record_all();
  EXPECT_EQ(h.take(), (Rows{{0, 1, 2, 200, false}}));
}

TEST(HeldChunks, HoldsNothingForLongAndNeverMuch) {
  Holding h;
  h.add(0, 100, 0);
  h.add(1, 100, 1);
  h.add(0, 100, 1);
  h.held.record_due(HeldChunks::kLongest_ns);
  EXPECT_EQ(h.take(), (Rows{{0, 0, 2, 200, false}})) << "as old as its oldest event";
  h.held.record_due(HeldChunks::kLongest_ns + 1);
  EXPECT_EQ(h.take(), (Rows{{1, 0, 1, 100, true}}));
  h.held.record_due(10 * HeldChunks::kLongest_ns);
  EXPECT_EQ(h.take(), Rows{});
  std::size_t most = 0;
  for (std::uint32_t rank = 0; rank < 200; ++rank) {
    h.add(rank, 1000, 0);
    most = std::max(most, h.held.events());
  }
  EXPECT_LE(most, HeldChunks::kMostEvents);
  EXPECT_GT(most, HeldChunks::kMostEvents / 2);
  EXPECT_GT(h.take().size(), 100U);
}

/// Two pairs of sockets and who waits for them.
struct Waiting {
  zmq::context_t context;
  zmq::socket_t a{context, zmq::socket_type::pair}, to_a{context, zmq::socket_type::pair};
  zmq::socket_t b{context, zmq::socket_type::pair}, to_b{context, zmq::socket_type::pair};
  instrumentation::WakeFd wake;
  SocketPoll poll;
  std::size_t a_item = 0, b_item = 0;
  Waiting() {
    a.bind("inproc://a");
    to_a.connect("inproc://a");
    b.bind("inproc://b");
    to_b.connect("inproc://b");
    a_item = poll.add(a);
    b_item = poll.add(b);
  }
  static void send(zmq::socket_t& socket) { (void)socket.send(zmq::str_buffer("x"), zmq::send_flags::none); }
  static bool receive(zmq::socket_t& socket) {
    zmq::message_t message;
    return socket.recv(message, zmq::recv_flags::dontwait).has_value();
  }
  bool wait(int ms, std::size_t without = SocketPoll::kNone) {
    return poll.wait(std::chrono::milliseconds(ms), wake.fd(), {}, without);
  }
};

TEST(SocketPoll, TellsOfEveryMessageUntilItIsReceived) {
  Waiting w;
  EXPECT_FALSE(w.wait(0));
  Waiting::send(w.to_a);
  Waiting::send(w.to_a);
  for (int left = 2; left > 0; --left) {
    w.wait(5000);
    EXPECT_TRUE(w.poll.readable(w.a_item)) << left;
    EXPECT_FALSE(w.poll.readable(w.b_item));
    w.wait(5000);
    EXPECT_TRUE(w.poll.readable(w.a_item)) << "nothing was received since";
    EXPECT_TRUE(Waiting::receive(w.a));
  }
  w.wait(1);
  EXPECT_FALSE(w.poll.readable(w.a_item));
  // And again, from rest.
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Waiting::send(w.to_b);
  });
  w.wait(5000);
  later.join();
  EXPECT_TRUE(w.poll.readable(w.b_item));
}

TEST(SocketPoll, AsksASocketThatWasUsed) {
  Waiting w;
  w.wait(0);
  w.wait(0);  // both are at rest
  Waiting::send(w.to_a);
  // Sending reads what the descriptor signals: from here on it is silent.
  (void)w.a.get(zmq::sockopt::events);
  w.poll.used(w.a_item);
  w.wait(0);
  EXPECT_TRUE(w.poll.readable(w.a_item));
}

TEST(SocketPoll, WhoWasLeftOutIsAskedAfterwards) {
  Waiting w;
  w.wait(0);
  w.wait(0);
  Waiting::send(w.to_a);
  Waiting::send(w.to_a);
  w.wait(0, w.a_item);
  EXPECT_FALSE(w.poll.readable(w.a_item));
  EXPECT_TRUE(Waiting::receive(w.a)) << "one of two, without a signal";
  w.wait(0);
  EXPECT_TRUE(w.poll.readable(w.a_item));
}

TEST(SocketPoll, IsWoken) {
  Waiting w;
  EXPECT_FALSE(w.wait(0));
  w.wake.signal();
  EXPECT_TRUE(w.wait(5000));
  w.wake.clear();
  EXPECT_FALSE(w.wait(0));
}

TEST(ViewLog, CountsWhatItHoldsForViewersToCome) {
  ViewLog log(testing::TempDir());
  wire::ViewItem name;
  name.kind = wire::ViewItem::Kind::name;
  name.text.assign(1000, 'n');
  log.add_name(name);
  log.add_name(name);
  EXPECT_EQ(log.memory_bytes(), 2000U);
  wire::ViewItem tables = item_of(0, 500);
  tables.kind = wire::ViewItem::Kind::tables;
  EXPECT_TRUE(log.add_tables(tables, std::vector<std::uint8_t>(10)));
  EXPECT_FALSE(log.add_tables(tables, std::vector<std::uint8_t>(10))) << "unchanged";
  EXPECT_EQ(log.memory_bytes(), 2500U);
  // Later ones replace them, all but the bare ones.
  tables.data.assign(600, 1);
  EXPECT_TRUE(log.add_tables(tables, std::vector<std::uint8_t>(10)));
  EXPECT_EQ(log.memory_bytes(), 2000U + 10U + 600U);
}

TEST(ViewLog, SaysHowManyOfItsItemsAViewerDoesNotGetAnyMore) {
  ViewLog log(testing::TempDir(), {1'000, 1'000});
  for (std::uint32_t i = 0; i < 100; ++i) log.append(item_of(i, 100));
  wire::ViewReply whole;
  log.read(0, 0, 1U << 20, 1000, whole);
  ASSERT_GT(whole.begin_cursor, 5U);
  ASSERT_EQ(whole.items.size(), 1 + whole.end_cursor - whole.begin_cursor);
  EXPECT_EQ(whole.items[0].text.find("the first " + std::to_string(whole.begin_cursor) +
                                     " pieces of this run (chunks of events, and messages) are no longer"),
            0U)
      << whole.items[0].text;
  // Of one that has had the begin and was too slow since.
  wire::ViewReply slow;
  log.read(0, 5, 1U << 20, 1000, slow);
  EXPECT_EQ(slow.items[0].text.find(std::to_string(whole.begin_cursor - 5) + " pieces of this run"), 0U)
      << slow.items[0].text;
  wire::ViewReply none;
  log.read(0, whole.begin_cursor, 1U << 20, 1000, none);
  EXPECT_EQ(none.items[0].kind, wire::ViewItem::Kind::chunk) << "nothing is missing to this one";
}

}  // namespace
}  // namespace shardscope::collector
