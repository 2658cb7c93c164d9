// Tables of a recording and their filters.
#include "app/arrow/table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/app/store/synthetic_run.h"

namespace shardscope::arrow {
namespace {

namespace ev = instrumentation;

Filter of_ranks(std::vector<std::uint32_t> ranks, std::vector<std::uint32_t> steps = {}) {
  Filter filter;
  filter.ranks = std::move(ranks);
  filter.steps = std::move(steps);
  return filter;
}

class Tables : public ::testing::Test {
 protected:
  /// Rows of `table` by rank, taken a few at a time.
  [[nodiscard]] std::map<std::uint32_t, std::int64_t> rows_by_rank(const std::string& table,
                                                                   const Filter& filter,
                                                                   std::size_t at_once = 100) const {
    std::map<std::uint32_t, std::int64_t> out;
    const std::unique_ptr<Rows> rows = open_table(store_, info_, table, filter);
    std::size_t rank_column = 0;
    while (rows->schema()[rank_column].name != "rank") ++rank_column;
    for (bool more = true; more;) {
      Batch batch(rows->schema());
      more = rows->fill(batch, at_once);
      ArrowArray array{};
      batch.release_to(array);
      const auto* ranks = static_cast<const std::uint32_t*>(array.children[rank_column]->buffers[1]);
      for (std::int64_t row = 0; row < array.length; ++row) ++out[ranks[row]];
      array.release(&array);
    }
    return out;
  }
  store::Store store_ = store::make_synthetic_store();
  store::RecordingInfo info_;
};

TEST_F(Tables, EverySpanIsARowHoweverManyAreTakenAtOnce) {
  const auto all = rows_by_rank("events", {});
  EXPECT_EQ(all.size(), 4U);
  EXPECT_EQ(rows_by_rank("events", {}, 7), all);
  // Each span is a row of `spans`, however many rows are taken at once.
  EXPECT_EQ(rows_by_rank("spans", {}, 7), rows_by_rank("spans", {}));
  for (const auto& [rank, rows] : rows_by_rank("spans", {})) {
    std::int64_t spans = 0;
    for (std::uint8_t stream = 0; stream < ev::kStreamCount; ++stream) {
      const store::LaneId lane{rank, static_cast<ev::StreamId>(stream)};
      for (std::uint8_t depth = 0; depth < store_.depth_count(lane); ++depth)
        store_.for_each_span(lane, depth, store::Store::kBegin, store::Store::kEnd,
                             [&](const store::Span&) { ++spans; });
    }
    EXPECT_EQ(rows, spans) << rank;
  }
}

/// Ended spans of each kind are a row of their lane; a peak is one of each category and their sum.
TEST_F(Tables, SumsHaveARowForEachOfTheirEntries) {
  std::map<std::uint32_t, std::int64_t> totals, peaks;
  for (const store::SpanTotal& total : store_.span_totals()) ++totals[total.lane.rank];
  EXPECT_EQ(rows_by_rank("span_summary", {}), totals);
  for (const store::RankRow& rank : store_.ranks()) {
    for (std::size_t pool = 0; pool < ev::kMemoryPoolCount; ++pool) {
      const auto peak = store_.memory_peak(rank.rank, static_cast<ev::MemoryPool>(pool));
      if (!peak) continue;
      ++peaks[rank.rank];
      for (const std::int64_t held : peak->bytes) peaks[rank.rank] += held != 0 ? 1 : 0;
    }
  }
  EXPECT_FALSE(peaks.empty());
  EXPECT_EQ(rows_by_rank("memory_peaks", {}), peaks);
  EXPECT_TRUE(rows_by_rank("own_times", {}).empty()) << "of a recording with limits alone";
}

TEST_F(Tables, ACounterHasARowForEachSample) {
  EXPECT_TRUE(rows_by_rank("counters", {}).empty());
  store::Chunk chunk;
  chunk.rank = 2;
  for (const std::uint64_t ms : {1, 2, 3})
    chunk.events.push_back({static_cast<std::uint64_t>(store_.end_ns()) + ms * 1'000'000,
                            ev::EventKind::counter, ev::StreamId::host, 0, 7, ev::kNoId, ev::kNoId, 0, 0});
  chunk.sequence = 1'000'000;
  store_.ingest(chunk);
  EXPECT_EQ(rows_by_rank("counters", {}), (std::map<std::uint32_t, std::int64_t>{{2, 3}}));
}

TEST_F(Tables, StepsAndTimesDivideWhatThereIs) {
  const auto spans = rows_by_rank("spans", of_ranks({1}));
  ASSERT_EQ(spans.size(), 1U);
  std::int64_t of_steps = 0;
  for (const store::StepRow& step : store_.steps()) {
    const auto found = rows_by_rank("spans", of_ranks({1}, {step.step, step.step}));
    ASSERT_EQ(found.size(), 1U) << "a step that is requested twice is one";
    of_steps += found.at(1);
  }
  EXPECT_LE(of_steps, spans.at(1));
  EXPECT_GT(of_steps, 0);
  const std::int64_t middle = store_.steps()[1].begin_ns;
  Filter first_part, second_part;
  first_part.end_ns = second_part.begin_ns = middle;
  const auto before = rows_by_rank("spans", first_part), after = rows_by_rank("spans", second_part);
  EXPECT_EQ(before.at(1) + after.at(1), spans.at(1));
}

TEST_F(Tables, WhatIsNotInTheRecordingIsRefusedByName) {
  const auto problem = [&](const Filter& filter) {
    try {
      (void)rows_by_rank("spans", filter);
    } catch (const BadFilter& bad) {
      return std::string(bad.what());
    }
    return std::string();
  };
  EXPECT_NE(problem(of_ranks({9})).find("rank 9: not in the recording, which has 4 ranks"),
            std::string::npos);
  EXPECT_NE(problem(of_ranks({}, {77})).find("step 77: not in the recording, which has steps 0 to 3"),
            std::string::npos);
  Filter kinds;
  kinds.kinds = {"no_such"};
  EXPECT_NE(problem(kinds), "");
}

}  // namespace
}  // namespace shardscope::arrow
