// Frames with little time: however they are cut, they end at one picture; and wide views of very many blocks,
// which are answered without looking at each.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "tests/app/store/row_picture.h"
#include "tests/app/store/same_store.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::store {
namespace {

Store sealed_store(const SyntheticRun& run, std::size_t seal_events) {
  Store store;
  store.seal_after(seal_events);
  fill_store(store, run);
  return store;
}

constexpr std::size_t kColumns = 900;

/// Of every row of every lane, a few windows.
std::vector<RowView> views_of(const Store& store, std::uint64_t seed) {
  std::vector<RowView> out;
  Windows window(seed, store.end_ns());
  for (const LaneId lane : store.lanes()) {
    for (std::uint8_t d = 0; d < store.depth_count(lane); ++d) {
      for (int i = 0; i < 4; ++i) {
        const auto [begin, end] = window.next();
        out.push_back({lane, d, begin, end, kColumns});
      }
    }
  }
  return out;
}

TEST(RowPictures, AreDistinguished) {
  const Store store = sealed_store(make_synthetic_run({.world = 1, .steps = 4}), 1000);
  const RowView view{{0, ev::StreamId::compute}, 5, 0, store.end_ns(), kColumns};
  const RowPicture picture = seen(store, view);
  EXPECT_TRUE(same_picture(picture, picture));
  EXPECT_TRUE(alike(picture, picture, 0));
  const auto changed = [&](auto change) {
    RowPicture other = picture;
    change(other);
    return other;
  };
  const RowPicture code = changed([](RowPicture& p) { ++p[7].dominant_code; });
  EXPECT_FALSE(same_picture(picture, code));
  EXPECT_TRUE(alike(picture, code, 0));
  EXPECT_FALSE(same_picture(picture, changed([](RowPicture& p) { p[7].busy += 1e-6F; })));
  EXPECT_FALSE(same_picture(picture, changed([](RowPicture& p) { p.pop_back(); })));
  // Less is busy; the same is, but elsewhere; more is counted.
  EXPECT_FALSE(
      alike(picture, changed([](RowPicture& p) { std::fill(p.begin(), p.begin() + 450, Density{}); }), 1));
  EXPECT_FALSE(alike(picture, changed([](RowPicture& p) { std::reverse(p.begin(), p.end()); }), 1));
  EXPECT_FALSE(alike(picture, changed([](RowPicture& p) {
                       for (Density& d : p) d.count *= 2;
                     }),
                     0.5));
}

TEST(Refinement, EndsAtThePictureThatIsDrawnWithoutALimit) {
  const SyntheticRun run = make_synthetic_run({.world = 2, .steps = 40, .chunk_events = 200});
  const Store unlimited = sealed_store(run, 1000), limited = sealed_store(run, 1000);
  std::vector<RowView> views = views_of(unlimited, 3);
  int frames = 0;
  for (const RowView& view : views) {
    SCOPED_TRACE(std::to_string(view.begin_ns) + " to " + std::to_string(view.end_ns));
    RowPicture refined;
    frames = std::max(frames, frames_until_whole(limited, view, &refined));
    EXPECT_TRUE(same_picture(seen(unlimited, view), refined));
  }
  EXPECT_GT(frames, 5);
  // In whatever order views were looked at before, and with a cache that forgets most of it.
  const Store other = sealed_store(run, 1000);
  std::reverse(views.begin(), views.end());
  for (const RowView& view : views) {
    SCOPED_TRACE(std::to_string(view.begin_ns) + " to " + std::to_string(view.end_ns));
    RowPicture refined;
    frames_until_whole(other, view, &refined);
    EXPECT_TRUE(same_picture(seen(unlimited, view), refined));
  }
}

TEST(Refinement, OnlyReadingCountsAgainstTheLimit) {
  const SyntheticRun run = make_synthetic_run({.world = 1, .steps = 40, .chunk_events = 200});
  const Store store = sealed_store(run, 1000);
  constexpr std::chrono::milliseconds kLimit{500};
  int views = 0;
  for (const RowView& view : views_of(store, 7)) {
    store.limit_reading(std::chrono::nanoseconds(0));
    (void)seen(store, view);
    if (!store.wants_more()) continue;  // one block is read whatever the limit
    store.limit_reading(kLimit);
    // Drawing other rows takes all of it.
    for (const auto begin = std::chrono::steady_clock::now();
         std::chrono::steady_clock::now() - begin < kLimit;) {
    }
    (void)seen(store, view);
    EXPECT_FALSE(store.wants_more());
    if (++views == 2) break;
  }
  EXPECT_EQ(views, 2);
}

TEST(Refinement, ANewViewReadsInWhatDrawingLeavesOfTheFrame) {
  const SyntheticRun run = make_synthetic_run({.world = 1, .steps = 40, .chunk_events = 200});
  constexpr std::chrono::seconds kLong{60};
  int views = 0;
  for (const RowView& view : views_of(sealed_store(run, 1000), 7)) {
    const Store fast = sealed_store(run, 1000), slow = sealed_store(run, 1000);
    const RowView other{view.lane, view.depth, 0, fast.end_ns(), kColumns};
    // How long drawing takes is known of another view, and leaves something of a long frame only.
    for (const auto& [store, frame] : {std::pair<const Store*, std::chrono::nanoseconds>{&fast, kLong},
                                       {&slow, std::chrono::nanoseconds(1)}}) {
      store->limit_reading(std::chrono::nanoseconds(0), frame);
      (void)seen(*store, other);
      store->limit_reading(kLong, frame);
      (void)seen(*store, view);
    }
    EXPECT_FALSE(fast.wants_more());
    views += slow.wants_more() ? 1 : 0;  // but not where one read is enough
  }
  EXPECT_GT(views, 2);
}

TEST(Refinement, ACoarserFrameHoldsWhatTheWholePictureHolds) {
  const SyntheticRun run = make_synthetic_run({.world = 1, .steps = 60, .chunk_events = 200});
  const Store unlimited = sealed_store(run, 1000), limited = sealed_store(run, 1000);
  int coarser = 0;
  for (const RowView& view : views_of(unlimited, 5)) {
    limited.limit_reading(std::chrono::nanoseconds(0));
    const RowPicture first = seen(limited, view), whole = seen(unlimited, view);
    if (!limited.wants_more()) continue;
    ++coarser;
    double busy = 0, shown = 0, counts = 0, counted = 0;
    for (std::size_t c = 0; c < kColumns; ++c) {
      busy += whole[c].busy;
      shown += first[c].busy;
      counts += whole[c].count;
      counted += first[c].count;
    }
    // Never blank where something was, and never more than there was.
    EXPECT_NEAR(shown, busy, 0.03 * kColumns) << view.begin_ns << " to " << view.end_ns;
    EXPECT_GE(counted + 0.02 * kColumns, 0.5 * counts * (busy > 0.05 * kColumns ? 1 : 0));
  }
  EXPECT_GT(coarser, 3);
}

TEST(ManyBlocks, EveryRowCountsEverySpanOnce) {
  const SyntheticRun run = make_synthetic_run({.world = 2, .steps = 60, .chunk_events = 100});
  const Store store = sealed_store(run, 300);
  for (const LaneId lane : store.lanes()) {
    for (std::uint8_t d = 0; d < store.depth_count(lane); ++d) {
      const std::size_t spans = store.spans(lane, d).size();
      for (const std::size_t n : {1U, 3U, 20U, 150U}) {
        std::vector<Density> columns(n);
        store.density(lane, d, 0, store.end_ns() + 1, columns);
        std::uint64_t count = 0;
        for (const Density& column : columns) count += column.count;
        EXPECT_GE(count, spans) << int{d} << ", " << n << " columns";
        // A column in the middle of a span counts it although it began before.
        EXPECT_LE(count, spans + n) << int{d} << ", " << n << " columns";
      }
    }
  }
}

TEST(ManyBlocks, TheNumberOfSpansInViewIsAboutRight) {
  const SyntheticRun run = make_synthetic_run({.world = 2, .steps = 80, .chunk_events = 100});
  const Store store = sealed_store(run, 400);
  Windows window(11, store.end_ns());
  for (const LaneId lane : store.lanes()) {
    for (std::uint8_t d = 0; d < store.depth_count(lane); ++d) {
      const auto all = static_cast<double>(store.spans(lane, d).size());
      for (int i = 0; i < 12; ++i) {
        const auto [begin, end] = window.next();
        std::size_t within = 0;
        store.for_each_span(lane, d, begin, end, [&](const Span& span) { within += span.begin_ns >= begin; });
        const auto reported = static_cast<double>(store.span_count(lane, d, begin, end));
        const auto exact = static_cast<double>(within);
        EXPECT_NEAR(reported, exact, 0.06 * exact + 0.005 * all + 8)
            << int{d} << " " << begin << " to " << end;
      }
    }
  }
}

TEST(StateAtATime, IsThatOfAReplayAtEveryCut) {
  // Ordered runs of several threads in one chunk, and stretches that overlap: nothing is in order of time.
  const SyntheticRun run = make_synthetic_run({.world = 1, .steps = 10, .chunk_events = 250});
  for (const std::size_t size : {250U, 700U, 6000U}) {
    Store store;
    store.seal_after(size);
    store.set_tables(0, run.tables[0]);
    std::vector<ev::Event> events;
    std::set<std::int64_t> cuts;
    std::uint64_t sequence = 0;
    for (const Chunk& chunk : run.chunks) {
      for (const bool first : {true, false}) {
        Chunk part;
        part.sequence = sequence++;
        part.clock_offset_ns = chunk.clock_offset_ns;
        for (std::size_t i = 0; i < chunk.events.size(); ++i) {
          if ((i / 40 % 2 == 0) == first) part.events.push_back(chunk.events[i]);
        }
        for (const ev::Event& event : part.events) {
          events.push_back(event);
          events.back().ticks += static_cast<std::uint64_t>(chunk.clock_offset_ns);
        }
        const auto [begin, end] = part.times();
        for (const std::int64_t near : {-1, 0, 1}) {
          cuts.insert(begin + chunk.clock_offset_ns + near);
          cuts.insert(end + chunk.clock_offset_ns + near);
        }
        store.ingest(part);
      }
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const ev::Event& a, const ev::Event& b) { return a.ticks < b.ticks; });
    // Looked at forwards and from anywhere, with a cache that holds a few blocks.
    store.set_cache_bytes(1U << 16);
    std::vector<std::int64_t> times(cuts.begin(), cuts.end());
    for (std::size_t i = 0; i + 7 < times.size(); i += 7) std::swap(times[i], times[times.size() - 1 - i]);
    const std::size_t params = store.tables().params.size();
    std::vector<ParamState> replay(params), states(params);
    for (std::size_t t = 0; t < times.size(); t += 3) {
      const std::int64_t at = times[t];
      for (ParamState& state : replay) state = {};
      std::array<std::int64_t, ev::kMemoryPoolCount> bytes{};
      for (const ev::Event& event : events) {
        if (static_cast<std::int64_t>(event.ticks) > at) break;
        if (event.kind == ev::EventKind::param_status) {
          replay[event.a].status = event.code & 0xF;
          replay[event.a].since_ns = static_cast<std::int64_t>(event.ticks) - store.origin_ns();
        }
        if (event.kind == ev::EventKind::memory_alloc) bytes[event.code >> 4] += event.v0;
        if (event.kind == ev::EventKind::memory_free) bytes[event.code >> 4] -= event.v0;
      }
      store.param_states(0, at - store.origin_ns(), states);
      for (std::size_t p = 0; p < params; ++p) {
        ASSERT_EQ(states[p].status, replay[p].status) << size << " at " << at << " of " << p;
        ASSERT_EQ(states[p].since_ns, replay[p].since_ns) << size << " at " << at << " of " << p;
      }
      for (std::size_t p = 0; p < bytes.size(); ++p) {
        const auto pool = static_cast<ev::MemoryPool>(p);
        ASSERT_EQ(store.memory_at(0, pool, at - store.origin_ns()).total(), bytes[p]) << size << " at " << at;
      }
    }
  }
}

}  // namespace
}  // namespace shardscope::store
