// Which spans are found, and going through them.
#include "app/gui/model/find_spans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/model/find_names.h"
#include "app/gui/model/finder.h"
#include "app/gui/model/names.h"
#include "app/gui/model/span_family.h"
#include "tests/app/gui/model/searched_spans.h"
#include "tests/app/gui/model_fixture.h"
#include "tests/app/store/event_builder.h"
#include "tests/app/store/odd_ends.h"
#include "tests/app/store/own_spans.h"

namespace shardscope::gui {
namespace {

using namespace std::chrono_literals;

class FindSpans : public Model {};

TEST_F(FindSpans, NothingTypedFindsEverySpanWithItsOwnTime) {
  const SpanSearch search = searched(data(), {});
  EXPECT_EQ(lines(search), lines(walk(data())));
  EXPECT_EQ(search.searched(), search.hits());
  EXPECT_FALSE(search.cut_short());
}

TEST_F(FindSpans, EveryWordIsInTheNameWhateverItsCase) {
  std::vector<Walked> expected = walk(data());
  std::erase_if(expected, [&](const Walked& one) {
    return one.span.kind != ev::EventKind::module_begin ||
           module_name(data(), one.span.a).find("attn") == std::string::npos ||
           static_cast<ev::Pass>(one.span.code) != ev::Pass::forward;
  });
  ASSERT_GT(expected.size(), 20U);
  EXPECT_EQ(lines(searched(data(), {"ATTN forward compute"})), lines(expected));
}

TEST_F(FindSpans, QuotationMarksAskForTheWholeName) {
  const std::vector<Walked> all = walk(data());
  int narrower = 0;  // modules whose words are in the names of others too: of those inside them
  for (const ev::ModuleInfo& module : data().tables().modules) {
    const std::string name = module_name(data(), module.id) + " forward";
    std::vector<Walked> expected = all;
    std::erase_if(expected, [&](const Walked& one) {
      return one.span.kind != ev::EventKind::module_begin || module_of(one.span) != module.id ||
             ev::as<ev::EventKind::module_begin>(one.span).pass != ev::Pass::forward;
    });
    EXPECT_EQ(lines(searched(data(), {'"' + name + '"'})), lines(expected)) << name;
    narrower += !expected.empty() && searched(data(), {name}).hits() > expected.size() ? 1 : 0;
  }
  EXPECT_GT(narrower, 0);
}

TEST_F(FindSpans, ANumberNamesOneCollectiveOnEveryRank) {
  std::vector<Walked> expected = walk(data());
  std::erase_if(expected, [&](const Walked& one) {
    return one.span.kind != ev::EventKind::collective_begin ||
           label_of(data(), one.lane.rank, one.span) != "all-gather 12";
  });
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(lines(searched(data(), {"all-gather 12"})), lines(expected));
}

TEST_F(FindSpans, ARangeTakesWhatOverlapsItWithAllOfItsTime) {
  const std::int64_t from = data().steps()[1].begin_ns + 3'000'000;
  const std::int64_t to = data().steps()[2].begin_ns + 1'000'000;
  std::vector<Walked> expected = walk(data());
  std::erase_if(expected,
                [&](const Walked& one) { return one.span.begin_ns >= to || one.span.end_ns <= from; });
  const SpanSearch search = searched(data(), {"", from, to});
  ASSERT_LT(search.hits(), searched(data(), {}).hits());
  EXPECT_EQ(lines(search), lines(expected)) << "also self times of those that begin before or end after it";
}

TEST_F(FindSpans, ALittleAtATimeFindsTheSame) {
  SpanSearch search;
  search.start({"h.1"});
  int calls = 0;
  std::uint64_t before = 0;
  while (search.advance(data(), 0ns)) {
    ++calls;
    EXPECT_GE(search.searched(), before) << "it only grows";
    before = search.searched();
    for (const SpanSearch::Lane& lane : search.lanes()) EXPECT_LE(lane.settled, lane.hits.size());
  }
  EXPECT_GT(calls, static_cast<int>(data().lanes().size()));
  EXPECT_TRUE(search.done());
  EXPECT_EQ(lines(search), lines(searched(data(), {"h.1"})));
}

TEST_F(FindSpans, NothingIsFoundAndCountedWhereNothingIs) {
  const SpanSearch search = searched(data(), {"no such name"});
  EXPECT_TRUE(search.done());
  EXPECT_EQ(search.hits(), 0U);
  const SpanStatistics statistics = counted(search, GroupBy::rank);
  EXPECT_TRUE(statistics.ready());
  EXPECT_EQ(statistics.whole().times.count(), 0U);
  EXPECT_TRUE(statistics.groups().empty());
  EXPECT_TRUE(histogram(statistics.whole().times, 10).counts.empty());
  EXPECT_FALSE(next_hit(search, {}, {0, {0, 0}}, Toward::later));
  EXPECT_TRUE(searched(store::Store(), {}).done()) << "a run without events";
}

TEST_F(FindSpans, NextAndPreviousGoThroughAllHitsInOrderOfTime) {
  const SpanSearch search = searched(data(), {"reduce-scatter"});
  std::vector<std::int64_t> expected;
  for (const SpanSearch::Lane& lane : search.lanes()) {
    for (const SpanHit& hit : lane.hits) expected.push_back(hit.begin_ns);
  }
  std::ranges::sort(expected);
  ASSERT_GT(expected.size(), 10U);
  std::vector<std::int64_t> later;
  HitPlace at{-1, {0, 0}};
  while (const auto next = next_hit(search, {}, at, Toward::later)) later.push_back((at = *next).begin_ns);
  EXPECT_EQ(later, expected);
  std::vector<std::int64_t> earlier{at.begin_ns};
  while (const auto next = next_hit(search, {}, at, Toward::earlier))
    earlier.push_back((at = *next).begin_ns);
  EXPECT_EQ(earlier, std::vector<std::int64_t>(expected.rbegin(), expected.rend()));
}

TEST_F(FindSpans, GoingToAHitSelectsAndShowsItAndUndoComesBack) {
  app_.find.words = "all-gather";
  app_.find.wanted = true;
  while (app_.find.advance(app_, kAll)) {
  }
  app_.history.note(place_of(app_), 0);
  app_.history.note(place_of(app_), 5);
  const Place before = place_of(app_);
  ASSERT_TRUE(go_to_next_hit(app_, Toward::later));
  ASSERT_TRUE(app_.selection.span);
  EXPECT_EQ(app_.selection.kind, SelectionKind::collective);
  EXPECT_EQ(*app_.cursor_ns, app_.selection.span->begin_ns);
  EXPECT_TRUE(app_.time.range().contains(app_.selection.span->begin_ns));
  EXPECT_TRUE(app_.timeline.expanded.contains(app_.selection.rank));
  const std::int64_t first = app_.selection.span->begin_ns;
  ASSERT_TRUE(go_to_next_hit(app_, Toward::later));
  EXPECT_GE(app_.selection.span->begin_ns, first);
  app_.history.note(place_of(app_), 10);
  const auto back = app_.history.back(11);
  ASSERT_TRUE(back);
  EXPECT_TRUE(back->same_as(before));
}

TEST_F(FindSpans, WhatIsSelectedIsFoundEverywhere) {
  const store::LaneId lane{1, ev::StreamId::compute};
  const auto depth = static_cast<std::uint8_t>(data().depth_count(lane) - 1);
  store::Span span;
  for (const store::Span& one : data().spans(lane, depth)) {
    if (one.kind == ev::EventKind::module_begin) span = one;
  }
  app_.select_span(lane, span);
  app_.find.wanted = true;
  ASSERT_TRUE(find_selection(app_));
  while (app_.find.advance(app_, kAll)) {
  }
  std::vector<Walked> expected = walk(data());
  const std::string name = shared_name(data(), 1, span);
  std::erase_if(expected,
                [&](const Walked& one) { return shared_name(data(), one.lane.rank, one.span) != name; });
  EXPECT_EQ(lines(app_.find.search), lines(expected));
}

TEST_F(FindSpans, ACollectiveIsFoundByWhatItMoves) {
  const RunIndex& index = app_.run->index();
  const auto found_by = [&](const std::string& words) {
    SpanSearch search;
    search.start({words});
    while (search.advance(data(), kAll, &index)) {
    }
    return search;
  };
  // Of every lane, from the events: a reduction's parts, and which parameters a gather made available.
  std::map<std::uint32_t, std::map<std::uint32_t, std::set<std::string>>> reduced;
  for (const store::RankRow& row : data().ranks()) {
    data().for_each_instant(row.rank, store::Store::kBegin, store::Store::kEnd, [&](const ev::Event& event) {
      if (event.kind != ev::EventKind::collective_part) return;
      const auto part = ev::as<ev::EventKind::collective_part>(event);
      reduced[row.rank][part.sequence].insert(param_name(data(), part.param));
    });
  }
  const std::vector<Walked> all = walk(data());
  std::size_t gathers = 0, reductions = 0;
  for (const std::string part : {"h.1.attn", "ln_f.weight", "h.2.mlp.c_fc.weight"}) {
    std::vector<Walked> expected = all;
    std::erase_if(expected, [&](const Walked& one) {
      if (one.span.kind != ev::EventKind::collective_begin) return true;
      const auto names = [&](std::uint32_t param) {
        return param_name(data(), param).find(part) != std::string::npos;
      };
      const Fetch* const fetch =
          one.lane.stream == ev::StreamId::gather ? index.fetch_of(one.lane.rank, one.span) : nullptr;
      if (fetch != nullptr)
        return std::ranges::none_of(fetch->params, names) &&
               module_name(data(), fetch->module).find(part) == std::string::npos;
      const auto& of = reduced[one.lane.rank][ev::as<ev::EventKind::collective_begin>(one.span).sequence];
      return std::ranges::none_of(
          of, [&](const std::string& name) { return name.find(part) != std::string::npos; });
    });
    for (const Walked& one : expected) ++(one.lane.stream == ev::StreamId::gather ? gathers : reductions);
    std::vector<Line> collectives;
    const SpanSearch search = found_by(part);
    for (const SpanSearch::Lane& lane : search.lanes()) {
      if (lane.id.stream != ev::StreamId::gather && lane.id.stream != ev::StreamId::reduce) continue;
      for (const SpanHit& hit : lane.hits)
        collectives.emplace_back(lane.id.rank, static_cast<int>(lane.id.stream), hit.begin_ns, hit.depth,
                                 hit.time_ns, hit.self_ns);
    }
    EXPECT_EQ(collectives, lines(expected)) << part;
    const bool module = part == "h.1.attn";
    EXPECT_EQ(search.hits() > collectives.size(), module) << "modules of that name are found too";
    EXPECT_EQ(lines(found_by(part + " all-gather")).size(),
              static_cast<std::size_t>(
                  std::ranges::count_if(expected,
                                        [&](const Walked& one) {
                                          return ev::as<ev::EventKind::collective_begin>(one.span).op ==
                                                 ev::CollectiveOp::all_gather;
                                        })))
        << part;
  }
  EXPECT_GT(gathers, 0U);
  EXPECT_GT(reductions, 0U);
  EXPECT_EQ(searched(data(), {"ln_f.weight"}).hits(), 0U) << "without an index: by names only";
}

TEST_F(FindSpans, TheTimeOfGathersIsThatOfTheModulesTheyAreFor) {
  app_.find.words = "all-gather";
  app_.find.by = GroupBy::module;
  app_.find.wanted = true;
  while (app_.find.advance(app_, kAll)) {
  }
  std::size_t named = 0;
  for (const SpanGroup& group : app_.find.statistics.groups()) named += group.key != ev::kNoId ? 1 : 0;
  EXPECT_GT(named, 3U);
}

TEST_F(FindSpans, AWaitIsFoundByTheLabelThatTheWindowShows) {
  const std::vector<Walked> all = walk(data());
  for (const auto kind : {ev::EventKind::fetch_wait_begin, ev::EventKind::reduce_wait_begin}) {
    const auto one = std::ranges::find_if(all, [&](const Walked& each) { return each.span.kind == kind; });
    ASSERT_NE(one, all.end()) << ev::name_of(kind);
    const std::string label = label_of(data(), one->lane.rank, one->span);
    std::vector<Walked> expected = all;
    std::erase_if(expected,
                  [&](const Walked& each) { return label_of(data(), each.lane.rank, each.span) != label; });
    EXPECT_EQ(lines(searched(data(), {label})), lines(expected)) << label;
  }
}

TEST_F(FindSpans, ASpanKnowsItsParentsAndItsOwnTime) {
  const std::vector<Walked> all = walk(data());
  for (const Walked& one : all) {
    if (one.lane.rank != 1) continue;
    const SpanFamily family = family_of(data(), one.lane, one.span);
    EXPECT_EQ(family.parents.size(), one.span.depth);
    ASSERT_TRUE(family.self_ns);
    EXPECT_EQ(*family.self_ns, one.self_ns);
  }
}

TEST(FindSpansOfOneRank, SealedIntoBlocksGiveTheSame) {
  store::SyntheticOptions options;
  options.world = 1;
  options.steps = 12;
  store::Store whole;
  store::Store sealed;
  sealed.seal_after(200);
  const store::SyntheticRun run = store::make_synthetic_run(options);
  store::fill_store(whole, run);
  store::fill_store(sealed, run);
  ASSERT_GT(sealed.cuts({0, ev::StreamId::compute}).size(), 4U);
  SpanSearch search;
  search.start({});
  // What counts as settled is taken into figures: it must not change any more.
  std::map<std::pair<std::size_t, std::size_t>, std::int64_t> settled;
  while (search.advance(sealed, 0ns)) {
    for (std::size_t i = 0; i < search.lanes().size(); ++i) {
      for (std::size_t k = 0; k < search.lanes()[i].settled; ++k)
        settled.try_emplace({i, k}, search.lanes()[i].hits[k].self_ns);
    }
  }
  EXPECT_EQ(settled.size(), search.hits());
  for (const auto& [at, self_ns] : settled)
    EXPECT_EQ(search.lanes()[at.first].hits[at.second].self_ns, self_ns);
  EXPECT_EQ(lines(search), lines(walk(whole)));
  EXPECT_EQ(counted(search, GroupBy::rank).groups().size(), 1U);
}

/// A module that holds twenty thousand others, in a phase: what is searched at once ends in the middle of it
/// several times, and so do blocks.
store::Store one_long_parent(std::size_t seal_after) {
  constexpr std::int64_t kInside = 20'000;
  constexpr auto kForward = static_cast<std::uint8_t>(ev::Phase::forward);
  store::Store store;
  store.seal_after(seal_after);
  store::ChunkBuilder events;
  events.compute(0, ev::EventKind::phase_begin, ev::kNoId, kForward);
  events.compute(1, ev::EventKind::module_begin, 5);
  for (std::int64_t i = 0; i < kInside; ++i) {
    events.compute(10 * i + 10, ev::EventKind::module_begin, static_cast<std::uint32_t>(i % 3));
    events.compute(10 * i + 14, ev::EventKind::module_end, static_cast<std::uint32_t>(i % 3));
    if (i % 1000 != 999) continue;
    store.ingest(events.chunk);
    events = store::ChunkBuilder(0, events.chunk.sequence + 1);
  }
  events.compute(10 * kInside + 20, ev::EventKind::module_end, 5);
  events.compute(10 * kInside + 30, ev::EventKind::phase_end, ev::kNoId, kForward);
  store.ingest(events.chunk);
  return store;
}

TEST(FindSpansOfALongParent, HaveItsNameInWhicheverPartTheyBegin) {
  for (const std::size_t seal_after : {std::size_t{SIZE_MAX}, std::size_t{500}}) {
    const store::Store store = one_long_parent(seal_after);
    ASSERT_EQ(store.cuts({0, ev::StreamId::compute}).size() > 10, seal_after != SIZE_MAX);
    // The range of the last one begins far behind the parent, in the middle of a child.
    for (const SpanQuery& query :
         {SpanQuery{}, SpanQuery{"\"module 1 forward\""}, SpanQuery{"", 150'012, 160'000}}) {
      const SpanSearch search = searched(store, query);
      std::map<std::string, std::size_t> of_parent;
      for (const SpanHit& hit : search.lanes().front().hits)
        if (hit.depth == 2) ++of_parent[hit.within == ev::kNoId ? "none" : search.name(hit.within)];
      const std::size_t wanted = query == SpanQuery{} ? 20'000 : query.words.empty() ? 999 : 6'667;
      EXPECT_EQ(of_parent, (std::map<std::string, std::size_t>{{"module 5 forward", wanted}}))
          << query.words << " from " << query.begin_ns << ", sealed after " << seal_after;
    }
  }
}

TEST(FindSpansOfTheProgramsOwn, HaveTheNamesOfTheirRank) {
  const store::Store store = store::own_spans();
  const SpanSearch search = searched(store, {"load"});
  EXPECT_EQ(lines(search).size(), 2U);
  for (const SpanSearch::Lane& lane : search.lanes()) {
    ASSERT_EQ(lane.hits.size(), 1U) << "rank " << lane.id.rank;
    EXPECT_EQ(lane.hits[0].time_ns, 10) << "rank " << lane.id.rank;
    EXPECT_EQ(search.name(lane.hits[0].name), "load");
  }
  EXPECT_EQ(counted(searched(store, {}), GroupBy::name).groups().size(), 2U);
}

TEST(FindSpansOfMany, AreSearchedInPartsOfABoundedSize) {
  constexpr int kSpans = 300'000;
  store::Store store;
  store::ChunkBuilder events;
  for (int i = 0; i < kSpans; ++i) {
    events.compute(i * 10, ev::EventKind::module_begin, static_cast<std::uint32_t>(i % 7));
    events.compute(i * 10 + 1 + i % 5, ev::EventKind::module_end, static_cast<std::uint32_t>(i % 7));
  }
  store.ingest(events.chunk);
  SpanSearch search;
  search.start({"module 3"});
  std::uint64_t most = 0;
  std::uint64_t before = 0;
  while (search.advance(store, 0ns)) {
    most = std::max(most, search.searched() - before);
    before = search.searched();
  }
  EXPECT_EQ(search.searched(), static_cast<std::uint64_t>(kSpans));
  EXPECT_EQ(search.hits(), static_cast<std::size_t>(kSpans / 7) + (kSpans % 7 > 3 ? 1 : 0));
  EXPECT_LT(most, 20'000U) << "spans between two looks at the clock";
}

TEST(Find, PausesAreInNoTimeAndFoundOnlyByTheirName) {
  const store::Store store = store::odd_ends();
  for (const char* const words : {"", " ", "host"}) {
    const SpanSearch search = searched(store, {words});
    for (const SpanSearch::Lane& lane : search.lanes()) {
      for (const SpanHit& hit : lane.hits) EXPECT_NE(search.name(hit.name), "paused") << words;
    }
    EXPECT_LT(counted(search, GroupBy::name).whole().times.most(), store::kMs * 1000) << words;
  }
  // Of the step that holds the pause nothing is taken off twice.
  const SpanSearch steps = searched(store, {"step"});
  const SpanGroup found = counted(steps, GroupBy::rank).groups().at(0);
  EXPECT_EQ(found.times.total(), 20 * store::kMs);
  EXPECT_EQ(found.self_ns, 20 * store::kMs);
  const store::LaneId host{0, ev::StreamId::host};
  const SpanFamily family = family_of(store, host, store.spans(host, 0).front());
  EXPECT_EQ(family.self_ns, 20 * store::kMs);
  EXPECT_EQ(family.children, 1U);
  for (const char* const words : {"paused", "host paused", "\"paused\""}) {
    const SpanSearch pauses = searched(store, {words});
    EXPECT_EQ(pauses.hits(), 1U) << words;
    EXPECT_EQ(counted(pauses, GroupBy::name).whole().times.total(), store::kPauseNs);
  }
}

}  // namespace
}  // namespace shardscope::gui
