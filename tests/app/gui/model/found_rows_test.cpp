// What the panels list of a search while it changes under them: other words, a run whose time 0 moves, the
// same once more.
#include "app/gui/model/found_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "app/gui/model/app_state.h"
#include "tests/app/gui/model_fixture.h"
#include "tests/app/store/event_builder.h"

namespace shardscope::gui {
namespace {

using namespace std::chrono_literals;

void search_all(AppState& app) {
  app.find.wanted = true;
  while (app.find.advance(app, 1h)) {
  }
}

/// Every row of a span is a hit that there is, with the words of the search that runs now.
void expect_rows_of_the_search(const AppState& app, const FoundRows& rows) {
  for (const HitRef& ref : rows.hits()) {
    ASSERT_TRUE(place_of(app.find.search, ref)) << ref.lane << " " << ref.hit;
    const SpanHit& hit = app.find.search.lanes()[ref.lane].hits[ref.hit];
    EXPECT_NE(app.find.search.name(hit.name).find(app.find.words), std::string::npos);
  }
  EXPECT_EQ(rows.table().rows.size(), rows.names().size() + rows.hits().size());
}

class FoundRowsOf : public Model {};

TEST_F(FoundRowsOf, OtherWordsAreOfTheNewSearchInTheSameFrameHoweverSoonTheyCome) {
  app_.find.words = "attn";
  search_all(app_);
  FoundRows rows;
  rows.refresh(app_, 10.0);
  ASSERT_GT(rows.hits().size(), 100U);
  app_.find.words = "all-gather";
  EXPECT_TRUE(rows.refresh(app_, 10.01)) << "typed in this frame, not searched yet";
  app_.find.advance(app_, 0ns);  // in between: the search has begun anew
  ASSERT_FALSE(app_.find.search.done());
  rows.refresh(app_, 10.02);
  expect_rows_of_the_search(app_, rows);
  for (std::size_t row = 0; row < 200; ++row) rows.go_to(app_, row);  // Enter, whatever was chosen
  for (double at = 10.03; app_.find.advance(app_, 0ns); at += 0.01) {
    rows.refresh(app_, at);
    expect_rows_of_the_search(app_, rows);
  }
  rows.refresh(app_, 99);
  EXPECT_EQ(rows.hits().size(), std::min<std::size_t>(app_.find.search.hits(), HitRows::kMost));
}

TEST_F(FoundRowsOf, ARowOfASearchThatIsOverGoesNowhere) {
  app_.find.words = "attn";
  search_all(app_);
  FoundRows rows;
  rows.refresh(app_, 10);
  app_.find.words = "no such name";
  search_all(app_);
  app_.clear_selection();
  rows.go_to(app_, rows.names().size() + 5);
  EXPECT_EQ(app_.selection.kind, SelectionKind::none);
}

TEST_F(FoundRowsOf, GroupsAreOfTheGroupingThatIsChosenAtOnce) {
  search_all(app_);
  FoundGroups groups;
  groups.refresh(app_, 10);
  app_.find.words = "attn";  // a search that is under way, of which tables are made anew now and then
  app_.find.by = GroupBy::rank;
  app_.find.advance(app_, 0ns);
  ASSERT_FALSE(app_.find.search.done());
  groups.narrow_to(app_.find, 0);
  EXPECT_TRUE(app_.find.filter.empty()) << "the row was of another grouping";
  groups.refresh(app_, 10.01);
  EXPECT_EQ(groups.groups().table.columns.front().name, "rank");
}

TEST_F(FoundRowsOf, TheSameOnceMoreIsShownAlsoWhereItTakesOneSlice) {
  store::Store store;
  store::ChunkBuilder events;
  for (int i = 0; i < 5; ++i) {
    events.compute(i * 10, ev::EventKind::module_begin, 3);
    events.compute(i * 10 + 5, ev::EventKind::module_end, 3);
  }
  store.ingest(events.chunk);
  AppState app;
  app.run = std::make_unique<Session>(std::move(store));
  app.find.words = "module";
  search_all(app);
  FoundRows rows;
  rows.refresh(app, 10);
  const auto before = app.find.version;
  app.find.again = true;
  search_all(app);
  EXPECT_GT(app.find.version, before) << "or no panel sees that it was searched anew";
  EXPECT_EQ(app.find.searches, 2U);
  app.find.forget();
  search_all(app);
  EXPECT_GT(app.find.searches, 2U) << "another run's first search is not this one's";
}

/// One rank of spans from 1000 on, and a second that comes later with earlier ones.
struct LateRank {
  static store::Chunk chunk(std::uint32_t rank, std::int64_t from) {
    store::ChunkBuilder events(rank);
    for (int i = 0; i < 50; ++i) {
      events.compute(from + i * 10, ev::EventKind::module_begin, static_cast<std::uint32_t>(i % 3));
      events.compute(from + i * 10 + 5, ev::EventKind::module_end, static_cast<std::uint32_t>(i % 3));
    }
    return events.chunk;
  }
};

class MovedOrigin : public ::testing::TestWithParam<bool> {};

TEST_P(MovedOrigin, BeginsSearchFiguresAndRowsAnewAlsoAfterAllWasFound) {
  const bool was_done = GetParam();
  store::Store first;
  first.ingest(LateRank::chunk(0, 1000));
  AppState app;
  app.run = std::make_unique<Session>(std::move(first));
  app.find.words = "module 1";
  app.find.wanted = true;
  if (was_done)
    search_all(app);
  else
    while (app.find.search.hits() == 0) app.find.advance(app, 0ns);
  ASSERT_EQ(app.find.search.done(), was_done);
  app.find.filter.name = 0;
  app.find.advance(app, 0ns);
  FoundRows rows;
  rows.refresh(app, 10);
  // What a viewer does when the second rank connects.
  auto& live = const_cast<store::Store&>(app.store());
  const std::int64_t origin = live.origin_ns();
  live.ingest(LateRank::chunk(1, 400));
  ASSERT_LT(live.origin_ns(), origin);
  app.find.advance(app, 0ns);
  EXPECT_FALSE(app.find.filter.name) << "its number is the old search's";
  rows.refresh(app, 10.01);
  expect_rows_of_the_search(app, rows);
  search_all(app);
  rows.refresh(app, 20);
  std::multiset<std::int64_t> found, expected;
  for (const HitRef& ref : rows.hits()) found.insert(place_of(app.find.search, ref)->begin_ns);
  for (const store::LaneId& lane : live.lanes()) {
    for (const store::Span& span : live.spans(lane, 0)) {
      if (span.a == 1) expected.insert(span.begin_ns);
    }
  }
  ASSERT_EQ(expected.size(), 34U);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(app.find.statistics.whole().times.count(), expected.size()) << "figures are counted once";
}
INSTANTIATE_TEST_SUITE_P(Search, MovedOrigin, ::testing::Bool());

TEST_F(FoundRowsOf, ASearchCutShortSaysOfWhatItsFiguresAre) {
  app_.find.search.start({});
  while (app_.find.search.advance(data(), 1h)) {
  }
  EXPECT_EQ(app_.find.coverage(), "");
  SpanQuery query;
  query.most = 100;
  app_.find.search.start(query);
  while (app_.find.search.advance(data(), 0ns)) {
  }
  ASSERT_TRUE(app_.find.search.cut_short());
  EXPECT_EQ(app_.find.coverage(), "of the first " + std::to_string(app_.find.search.hits()) + " spans found");
}

class Marks : public Model {
 protected:
  static HitMarks marks(const SpanSearch& search, const SpanFilter& filter = {}) {
    HitMarks out;
    out.start(filter);
    while (out.advance(search, 0ns)) {
    }
    return out;
  }
};

TEST_F(Marks, HoldEveryHitOnceByDepthInOrder) {
  search_all(app_);
  const SpanSearch& search = app_.find.search;
  SpanFilter filter;
  filter.narrow(GroupBy::rank, 1);
  for (const SpanFilter& one : {SpanFilter{}, filter}) {
    const HitMarks all = marks(search, one);
    std::size_t held = 0, expected = 0;
    for (std::size_t i = 0; i < search.lanes().size(); ++i) {
      const SpanSearch::Lane& lane = search.lanes()[i];
      expected += static_cast<std::size_t>(
          std::ranges::count_if(lane.hits, [&](const SpanHit& hit) { return one.accepts(lane.id, hit); }));
      for (const HitMarks::List& list : all.lists(i)) {
        held += list.hits.size();
        EXPECT_TRUE(std::ranges::is_sorted(list.hits));
        for (const std::uint32_t hit : list.hits) {
          EXPECT_EQ(lane.hits[hit].depth, list.depth);
          EXPECT_EQ(lane.hits[hit].wait, list.wait);
        }
      }
    }
    EXPECT_EQ(held, expected);
  }
}

TEST_F(Marks, CoverTheColumnsOfAllHitsWithFewMarks) {
  search_all(app_);
  const SpanSearch& search = app_.find.search;
  const HitMarks all = marks(search);
  for (const double share : {1.0, 0.1, 0.003}) {
    const auto length = static_cast<std::int64_t>(static_cast<double>(data().end_ns()) * share);
    const TimeScale scale{{data().end_ns() / 3, data().end_ns() / 3 + length}, 100, 300};
    for (std::size_t i = 0; i < search.lanes().size(); ++i) {
      const SpanSearch::Lane& lane = search.lanes()[i];
      for (const HitMarks::List& list : all.lists(i)) {
        const auto drawn = marks_of(lane, list, scale, 2);
        EXPECT_LE(drawn.size(), 302U);
        const auto marked = [&](float x) {
          return std::ranges::any_of(
              drawn, [&](const HitMark& mark) { return x >= mark.x0 - 2 && x <= mark.x1 + 2; });
        };
        for (const std::uint32_t hit : list.hits) {
          const std::int64_t begin = lane.hits[hit].begin_ns, end = begin + lane.hits[hit].time_ns;
          if (end <= scale.range.begin_ns || begin >= scale.range.end_ns) continue;
          EXPECT_TRUE(marked(std::clamp(scale.x_of(begin), 100.0F, 400.0F)));
          EXPECT_TRUE(marked(std::clamp(scale.x_of(end), 100.0F, 400.0F)));
        }
      }
    }
  }
}

TEST(MarksOfMany, CostWhatARowHasOfColumnsNotWhatOtherRowsHaveOfHits) {
  // One long span with a million inside: on the row of the long one the others are not looked at.
  SpanSearch::Lane lane{{0, ev::StreamId::compute}, {}, 0};
  HitMarks::List outer{0, false, {0}}, inner{1, false, {}};
  constexpr std::int64_t kSpans = 1'000'000;
  lane.hits.resize(kSpans + 1);
  lane.hits[0].time_ns = kSpans * 10;
  for (std::uint32_t i = 1; i <= kSpans; ++i) {
    lane.hits[i].begin_ns = std::int64_t{i} * 10;
    lane.hits[i].time_ns = 6;
    lane.hits[i].depth = 1;
    inner.hits.push_back(i);
  }
  const TimeScale scale{{0, kSpans * 10}, 0, 1600};
  const auto began = std::chrono::steady_clock::now();
  for (int frame = 0; frame < 200; ++frame) {
    ASSERT_EQ(marks_of(lane, outer, scale, 2).size(), 1U);
    ASSERT_LE(marks_of(lane, inner, scale, 2).size(), 1602U);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 2s) << "200 frames; by stepping through all, many more";
}

TEST(FamilyCaches, ComputeAFamilyOnceUntilTheStoreChanges) {
  store::Store store;
  store::ChunkBuilder events;
  events.compute(0, ev::EventKind::module_begin, 1);
  for (int i = 0; i < 100; ++i) {
    events.compute(10 + i * 10, ev::EventKind::module_begin, 2);
    events.compute(15 + i * 10, ev::EventKind::module_end, 2);
  }
  events.compute(2000, ev::EventKind::module_end, 1);
  store.ingest(events.chunk);
  const store::Span outer = store.spans(store::kCompute, 0).front();
  FamilyCache cache;
  for (int frame = 0; frame < 5; ++frame) {
    const SpanFamily& family = cache.of(store, store::kCompute, outer);
    EXPECT_EQ(family.children, 100U);
    EXPECT_EQ(family.self_ns, 1500);
  }
  EXPECT_EQ(cache.computed(), 1U);
  EXPECT_EQ(cache.of(store, store::kCompute, store.spans(store::kCompute, 1).front()).parents.size(), 1U);
  EXPECT_EQ(cache.computed(), 2U);
  store.ingest(store::ChunkBuilder(0, 1)
                   .compute(3000, ev::EventKind::module_begin, 1)
                   .compute(3001, ev::EventKind::module_end, 1)
                   .chunk);
  EXPECT_EQ(cache.of(store, store::kCompute, outer).children, 100U);
  EXPECT_EQ(cache.computed(), 3U);
}

TEST(FamilyCaches, ReadNoBlockThatThereIsNoTimeForAndAskAgain) {
  store::SyntheticOptions options;
  options.world = 1;
  options.steps = 12;
  store::Store sealed;
  sealed.seal_after(200);
  store::fill_store(sealed, store::make_synthetic_run(options));
  const store::LaneId lane{0, ev::StreamId::compute};
  const auto depth = static_cast<std::uint8_t>(sealed.depth_count(lane) - 1);
  const store::Span span = sealed.spans(lane, depth)[3];
  sealed.set_cache_bytes(0);
  sealed.limit_reading(0ns, 0ns);
  (void)sealed.ready(lane, sealed.end_ns() / 2, sealed.end_ns() / 2 + 1);  // what time there is goes here
  FamilyCache cache;
  EXPECT_FALSE(cache.of(sealed, lane, span).read);
  EXPECT_TRUE(cache.of(sealed, lane, span).parents.empty());
  sealed.limit_reading(std::nullopt);
  EXPECT_EQ(cache.of(sealed, lane, span).parents.size(), span.depth);
}

}  // namespace
}  // namespace shardscope::gui
