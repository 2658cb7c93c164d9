// What is found in a run before anybody looks: fetches and their outcomes, waits, who came last.
#include "app/gui/model/run_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "app/gui/model/arrivals.h"
#include "app/store/lane.h"
#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

TEST_F(Model, ACollectiveTellsWhichRankEnteredLast) {
  const store::LaneId lane{1, ev::StreamId::gather};
  std::optional<store::Span> gather;
  for (std::uint8_t depth = 0; depth < data().depth_count(lane) && !gather; ++depth) {
    for (const store::Span& span : data().spans(lane, depth)) {
      if (span.kind == ev::EventKind::collective_begin && span.mark_ns > span.begin_ns) gather = span;
    }
  }
  ASSERT_TRUE(gather);
  const std::vector<Arrival> all = arrivals(data(), lane, *gather);
  ASSERT_EQ(all.size(), data().ranks().size());
  const Arrival* last = last_to_arrive(all);
  ASSERT_NE(last, nullptr);
  std::int64_t earliest = last->at_ns;
  for (const Arrival& arrival : all) {
    EXPECT_LE(arrival.at_ns, last->at_ns);
    earliest = std::min(earliest, arrival.at_ns);
    if (arrival.rank != lane.rank) continue;
    EXPECT_EQ(arrival.at_ns, gather->begin_ns);
  }
  EXPECT_EQ(last->late_ns, last->at_ns - earliest);
  EXPECT_TRUE(
      arrivals(data(), {0, ev::StreamId::compute}, data().spans({0, ev::StreamId::compute}, 0)[0]).empty());
}

TEST_F(Model, FetchesHaveParametersAndAnOutcomeThatFitsTheirTimes) {
  const auto fetches = app_.run->index().fetches(0);
  ASSERT_FALSE(fetches.empty());
  std::size_t late = 0;
  std::size_t matched = 0;
  for (const Fetch& fetch : fetches) {
    EXPECT_FALSE(fetch.params.empty());
    matched += fetch.ended_ns != store::kOpen ? 1 : 0;
    if (fetch.outcome() == FetchOutcome::late) {
      ++late;
      EXPECT_GT(fetch.wait_ns, 0);
      EXPECT_TRUE(fetch.prefetched);
    }
    if (fetch.outcome() == FetchOutcome::early) {
      EXPECT_GT(fetch.used_ns, fetch.ended_ns);
    }
  }
  EXPECT_GT(matched, fetches.size() * 9 / 10) << "gathers are matched with their operation";
  EXPECT_GT(late, 0U) << "over this link some prefetches must be late";
}

TEST_F(Model, WaitsAreInOrderAndOnlyWaits) {
  const auto waits = app_.run->index().waits(1);
  ASSERT_FALSE(waits.empty());
  EXPECT_TRUE(std::ranges::is_sorted(waits, {}, &store::Span::begin_ns));
  EXPECT_TRUE(std::ranges::all_of(waits, [](const store::Span& span) { return store::is_wait(span.kind); }));
}

TEST_F(Model, IndexOfAGrowingStoreEqualsTheIndexOfAWholeOne) {
  const store::SyntheticRun run = store::make_synthetic_run();
  store::Store growing;
  RunIndex index;
  for (const auto& tables : run.tables) growing.set_tables(tables.rank, tables);
  for (const auto& row : run.ranks) growing.set_rank(row);
  for (const store::Chunk& chunk : run.chunks) {
    growing.ingest(chunk);
    index.update(growing, Completeness::growing);
  }
  index.update(growing, Completeness::complete);
  for (const store::RankRow& rank : data().ranks()) {
    const auto expected = app_.run->index().fetches(rank.rank);
    const auto got = index.fetches(rank.rank);
    ASSERT_EQ(got.size(), expected.size()) << rank.rank;
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].gather, expected[i].gather);
      EXPECT_EQ(got[i].params, expected[i].params);
      EXPECT_EQ(got[i].outcome(), expected[i].outcome()) << rank.rank << " " << i;
    }
    EXPECT_EQ(index.waits(rank.rank).size(), app_.run->index().waits(rank.rank).size());
  }
}

TEST_F(Model, AnIndexMadeInPartsIsThatOfOneCallAndCoversNothingBefore) {
  const store::StepRow& step = data().steps()[1];
  const RunIndex::Window window{step.begin_ns, step.end_ns};
  RunIndex whole, parts;
  whole.update(data(), Completeness::complete, window);
  int calls = 1;
  for (; !parts.advance(data(), Completeness::complete, window, std::chrono::nanoseconds(0)); ++calls)
    EXPECT_FALSE(parts.covers(window.begin_ns, window.end_ns));
  EXPECT_GE(calls, static_cast<int>(data().ranks().size())) << "a part of a rank in each";
  EXPECT_TRUE(parts.covers(window.begin_ns, window.end_ns));
  for (const store::RankRow& row : data().ranks()) {
    ASSERT_FALSE(whole.fetches(row.rank).empty());
    ASSERT_EQ(parts.fetches(row.rank).size(), whole.fetches(row.rank).size());
    for (std::size_t i = 0; i < whole.fetches(row.rank).size(); ++i) {
      EXPECT_EQ(parts.fetches(row.rank)[i].gather, whole.fetches(row.rank)[i].gather);
      EXPECT_EQ(parts.fetches(row.rank)[i].outcome(), whole.fetches(row.rank)[i].outcome());
    }
    EXPECT_EQ(parts.waits(row.rank).size(), whole.waits(row.rank).size());
  }
}

/// Events of ranks that were read already come before the last part, and the run ends.
TEST_F(Model, AnIndexMadeInPartsHasWhatCameMeanwhile) {
  const store::SyntheticRun run = store::make_synthetic_run();
  store::Store growing;
  for (const auto& tables : run.tables) growing.set_tables(tables.rank, tables);
  for (const auto& row : run.ranks) growing.set_rank(row);
  const std::size_t half = run.chunks.size() / 2;
  for (std::size_t i = 0; i < half; ++i) growing.ingest(run.chunks[i]);
  const RunIndex::Window window{0, data().end_ns()};
  RunIndex parts, whole;
  // All but the parts of the last rank.
  for (std::size_t part = 0; part < 3 * (growing.ranks().size() - 1); ++part)
    ASSERT_FALSE(parts.advance(growing, Completeness::growing, window, std::chrono::nanoseconds(0)));
  for (std::size_t i = half; i < run.chunks.size(); ++i) growing.ingest(run.chunks[i]);
  while (!parts.advance(growing, Completeness::complete, window, std::chrono::nanoseconds(0))) {
  }
  EXPECT_TRUE(parts.current(growing, Completeness::complete));
  whole.update(growing, Completeness::complete, window);
  for (const store::RankRow& row : growing.ranks()) {
    ASSERT_FALSE(whole.fetches(row.rank).empty());
    EXPECT_EQ(parts.fetches(row.rank).size(), whole.fetches(row.rank).size()) << row.rank;
    EXPECT_EQ(parts.waits(row.rank).size(), whole.waits(row.rank).size()) << row.rank;
  }
}

TEST_F(Model, AnIndexIsCurrentUntilTheStoreGrowsOrTheRunEnds) {
  const store::SyntheticRun run = store::make_synthetic_run();
  store::Store growing;
  RunIndex index;
  EXPECT_FALSE(index.current(growing, Completeness::growing));
  for (const auto& tables : run.tables) growing.set_tables(tables.rank, tables);
  growing.ingest(run.chunks[0]);
  index.update(growing, Completeness::growing);
  EXPECT_TRUE(index.current(growing, Completeness::growing));
  EXPECT_FALSE(index.current(growing, Completeness::complete));
  growing.ingest(run.chunks[1]);
  EXPECT_FALSE(index.current(growing, Completeness::growing));
}

TEST_F(Model, AnotherWindowBeginsAnIndexAnew) {
  RunIndex index;
  const std::int64_t end = data().end_ns();
  EXPECT_FALSE(index.advance(data(), Completeness::complete, {0, end / 2}, std::chrono::nanoseconds(0)));
  while (!index.advance(data(), Completeness::complete, {end / 2, end}, std::chrono::nanoseconds(0))) {
  }
  EXPECT_FALSE(index.covers(0, end / 4));
  EXPECT_TRUE(index.covers(end / 2, end));
  ASSERT_FALSE(index.fetches(0).empty());
  EXPECT_GE(index.fetches(0).front().started_ns, end / 2);
}

TEST_F(Model, AnIndexCoversOnlyWhatItWasAskedFor) {
  RunIndex index;
  // Of a run too large for an index of all of it there is none until it is looked at closely; its waits are
  // then drawn from levels of detail, not left out.
  EXPECT_FALSE(index.covers(0, 1000));
  EXPECT_FALSE(index.whole());
  index.update(data(), Completeness::complete, {.begin_ns = 100, .end_ns = 900});
  EXPECT_TRUE(index.covers(100, 900));
  EXPECT_FALSE(index.covers(0, 1000));
  EXPECT_FALSE(index.whole());
  index.update(data(), Completeness::complete);
  EXPECT_TRUE(index.covers(0, 1000));
  EXPECT_TRUE(index.whole());
}

}  // namespace
}  // namespace shardscope::gui
