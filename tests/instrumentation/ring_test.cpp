// Rings, clock, merging in time, shedding: what happens to an event before it is sent.
#include "instrumentation/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "instrumentation/drain_pace.h"
#include "instrumentation/emitter.h"
#include "instrumentation/send_queue.h"
#include "instrumentation/time_merge.h"
#include "tests/resident_memory.h"

namespace shardscope::instrumentation {
namespace {

Event numbered(std::uint64_t thread, std::uint64_t number) {
  Event event;
  event.kind = EventKind::module_begin;
  event.a = static_cast<std::uint32_t>(thread);
  event.v0 = static_cast<std::int64_t>(number);
  event.v1 = static_cast<std::int64_t>(number * 0x9E3779B97F4A7C15ULL);  // torn records do not match
  return event;
}

void expect_whole(const Event& event) {
  ASSERT_EQ(static_cast<std::uint64_t>(event.v1),
            static_cast<std::uint64_t>(event.v0) * 0x9E3779B97F4A7C15ULL);
}

TEST(Ring, CapacityIsInEventsOfTheLongestShapeAndNeverNone) {
  EXPECT_EQ(Ring(0).capacity(), 2U);
  EXPECT_EQ(Ring(1000).capacity(), 1000U);
  EXPECT_EQ(Ring(1024).capacity(), 1024U);
}

TEST(Ring, DropsAreCountedExactlyAndTheOldestAreKept) {
  Ring ring(64);
  for (std::uint64_t i = 0; i < 100; ++i) ring.push(numbered(0, i));
  EXPECT_EQ(ring.dropped(), 36U);
  std::vector<Event> out;
  EXPECT_EQ(ring.drain(out), 64U);
  for (std::uint64_t i = 0; i < 64; ++i) EXPECT_EQ(out[i].v0, static_cast<std::int64_t>(i));
  // Room again, and the indices have wrapped.
  for (std::uint64_t i = 0; i < 10; ++i) ring.push(numbered(0, 1000 + i));
  out.clear();
  EXPECT_EQ(ring.drain(out), 10U);
  EXPECT_EQ(out[0].v0, 1000);
  EXPECT_EQ(ring.dropped(), 36U);
}

/// A gap in a run is as long as this says, and no longer.
TEST(Ring, DropsAreReportedWithTheTimesOfTheFirstAndTheLast) {
  Ring ring(64);
  TickClock clock;
  std::vector<Event> out;
  EXPECT_EQ(ring.take_drops(clock).events, 0U);
  constexpr std::int64_t kSlack = 100'000;  // of converting ticks
  for (int turn = 0; turn < 3; ++turn) {
    for (std::uint64_t i = 0; i < 64; ++i) ring.push(numbered(0, i));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::int64_t first = monotonic_now_ns();
    for (std::uint64_t i = 0; i < 10; ++i) ring.push(numbered(0, i));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ring.push(numbered(0, 0));
    const std::int64_t last = monotonic_now_ns();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    clock.update();
    const Ring::Drops drops = ring.take_drops(clock);
    EXPECT_EQ(drops.events, 11U);
    EXPECT_NEAR(static_cast<double>(drops.first_ns), static_cast<double>(first), kSlack);
    EXPECT_GE(drops.last_ns - drops.first_ns, 2'000'000 - kSlack);
    EXPECT_LE(drops.last_ns, last + kSlack);
    EXPECT_EQ(ring.take_drops(clock).events, 0U) << "reported once";
    out.clear();
    ring.drain(out);
  }
  // Times that were taken elsewhere are those of the events.
  for (std::uint64_t i = 0; i < 64; ++i) ring.push(numbered(0, i));
  ring.push_at(5'000, numbered(0, 1));
  ring.push_at(3'000, numbered(0, 1));
  const Ring::Drops drops = ring.take_drops(clock);
  EXPECT_EQ(drops.events, 2U);
  EXPECT_EQ(drops.first_ns, 3'000);
  EXPECT_EQ(drops.last_ns, 5'000);
}

TEST(Ring, UnderContentionNothingIsTornReorderedOrUncounted) {
  Ring ring(256);
  constexpr std::uint64_t kEvents = 400'000;
  std::atomic<bool> done{false};
  std::thread producer([&] {
    for (std::uint64_t i = 0; i < kEvents; ++i) ring.push(numbered(7, i));
    done.store(true);
  });
  std::uint64_t received = 0;
  std::int64_t last = -1;
  std::vector<Event> out;
  for (bool last_round = false;;) {
    out.clear();
    ring.drain(out);
    for (const Event& event : out) {
      expect_whole(event);
      ASSERT_GT(event.v0, last);
      last = event.v0;
    }
    received += out.size();
    if (last_round) break;
    last_round = done.load();
  }
  producer.join();
  EXPECT_EQ(received + ring.dropped(), kEvents);
}

/// Whether a record of this event leaves its values out is decided where it is pushed.
void push_without_values(Ring& ring, std::uint32_t number) {
  ring.push({.kind = EventKind::bucket_open, .stream = StreamId::host, .code = 3, .a = number, .b = ~number});
}

TEST(Ring, ShapesMixedOverManyWrapsComeOutAsTheyWentIn) {
  // 7 events of 5 words: no number of short records fills the array to its end, so that its rest is skipped.
  Ring ring(7);
  std::vector<Event> out;
  std::uint32_t pushed = 0, taken = 0;
  std::uint64_t dropped = 0;
  std::vector<std::uint32_t> expected;
  for (std::uint32_t round = 0; round < 2000; ++round) {
    for (std::uint32_t i = 0; i < 1 + round % 11; ++i, ++pushed) {
      if ((round * 7 + i * i) % 3 == 0) {
        ring.push(numbered(pushed, pushed));
      } else if ((round + i) % 5 == 0) {
        ring.push_at(pushed, numbered(pushed, pushed));
      } else {
        push_without_values(ring, pushed);
      }
      if (ring.dropped() == dropped) expected.push_back(pushed);
      dropped = ring.dropped();
    }
    if (round % 3 == 2) continue;
    out.clear();
    const std::size_t count = ring.drain(out);
    ASSERT_EQ(count, out.size());
    ASSERT_EQ(count, expected.size());
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(out[i].a, expected[i]);
      if (out[i].kind == EventKind::bucket_open) {
        ASSERT_EQ(out[i].code, 3);
        ASSERT_EQ(out[i].b, ~out[i].a);
        ASSERT_EQ(out[i].c, kNoId);
        ASSERT_EQ(out[i].v0, 0);
        ASSERT_EQ(out[i].v1, 0);
      } else {
        ASSERT_EQ(out[i].v0, out[i].a);
        ASSERT_EQ((static_cast<std::uint16_t>(out[i].kind) & kTimeIsNs) != 0, out[i].ticks == out[i].a);
        expect_whole(out[i]);
      }
    }
    taken += static_cast<std::uint32_t>(count);
    expected.clear();
  }
  out.clear();
  taken += static_cast<std::uint32_t>(ring.drain(out));
  EXPECT_EQ(taken + ring.dropped(), pushed);
  EXPECT_GT(ring.dropped(), 0U);
  EXPECT_EQ(ring.fill_percent(), 0U);
}

TEST(Ring, WithNobodyToEmptyItMemoryStaysAndEveryDropIsCounted) {
  // 8 million events a second for 8 s, as a count: no thread waits for a collector that has stopped.
  constexpr std::uint64_t kEvents = 64'000'000;
  Ring ring(1U << 16);
  const std::size_t before = resident_bytes();
  for (std::uint64_t i = 0; i < kEvents; ++i) ring.push(numbered(0, i));
  EXPECT_EQ(ring.dropped(), kEvents - ring.capacity());
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // their shadow grows with what is touched
  EXPECT_LT(resident_bytes(), before + (1U << 20));
#else
  static_cast<void>(before);
#endif
  std::vector<Event> out;
  EXPECT_EQ(ring.drain(out), ring.capacity());
  EXPECT_EQ(out.back().v0, static_cast<std::int64_t>(ring.capacity()) - 1);
}

TEST(Registry, RingsSurviveTheirThreadsUntilDrained) {
  RingRegistry& registry = RingRegistry::instance();
  registry.set_capacity(1024);
  std::vector<Event> out;
  registry.drain(out);
  const std::uint64_t dropped_before = registry.dropped();
  constexpr std::uint64_t kThreads = 8, kEach = 1500;  // more than fits: 476 dropped per thread
  {
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([t] {
        for (std::uint64_t i = 0; i < kEach; ++i) emit(numbered(t, i));
      });
    }
    for (auto& thread : threads) thread.join();
  }
  out.clear();
  registry.drain(out);
  EXPECT_EQ(out.size(), kThreads * 1024);
  EXPECT_EQ(registry.dropped() - dropped_before, kThreads * (kEach - 1024));
  std::map<std::uint32_t, std::int64_t> next;
  for (const Event& event : out) {
    expect_whole(event);
    EXPECT_EQ(event.v0, next[event.a]++);
  }
  // The drops of threads that are gone stay counted, once.
  registry.drain(out);
  EXPECT_EQ(registry.dropped() - dropped_before, kThreads * (kEach - 1024));
}

TEST(Emit, BuildsNothingWhenTheLevelIsOff) {
  std::vector<Event> out;
  RingRegistry::instance().drain(out);
  out.clear();
  int built = 0;
  const auto count = [&] { return static_cast<std::uint64_t>(++built); };
  g_detail.store(static_cast<int>(Detail::modules));
  SHARDSCOPE_EMIT(Detail::params, .ticks = count(), .kind = EventKind::param_status);
  EXPECT_EQ(built, 0);
  SHARDSCOPE_EMIT(Detail::modules, .ticks = count(), .kind = EventKind::module_begin);
  EXPECT_EQ(built, 1);
  g_detail.store(-1);
  SHARDSCOPE_EMIT(Detail::steps, .ticks = count(), .kind = EventKind::step_begin);
  EXPECT_EQ(built, 1);
  RingRegistry::instance().drain(out);
  EXPECT_EQ(out.size(), 1U);
}

TEST(Clock, ConvertedTicksFollowTheMonotonicClockAndNeverGoBack) {
  TickClock clock;
  std::int64_t before = 0;
  std::int64_t worst = 0;
  std::int64_t longest_gap = 0;
  for (std::int64_t i = 0, last = monotonic_now_ns(); i < 200; ++i) {
    longest_gap = std::max(longest_gap, monotonic_now_ns() - last);
    clock.update();
    last = monotonic_now_ns();
    // The true time of the ticks lies between the two readings; anything outside is the conversion's error.
    const std::int64_t low = monotonic_now_ns();
    const std::uint64_t ticks = read_ticks(invariant_counter());
    const std::int64_t high = monotonic_now_ns();
    const std::int64_t ns = clock.to_ns(ticks);
    EXPECT_GE(ns, before);
    before = ns;
    worst = std::max({worst, low - ns, ns - high});
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // A hundred times the usual error: the first rate comes from one millisecond on a busy machine.
  // Where this thread did not run, the clock was not corrected either: 100 parts in a million of that time.
  EXPECT_LT(worst, 20'000 + longest_gap / 10'000);
  EXPECT_GE(clock.error_ns(), 0);
}

TEST(TimeMerge, PutsRingsIntoOneSequenceAndHoldsTheNewestBack) {
  RingRegistry& registry = RingRegistry::instance();
  std::vector<Event> drained;
  registry.drain(drained);
  drained.clear();
  const TickClock clock;
  // Two rings' runs with explicit times; the second is not sorted (times taken elsewhere).
  Ring a(64), b(64);
  for (const std::int64_t ns : {10, 30, 50}) a.push_at(ns, numbered(0, 1));
  for (const std::int64_t ns : {40, 20, 60}) b.push_at(ns, numbered(1, 1));
  a.drain(drained);
  const std::vector<std::size_t> begins{0, drained.size()};
  b.drain(drained);
  TimeMerge merge;
  merge.add(drained, begins, clock);
  const auto times = [](const std::vector<Event>& events) {
    std::vector<std::int64_t> out;
    for (const Event& event : events) out.push_back(static_cast<std::int64_t>(event.ticks));
    return out;
  };
  EXPECT_EQ(times(merge.take(40)), (std::vector<std::int64_t>{10, 20, 30, 40}));
  EXPECT_EQ(merge.held(), 2U);
  // One that comes late is passed on with its true time.
  Ring late(64);
  late.push_at(35, numbered(2, 1));
  std::vector<Event> more;
  late.drain(more);
  merge.add(more, {0}, clock);
  const std::vector<Event> rest = merge.take(1000);
  EXPECT_EQ(times(rest), (std::vector<std::int64_t>{35, 50, 60}));
  EXPECT_EQ(rest[0].kind, EventKind::module_begin) << "the mark inside the ring must not leave it";
}

TEST(DrainPace, LooksRarelyWhileRingsFillSlowlyAndOftenWhileTheyFillFast) {
  using namespace std::chrono_literals;
  DrainPace pace;
  std::chrono::milliseconds pause{};
  for (int look = 0; look < 9; ++look) pause = pace.after(1);
  EXPECT_EQ(pause, DrainPace::kLongest);
  EXPECT_EQ(pace.after(8), DrainPace::kLongest) << "neither empty nor filling: as before";
  EXPECT_EQ(pace.after(20), DrainPace::kLongest / 2);
  EXPECT_EQ(pace.after(26), 0ms) << "at once";
  EXPECT_EQ(pace.after(10), DrainPace::kShortest) << "and often for a while";
  pace.restart();
  for (int look = 0; look < 10; ++look) pause = pace.after(1, 250ms);
  EXPECT_EQ(pause, DrainPace::kUnwatched) << "no viewer watches";
  EXPECT_EQ(pace.after(1, 10s), DrainPace::kUnwatched) << "whatever a peer asks for";
  EXPECT_EQ(pace.after(8), DrainPace::kLongest) << "with a viewer, at once";
  pace.restart();
  EXPECT_EQ(pace.after(1), DrainPace::kShortest * 2) << "somebody steps through the run";
  // A thread that begins to emit at 300,000 a second into 65,536 places is never late: how full a look finds
  // the ring follows from how long it slept.
  while (pace.after(1) != DrainPace::kLongest) {
  }
  std::chrono::milliseconds slept = DrainPace::kLongest;
  for (int look = 0; look < 100; ++look) {
    const auto percent =
        static_cast<std::size_t>(std::max<std::int64_t>(slept.count(), 1) * 300 * 100 / 65536);
    EXPECT_LT(percent, 50U);
    slept = pace.after(percent);
  }
  EXPECT_GE(slept, 12ms) << "and no more often than that rate needs";
}

wire::Batch batch_of(EventKind kind, std::size_t count) {
  wire::Batch batch;
  batch.events.resize(count);
  for (Event& event : batch.events) event.kind = kind;
  return batch;
}

TEST(SendQueue, ShedsTheLeastImportantFirstCountsExactlyAndStaysBounded) {
  constexpr std::size_t kLimit = 1U << 20;
  SendQueue queue(kLimit);
  std::uint64_t pushed = 0;
  const auto push = [&](EventKind kind, std::size_t count) {
    pushed += count;
    queue.push(batch_of(kind, count));
    EXPECT_LE(queue.bytes(), kLimit);
  };
  queue.push(wire::Body(wire::Tables{}));
  push(EventKind::step_begin, 100);
  push(EventKind::memory_alloc, 1000);
  queue.push(wire::Body(wire::Text{0, Severity::error, "lost a rank"}));
  for (int i = 0; i < 20; ++i) push(EventKind::param_status, 1000);
  for (int i = 0; i < 20; ++i) push(EventKind::kernel_begin, 1000);
  EXPECT_GT(queue.shed(), 0U);
  for (int i = 0; i < 20; ++i) push(EventKind::param_status, 1000);

  std::map<EventKind, std::size_t> left;
  std::uint64_t dropped = 0, total = 0;
  bool tables = false, text = false;
  while (!queue.empty()) {
    const wire::Body body = queue.pop();
    tables |= std::holds_alternative<wire::Tables>(body);
    text |= std::holds_alternative<wire::Text>(body);
    if (const auto* batch = std::get_if<wire::Batch>(&body)) {
      for (const Event& event : batch->events) ++left[event.kind];
      dropped += batch->dropped_here;
      total = batch->dropped_total;
    }
  }
  EXPECT_TRUE(tables);
  EXPECT_TRUE(text);
  EXPECT_EQ(left[EventKind::step_begin], 100U);
  EXPECT_EQ(left[EventKind::memory_alloc], 1000U);
  EXPECT_EQ(left[EventKind::kernel_begin], 0U) << "the least important go first";
  EXPECT_GT(left[EventKind::param_status], 10'000U);
  std::uint64_t kept = 0;
  for (const auto& [kind, count] : left) kept += count;
  EXPECT_EQ(kept + dropped, pushed);
  EXPECT_EQ(total, dropped);
  EXPECT_EQ(queue.shed(), dropped);
  EXPECT_EQ(queue.bytes(), 0U);
}

TEST(SendQueue, TextsThatNobodyTakesStayWithinTheirPartAndAreCounted) {
  constexpr std::size_t kLimit = 1U << 20;
  SendQueue queue(kLimit);
  queue.push(wire::Body(wire::Text{0, Severity::error, "lost a rank"}));
  queue.push(batch_of(EventKind::step_begin, 100));
  constexpr std::uint64_t kTexts = 20'000;
  for (std::uint64_t i = 0; i < kTexts; ++i) {
    queue.push(wire::Body(wire::Text{1, i % 2 == 0 ? Severity::info : Severity::warning, std::to_string(i)}));
    ASSERT_LE(queue.bytes(), kLimit / 8 + 10'000);
  }
  EXPECT_EQ(queue.shed(), 0U) << "events are not shed for texts";
  std::uint64_t kept = 0, said = 0;
  std::string last;
  bool error = false, steps = false;
  while (!queue.empty()) {
    const wire::Body body = queue.pop();
    steps |= std::holds_alternative<wire::Batch>(body);
    const auto* text = std::get_if<wire::Text>(&body);
    if (text == nullptr) continue;
    const std::size_t words = text->text.find(" texts were not sent");
    if (words != std::string::npos) {
      said += std::stoull(text->text.substr(0, words));
    } else if (text->severity == Severity::error) {
      error = true;
    } else {
      ++kept;
      last = text->text;
    }
  }
  EXPECT_EQ(kept + said, kTexts);
  EXPECT_GT(kept, 10U);
  EXPECT_EQ(last, std::to_string(kTexts - 1));
  EXPECT_TRUE(error);
  EXPECT_TRUE(steps);
  EXPECT_EQ(queue.bytes(), 0U);
}

TEST(SendQueue, KnowsThatTablesWaitInIt) {
  SendQueue queue(1U << 20);
  queue.push(wire::Body(wire::Tables{}));
  queue.push_front(wire::Body(wire::Tables{}));
  EXPECT_TRUE(queue.has_tables());
  (void)queue.pop();
  EXPECT_TRUE(queue.has_tables());
  (void)queue.pop();
  EXPECT_FALSE(queue.has_tables());
}

TEST(EventTable, EveryKindHasANameALevelAndAnEnd) {
  std::set<std::string> names;
  for (std::uint16_t k = 1; k <= static_cast<std::uint16_t>(EventKind::message); ++k) {
    const auto kind = static_cast<EventKind>(k);
    const std::string name = name_of(kind);
    EXPECT_NE(name, "unknown") << k;
    EXPECT_TRUE(names.insert(name).second) << name;
    const bool by_name_begin = name.size() > 6 && name.rfind("_begin") == name.size() - 6;
    const bool by_name_end = name.size() > 4 && name.rfind("_end") == name.size() - 4;
    EXPECT_EQ(is_begin(kind), by_name_begin) << name;
    EXPECT_EQ(is_end(kind), by_name_end) << name;
    if (is_begin(kind)) {
      EXPECT_EQ(name.substr(0, name.size() - 6),
                std::string(name_of(end_of(kind))).substr(0, name.size() - 6));
      EXPECT_EQ(detail_of(kind), detail_of(end_of(kind))) << name << ": a span must not lose one of its ends";
    }
  }
  EXPECT_STREQ(name_of(static_cast<EventKind>(9999)), "unknown");
}

}  // namespace
}  // namespace shardscope::instrumentation
