// What the page of a run calls the spans that it draws.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "app/analysis/summary.h"
#include "app/export/html_report.h"
#include "app/store/chunk.h"
#include "app/store/store.h"
#include "runtime/plan/prefetch_outcome.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
using ev::EventKind;
using ev::StreamId;

/// A rank with one step of a millisecond, in which `events` happen.
store::Store one_step(const std::vector<ev::Event>& events) {
  store::Store store;
  ev::RunTables tables;
  tables.run_id = "test";
  tables.world = tables.local_world = 1;
  tables.stage = 3;
  tables.elems = 10;
  tables.modules = {{0, ev::kNoId, "", "Root", {0}, true}};
  tables.params = {{0, "weight", "f32", {10}, 10, 10, 0, {0}, false}};
  store.set_tables(0, tables);
  store::Chunk chunk;
  chunk.rank = 0;
  chunk.events = events;
  chunk.events.push_back({0, EventKind::step_begin, StreamId::host, 0, 0, ev::kNoId, ev::kNoId, 0, 0});
  chunk.events.push_back({1'000'000, EventKind::step_end, StreamId::host, 0, 0, ev::kNoId, ev::kNoId, 0, 0});
  std::ranges::stable_sort(chunk.events, {}, &ev::Event::ticks);
  store.ingest(chunk);
  return store;
}

TEST(Report, NamesWaitsThatAreForNoModuleAndSpansWithoutAnEnd) {
  const auto event = [](std::uint64_t at, EventKind kind, std::uint32_t a, std::uint32_t b) {
    return ev::Event{at, kind, StreamId::compute, 0, a, b, ev::kNoId, 0, 0};
  };
  const store::Store store = one_step({
      event(100'000, EventKind::fetch_wait_begin, 0, 6),
      event(200'000, EventKind::fetch_wait_end, 0, 6),
      event(300'000, EventKind::fetch_wait_begin, ev::kNoId, 7),
      event(400'000, EventKind::fetch_wait_end, ev::kNoId, 7),
      event(500'000, EventKind::data_wait_begin, 0, 0),
      event(600'000, EventKind::data_wait_end, 0, 0),
      event(700'000, EventKind::module_begin, 0, 0),
  });
  const std::string page = html_report(store, analysis::summarize(store), {});
  EXPECT_THAT(page, testing::HasSubstr("<title>model waits for gather 6: 100 µs</title>"));
  EXPECT_THAT(page, testing::HasSubstr("<title>wait for gather 7 of persistent parameters: 100 µs</title>"));
  EXPECT_THAT(page, testing::HasSubstr("<title>wait for data: 100 µs</title>"));
  EXPECT_THAT(page, testing::HasSubstr("<title>model forward: not ended, 300 µs up to the last event ("));
  EXPECT_THAT(page, testing::Not(testing::HasSubstr("4294967295")));
}

/// Copies have the detail of memory events: where there is none of these, they lie in what looks idle.
TEST(Report, DoesNotCallIdleWhatMayHaveBeenCopying) {
  std::vector<ev::Event> events{
      {100'000, EventKind::module_begin, StreamId::compute, 0, 0, ev::kNoId, ev::kNoId, 0, 0},
      {400'000, EventKind::module_end, StreamId::compute, 0, 0, ev::kNoId, ev::kNoId, 0, 0}};
  const auto page = [&] {
    const store::Store store = one_step(events);
    return html_report(store, analysis::summarize(store), {});
  };
  EXPECT_THAT(page(), testing::HasSubstr("<title>idle or copying: 700 µs"));
  events.push_back(
      {50'000, EventKind::memory_alloc, StreamId::host, 0, ev::kNoId, ev::kNoId, ev::kNoId, 64, 64});
  EXPECT_THAT(page(), testing::HasSubstr("<title>idle: 700 µs"));
}

/// Prefetches are summed over ranks, collectives are one rank's: each says so, for the counts do not match.
TEST(Report, SaysOfWhichRanksPrefetchesAndCollectivesAre) {
  test::RunBuilder run(2);
  const auto early = static_cast<std::uint8_t>(plan::PrefetchOutcome::early);
  const auto late = static_cast<std::uint8_t>(plan::PrefetchOutcome::late);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    for (std::uint32_t step = 0; step < 2; ++step) {
      const std::int64_t at = step * 1000;
      run.span(rank, at, at + 900, EventKind::step_begin, StreamId::host, step);
      run.span(rank, at + 100, at + 800, EventKind::module_begin, StreamId::compute, 1);
      for (std::uint32_t gather = 0; gather < 3; ++gather) {
        const std::uint32_t id = 3 * step + gather;
        run.instant(rank, at + 10 + gather, EventKind::prefetch_issued, StreamId::host, id, 1);
        run.span(rank, at + 200 + 50 * gather, at + 240 + 50 * gather, EventKind::collective_begin,
                 StreamId::gather, id, id, static_cast<std::uint8_t>(ev::CollectiveOp::all_gather), 100, 400);
        run.instant(rank, at + 500 + gather, EventKind::prefetch_outcome, StreamId::compute, id, 1, 1,
                    rank == 1 && gather == 0 ? late : early, rank == 1 && gather == 0 ? -2'000'000 : 30);
      }
    }
  }
  const store::Store& store = run.build();
  const std::string page = html_report(store, analysis::summarize(store), {});
  EXPECT_THAT(page, testing::HasSubstr("<tr><td>all_gather<td class=n>3<"));
  EXPECT_THAT(page, testing::HasSubstr("<p>Collectives of rank 0.</p>"));
  EXPECT_THAT(page,
              testing::HasSubstr("<p>Prefetches of all ranks, all steps: 10 early, 0 just in time, 2 late "
                                 "(4.00 ms waited), 0 mistargeted, 0 unused. "));
}

}  // namespace
}  // namespace shardscope::exporter
