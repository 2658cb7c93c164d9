// Levels of detail against the sum over spans, at every zoom, while the row grows.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "app/store/density_pyramid.h"
#include "tests/app/store/event_builder.h"

namespace shardscope::store {
namespace {

using ev::EventKind;
constexpr LaneId kLane{0, ev::StreamId::compute};

struct Exact {
  double busy = 0;
  std::map<std::uint8_t, double> by_code;
};

Exact exact(std::span<const Span> spans, double begin, double end, double now) {
  Exact out;
  for (const Span& span : spans) {
    const double to = span.end_ns == kOpen ? now : static_cast<double>(span.end_ns);
    const double overlap = std::min(end, to) - std::max(begin, static_cast<double>(span.begin_ns));
    if (overlap <= 0) continue;
    out.busy += overlap;
    out.by_code[span.code] += overlap;
  }
  return out;
}

/// Modules of random lengths and gaps; lengths from nanoseconds to milliseconds, with bursts.
class Row {
 public:
  explicit Row(std::uint64_t seed) : random_(seed) {}
  void grow(Store& store, std::size_t spans) {
    ChunkBuilder chunk(0, sequence_++);
    for (std::size_t i = 0; i < spans; ++i) {
      const bool burst = random_() % 1000 < 995;
      now_ += static_cast<std::int64_t>(random_() % (burst ? 300 : 2'000'000));
      const auto code = static_cast<std::uint8_t>(random_() % 10 < 7 ? 0 : 1);
      chunk.compute(now_, EventKind::module_begin, 5, code);
      now_ += static_cast<std::int64_t>(random_() % (burst ? 900 : 500'000));
      chunk.compute(now_, EventKind::module_end, 5, code);
    }
    store.ingest(chunk.chunk);
  }

 private:
  std::mt19937_64 random_;
  std::int64_t now_ = 1'000'000'000;
  std::uint64_t sequence_ = 0;
};

TEST(Density, AgreesWithTheSpansAtEveryZoom) {
  Store store;
  Row row(1);
  std::mt19937_64 random(2);
  for (int stage = 0; stage < 6; ++stage) {
    row.grow(store, stage == 5 ? 60'000 : 3'000);
    for (int zoom = 0; zoom < 24; ++zoom) {
      const auto width =
          static_cast<std::int64_t>(static_cast<double>(store.end_ns()) * std::pow(0.6, zoom)) + 200;
      const std::int64_t begin =
          zoom == 0 ? 0 : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(store.end_ns()));
      const std::int64_t end = begin + width;
      std::vector<Density> columns(97);
      store.density(kLane, 0, begin, end, columns);
      const std::vector<Span> seen = store.spans(kLane, 0, begin, end);
      double shown = 0;
      double error = 0;
      const double column_ns = static_cast<double>(width) / 97;
      for (std::size_t c = 0; c < columns.size(); ++c) {
        const double from = static_cast<double>(begin) + column_ns * static_cast<double>(c);
        const Exact real = exact(seen, from, from + column_ns, static_cast<double>(store.end_ns()));
        EXPECT_GE(columns[c].busy, 0.0F);
        EXPECT_LE(columns[c].busy, 1.0F);
        shown += columns[c].busy * column_ns;
        error += std::abs(columns[c].busy * column_ns - real.busy);
        if (columns[c].busy > 0) {
          EXPECT_GT(columns[c].count, 0U);
          EXPECT_EQ(columns[c].dominant, EventKind::module_begin);
        }
      }
      const Exact all = exact(seen, static_cast<double>(begin), static_cast<double>(end),
                              static_cast<double>(store.end_ns()));
      // Edges of buckets are split by overlap: 2 % of the view, plus rounding of a float.
      EXPECT_NEAR(shown, all.busy, 0.02 * static_cast<double>(width) + 1)
          << "stage " << stage << " zoom " << zoom;
      EXPECT_LT(error, 0.10 * static_cast<double>(width) + 2) << "stage " << stage << " zoom " << zoom;
    }
  }
}

TEST(Density, CountsEverySpanOnce) {
  Store store;
  Row row(3);
  row.grow(store, 40'000);
  for (const std::size_t n : {1U, 7U, 100U, 1000U}) {
    std::vector<Density> columns(n);
    store.density(kLane, 0, 0, store.end_ns() + 1, columns);
    std::uint64_t count = 0;
    std::uint64_t carried = 0;  // a column in the middle of a span counts it although it began before
    for (const Density& column : columns) {
      count += column.count;
      carried += 1;
    }
    EXPECT_GE(count, 40'000U);
    EXPECT_LE(count, 40'000U + carried);
  }
}

TEST(Density, ASpanBeforeALongIdleTimeStays) {
  Store store;
  ChunkBuilder chunk;
  chunk.compute(0, EventKind::module_begin, 1).compute(500, EventKind::module_end, 1);
  chunk.compute(100'000'000'000, EventKind::module_begin, 1);
  chunk.compute(100'000'000'500, EventKind::module_end, 1);
  store.ingest(chunk.chunk);
  std::vector<Density> columns(10);
  store.density(kLane, 0, 0, store.end_ns() + 1, columns);
  EXPECT_EQ(columns.front().count, 1U);
  EXPECT_EQ(columns[5].count, 0U);
  EXPECT_EQ(columns.back().count, 1U);
  EXPECT_EQ(store.span_count(kLane, 0, 0, 1'000'000'000), 1U);
}

TEST(Density, NamesTheKindWithMostOfTheTime) {
  Store store;
  ChunkBuilder chunk;
  std::int64_t now = 0;
  for (int i = 0; i < 50'000;
       ++i) {  // many short ones of code 1, a few longer ones of code 2 with a third of the time
    const std::uint8_t code = i % 10 == 0 ? 2 : 1;
    chunk.compute(now, EventKind::module_begin, 1, code);
    now += code == 2 ? 450 : 100;
    chunk.compute(now, EventKind::module_end, 1, code);
  }
  store.ingest(chunk.chunk);
  std::vector<Density> columns(50);
  store.density(kLane, 0, 0, now, columns);
  for (const Density& column : columns) {
    EXPECT_EQ(column.dominant_code, 1);
    EXPECT_NEAR(column.busy, 1.0, 0.01);
  }
}

TEST(Density, EmptyAndForeignRangesAreFree) {
  Store store;
  std::vector<Density> columns(8, Density{.busy = 9});
  store.density(kLane, 0, 0, 100, columns);
  EXPECT_EQ(columns[3].busy, 0.0F);
  Row row(4);
  row.grow(store, 10'000);
  for (const auto& [begin, end] :
       {std::pair{-500'000'000L, -1L}, std::pair{store.end_ns() + 10, store.end_ns() + 99'999'999},
        std::pair{50L, 50L}}) {
    std::fill(columns.begin(), columns.end(), Density{.busy = 9});
    store.density(kLane, 0, begin, end, columns);
    for (const Density& column : columns) EXPECT_EQ(column.busy, 0.0F);
  }
  store.density(kLane, 9, 0, 100, columns);
  store.density(kLane, 0, 0, 100, {});
}

TEST(Density, WhatIsForgottenLeavesTheRest) {
  // A span of 600 ns in every 1,000.
  DensityPyramid row;
  for (std::int64_t at = 0; at < 1'000'000; at += 1000) row.append(at, at + 600, EventKind::module_begin, 3);
  const std::int64_t wide = std::int64_t{1} << row.shift();
  // From the middle of a bucket to the end of another one.
  row.forget(100 * wide + wide / 2, 200 * wide);
  row.settle();
  const DensityPyramid before = row;
  row.forget(-5'000'000, -1);
  row.forget(2'000'000'000, 3'000'000'000);
  row.settle();
  for (const DensityPyramid* const one : std::initializer_list<const DensityPyramid*>{&row, &before}) {
    const auto busy = [&](std::int64_t from, std::int64_t to) {
      DensityBucket sum;
      one->add_to({from, to, {&sum, 1}});
      return sum;
    };
    EXPECT_EQ(busy(101 * wide, 200 * wide).busy_ns, 0);
    EXPECT_EQ(busy(101 * wide, 200 * wide).begins, 0U);
    EXPECT_NEAR(busy(100 * wide, 101 * wide).busy_ns, 0.3 * static_cast<double>(wide), 300);
    EXPECT_NEAR(busy(0, 100 * wide).busy_ns, 0.6 * static_cast<double>(100 * wide), 600);
    EXPECT_NEAR(one->total().busy_ns, 0.6 * (1e6 - 99.5 * static_cast<double>(wide)), 1200);
    EXPECT_NEAR(one->total().begins, 1e-3 * (1e6 - 99.5 * static_cast<double>(wide)), 2);
  }
}

/// Busy at every column from `begin` on, in columns that are a fraction of a nanosecond wide or a few.
void expect_busy_throughout(const Store& store, std::int64_t begin, std::uint8_t depth = 0) {
  for (const std::int64_t width : {1, 3, 40, 96, 97, 150, 500, 5'000}) {
    std::vector<Density> columns(97);
    store.density(kLane, depth, begin, begin + width, columns);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      EXPECT_FLOAT_EQ(columns[c].busy, 1.0F) << "column " << c << " of " << width << " ns";
      EXPECT_GT(columns[c].count, 0U);
      EXPECT_EQ(columns[c].dominant, EventKind::module_begin);
    }
  }
}

TEST(Density, IsBusyInsideOneSpanHoweverNarrowTheColumns) {
  Store store;
  store.seal_after(4);
  ChunkBuilder first(0, 0);
  first.compute(1000, EventKind::module_begin, 1).compute(2000, EventKind::module_begin, 2);
  first.host(2500, EventKind::tokens).host(2600, EventKind::tokens);
  store.ingest(first.chunk);  // a block from here on
  ChunkBuilder second(0, 1);
  second.compute(90'000, EventKind::module_end, 2).compute(100'000, EventKind::module_end, 1);
  store.ingest(second.chunk);
  const std::int64_t origin = 1000;
  for (const std::int64_t at : {5'000, 20'000, 47'123}) expect_busy_throughout(store, at - origin);
  expect_busy_throughout(store, 3'000 - origin, 1);
}

TEST(Density, ColumnsNarrowerThanANanosecondShowTheOneTheyArePartOf) {
  Store store;
  ChunkBuilder chunk;
  chunk.compute(100, EventKind::module_begin, 1).compute(103, EventKind::module_end, 1);
  chunk.compute(105, EventKind::module_begin, 1).compute(120, EventKind::module_end, 1);
  store.ingest(chunk.chunk);
  std::vector<Density> columns(40);  // four of each nanosecond
  store.density(kLane, 0, 0, 10, columns);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const bool busy = c < 12 || c >= 20;
    EXPECT_FLOAT_EQ(columns[c].busy, busy ? 1.0F : 0.0F) << c;
    EXPECT_EQ(columns[c].count > 0, busy) << c;
  }
}

}  // namespace
}  // namespace shardscope::store
