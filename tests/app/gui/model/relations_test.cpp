// What a span waits for and what waits for it, against the ids of the events themselves.
#include "app/gui/model/relations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "app/gui/model/app_state.h"
#include "app/gui/model/details.h"
#include "app/gui/model/rank_order.h"
#include "app/gui/model/rank_pace.h"
#include "instrumentation/event_fields.h"
#include "tests/app/store/event_builder.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

using ev::EventKind;

class RelationsOf : public ::testing::Test {
 protected:
  void open(bool ids) {
    store::SyntheticOptions options;
    options.plan_ids = ids;
    app_.run = std::make_unique<Session>(store::make_synthetic_store(options));
    app_.run->settle();
    app_.place_once();
  }
  [[nodiscard]] const store::Store& data() const { return app_.store(); }
  [[nodiscard]] std::vector<store::Span> spans(ev::StreamId stream, EventKind kind) const {
    const store::LaneId lane{1, stream};
    std::vector<store::Span> out;
    for (std::uint8_t depth = 0; depth < data().depth_count(lane); ++depth) {
      for (const store::Span& span : data().spans(lane, depth)) {
        if (span.kind == kind) out.push_back(span);
      }
    }
    std::ranges::sort(out, {}, &store::Span::begin_ns);
    return out;
  }
  [[nodiscard]] std::vector<Relation> of(ev::StreamId stream, const store::Span& span) const {
    return relations_of(data(), app_.run->index(), {1, stream}, span).list;
  }
  AppState app_;
};

std::size_t count(const std::vector<Relation>& list, RelationKind kind) {
  return static_cast<std::size_t>(std::ranges::count(list, kind, &Relation::kind));
}

TEST_F(RelationsOf, AGatherLeadsToTheWaitWithItsIdAndTheModuleItIsFor) {
  open(true);
  const auto waits = spans(ev::StreamId::compute, EventKind::fetch_wait_begin);
  std::size_t waited = 0;
  std::size_t used = 0;
  for (const store::Span& gather : spans(ev::StreamId::gather, EventKind::collective_begin)) {
    const std::uint32_t id = ev::as<EventKind::collective_begin>(gather).group;
    const auto list = of(ev::StreamId::gather, gather);
    std::vector<store::Span> expected;
    for (const store::Span& wait : waits) {
      if (ev::as<EventKind::fetch_wait_begin>(wait).gather == id) expected.push_back(wait);
    }
    ASSERT_EQ(count(list, RelationKind::gather_to_wait), std::min<std::size_t>(expected.size(), 1)) << id;
    const Fetch* const fetch = app_.run->index().fetch_by_id(1, id);
    for (const Relation& relation : list) {
      EXPECT_EQ(relation.id, id);
      EXPECT_EQ(relation.from.span.begin_ns, gather.begin_ns);
      if (relation.kind == RelationKind::gather_to_wait) {
        ++waited;
        EXPECT_EQ(relation.to.span.begin_ns, expected.front().begin_ns) << "the first";
        EXPECT_EQ(relation.to.at_ns, expected.front().end_ns) << "which it ended";
        // The wait shows the same arrow.
        const auto back = of(ev::StreamId::compute, expected.front());
        EXPECT_EQ(back.size(), list.size());
      } else {
        ++used;
        ASSERT_EQ(relation.kind, RelationKind::gather_to_module);
        EXPECT_EQ(ev::as<EventKind::module_begin>(relation.to.span).module, fetch->module);
        EXPECT_GT(relation.to.span.end_ns, fetch->used_ns) << "a run of the module before cannot use it";
      }
    }
  }
  EXPECT_GT(waited, 10U);
  EXPECT_GT(used, 30U);
}

TEST_F(RelationsOf, AModuleKnowsTheGathersThatItUses) {
  open(true);
  std::size_t found = 0;
  for (const store::Span& gather : spans(ev::StreamId::gather, EventKind::collective_begin)) {
    for (const Relation& relation : of(ev::StreamId::gather, gather)) {
      if (relation.kind != RelationKind::gather_to_module) continue;
      const auto list = of(ev::StreamId::compute, relation.to.span);
      EXPECT_TRUE(std::ranges::any_of(list, [&](const Relation& one) {
        return one.kind == RelationKind::gather_to_module && one.id == relation.id;
      })) << relation.id;
      ++found;
    }
  }
  EXPECT_GT(found, 30U);
}

TEST_F(RelationsOf, ABucketJoinsTheModulesOfItsGradientsItsReductionItsWaitAndTheOptimizer) {
  open(true);
  // Which parameters are in which bucket, and which step it is of, from the events.
  std::map<std::uint32_t, std::set<std::uint32_t>> params;
  data().for_each_instant(1, store::Store::kBegin, store::Store::kEnd, [&](const ev::Event& event) {
    if (event.kind != EventKind::bucket_add) return;
    const auto add = ev::as<EventKind::bucket_add>(event);
    params[add.bucket].insert(add.param);
  });
  ASSERT_GT(params.size(), 4U);
  const auto waits = spans(ev::StreamId::compute, EventKind::reduce_wait_begin);
  std::size_t waited = 0;
  for (const store::Span& reduce : spans(ev::StreamId::reduce, EventKind::collective_begin)) {
    const std::uint32_t bucket = ev::as<EventKind::collective_begin>(reduce).group;
    const auto list = of(ev::StreamId::reduce, reduce);
    std::set<std::uint32_t> modules, expected;
    for (const std::uint32_t param : params[bucket]) {
      for (const std::uint32_t module : data().tables().params[param].modules) {
        // A tied weight's second user may run after the flush: its gradient is then of the next bucket.
        const auto runs = spans(ev::StreamId::compute, EventKind::module_begin);
        if (std::ranges::any_of(runs, [&](const store::Span& run) {
              const auto fields = ev::as<EventKind::module_begin>(run);
              return fields.module == module && fields.pass == ev::Pass::backward &&
                     run.begin_ns <= reduce.begin_ns;
            }))
          expected.insert(module);
      }
    }
    for (const Relation& relation : list) {
      EXPECT_EQ(relation.id, bucket);
      if (relation.kind == RelationKind::module_to_reduce) {
        const auto fields = ev::as<EventKind::module_begin>(relation.from.span);
        EXPECT_EQ(fields.pass, ev::Pass::backward);
        modules.insert(fields.module);
      }
    }
    for (const std::uint32_t module : modules) EXPECT_TRUE(expected.contains(module)) << module;
    EXPECT_FALSE(modules.empty());
    const auto with_id = std::ranges::count_if(waits, [&](const store::Span& wait) {
      return ev::as<EventKind::reduce_wait_begin>(wait).bucket == bucket;
    });
    EXPECT_EQ(count(list, RelationKind::reduce_to_wait), static_cast<std::size_t>(with_id));
    waited += static_cast<std::size_t>(with_id);
    ASSERT_EQ(count(list, RelationKind::reduce_to_optimizer), 1U);
    const Relation& last = list.back();
    ASSERT_EQ(last.kind, RelationKind::reduce_to_optimizer);
    EXPECT_GE(last.to.span.begin_ns, reduce.begin_ns);
    const auto back = of(ev::StreamId::compute, last.to.span);
    EXPECT_TRUE(std::ranges::any_of(back, [&](const Relation& one) { return one.id == bucket; }));
  }
  EXPECT_GT(waited, 0U);
}

TEST_F(RelationsOf, NothingIsGuessedWhereCollectivesNameNoGatherOrBucket) {
  open(false);
  // One number for all of a lane: it names at most one gather and one bucket of the run.
  std::size_t related = 0;
  for (const ev::StreamId stream : {ev::StreamId::gather, ev::StreamId::reduce}) {
    for (const store::Span& span : spans(stream, EventKind::collective_begin))
      related += of(stream, span).empty() ? 0 : 1;
  }
  EXPECT_LE(related, 2U);
}

/// Of a long run the index has a part: what was not found outside it is looked for when it moves there.
TEST_F(RelationsOf, AreLookedForAnewWhenTheIndexMoves) {
  open(true);
  for (const store::Span& gather : spans(ev::StreamId::gather, EventKind::collective_begin)) {
    const store::LaneId lane{1, ev::StreamId::gather};
    if (gather.begin_ns < data().end_ns() / 2 ||
        relations_of(data(), app_.run->index(), lane, gather).list.empty())
      continue;
    RunIndex index;
    RelationCache cache;
    index.update(data(), Completeness::complete, {.begin_ns = 0, .end_ns = data().end_ns() / 10});
    EXPECT_TRUE(cache.of(data(), index, lane, gather).list.empty());
    EXPECT_FALSE(cache.of(data(), index, lane, gather).all);
    EXPECT_TRUE(cache.of(data(), index, lane, gather).read) << "a second query gives the same";
    index.update(data(), Completeness::complete, {.begin_ns = 0, .end_ns = data().end_ns() + 1});
    EXPECT_FALSE(cache.of(data(), index, lane, gather).list.empty());
    EXPECT_TRUE(cache.of(data(), index, lane, gather).all);
    return;
  }
  FAIL() << "no gather with relations";
}

/// A rank that ended within a wait: the arrow ends with what is recorded.
TEST(RelationsOfOpenSpans, EndWithTheRun) {
  store::SyntheticOptions options;
  options.plan_ids = true;
  store::SyntheticRun run = store::make_synthetic_run(options);
  std::optional<std::uint64_t> cut;
  for (store::Chunk& chunk : run.chunks) {
    if (chunk.rank != 1) continue;
    std::vector<ev::Event> kept;
    for (const ev::Event& event : chunk.events) {
      if (cut && event.ticks > *cut) continue;
      kept.push_back(event);
      // Ends of other lanes up to here stay; that of the wait does not.
      if (!cut && chunk.sequence > 2 && event.kind == EventKind::reduce_wait_begin) cut = event.ticks;
    }
    chunk.events = kept;
  }
  ASSERT_TRUE(cut);
  AppState app;
  store::Store store;
  store::fill_store(store, run);
  app.run = std::make_unique<Session>(std::move(store));
  app.run->settle();
  std::size_t open = 0;
  const store::LaneId lane{1, ev::StreamId::compute};
  for (std::uint8_t depth = 0; depth < app.store().depth_count(lane); ++depth) {
    for (const store::Span& span : app.store().spans(lane, depth)) {
      for (const Relation& relation : relations_of(app.store(), app.run->index(), lane, span).list) {
        open += relation.to.span.end_ns == store::kOpen ? 1 : 0;
        EXPECT_LE(relation.to.at_ns, app.store().end_ns());
        EXPECT_LE(relation.from.at_ns, app.store().end_ns());
      }
    }
  }
  EXPECT_GT(open, 0U);
}

TEST_F(RelationsOf, AreListedInTheInspectorAndLeadThere) {
  open(true);
  for (const store::Span& gather : spans(ev::StreamId::gather, EventKind::collective_begin)) {
    const auto list = of(ev::StreamId::gather, gather);
    if (list.size() < 2) continue;
    app_.select_span({1, ev::StreamId::gather}, gather);
    const Details details = describe_selection(app_);
    ASSERT_EQ(details.related.size(), list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      EXPECT_EQ(details.related[i].lane, list[i].to.lane);
      EXPECT_EQ(details.related[i].span.begin_ns, list[i].to.span.begin_ns);
      EXPECT_TRUE(details.related[i].text.starts_with(word(list[i].kind))) << details.related[i].text;
    }
    return;
  }
  FAIL() << "no gather with a wait and a module";
}

TEST_F(RelationsOf, LeadBackFromWhatComesAfter) {
  open(true);
  std::size_t led = 0;
  for (const store::Span& wait : spans(ev::StreamId::compute, EventKind::fetch_wait_begin)) {
    const auto list = of(ev::StreamId::compute, wait);
    app_.select_span({1, ev::StreamId::compute}, wait);
    const Details details = describe_selection(app_);
    ASSERT_EQ(details.related.size(), list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].to.span.begin_ns != wait.begin_ns || list[i].to.lane.stream != ev::StreamId::compute)
        continue;
      if (list[i].from.lane.stream == ev::StreamId::compute) continue;
      EXPECT_EQ(details.related[i].lane, list[i].from.lane);
      EXPECT_EQ(details.related[i].span.begin_ns, list[i].from.span.begin_ns);
      EXPECT_TRUE(details.related[i].text.starts_with("after ")) << details.related[i].text;
      ++led;
    }
  }
  EXPECT_GT(led, 0U);
}

TEST(RankOrders, PutTheLongestOfTheStepShownFirst) {
  store::SyntheticOptions options;
  options.world = 6;
  options.straggler = 4;
  AppState app;
  app.run = std::make_unique<Session>(store::make_synthetic_store(options));
  app.run->settle();
  app.place_once();
  EXPECT_TRUE(rank_order(app).empty()) << "by number nothing is to be sorted";
  for (const RankOrder order : {RankOrder::computation, RankOrder::exposed}) {
    app.timeline.order = order;
    const std::vector<std::uint32_t> sorted = rank_order(app);
    ASSERT_EQ(sorted.size(), 6U);
    EXPECT_EQ(std::set(sorted.begin(), sorted.end()).size(), 6U);
    arrange_ranks(app);
    const StepTimes* const times = step_shown(app);
    ASSERT_NE(times, nullptr);
    std::int64_t before = INT64_MAX;
    for (const std::uint32_t rank : sorted) {
      const auto found = std::ranges::find(times->ranks, rank, &StepTimes::Rank::rank);
      ASSERT_NE(found, times->ranks.end());
      const std::int64_t key =
          order == RankOrder::computation ? found->time.compute_ns : found->time.exposed_comm_ns;
      EXPECT_LE(key, before);
      before = key;
    }
    std::vector<std::uint32_t> rows;
    for (const TimelineRow& row : layout_rows(app.store(), app.timeline).rows) {
      if (row.kind == RowKind::rank) rows.push_back(row.rank);
    }
    EXPECT_EQ(rows, sorted) << "as the timeline draws them";
    if (order == RankOrder::computation) {
      EXPECT_EQ(sorted.front(), 4U) << "the straggler";
      app.timeline.expanded.clear();
      expand_while_room(app.store(), app.timeline, 0);
      EXPECT_EQ(app.timeline.expanded, std::set<std::uint32_t>{4}) << "and it is opened first";
    }
  }
}

TEST(RankOrders, AreThoseWithinEachGroupAndTheGroupOfTheLongestIsFirst) {
  store::SyntheticOptions options;
  options.world = 6;
  options.straggler = 4;
  store::Store store = store::make_synthetic_store(options);
  for (std::uint32_t rank = 0; rank < 6; ++rank) {
    store::RankRow row = store.ranks()[rank];
    row.host = "host-" + std::to_string(rank / 3);
    store.set_rank(row);
  }
  AppState app;
  app.run = std::make_unique<Session>(std::move(store));
  app.run->settle();
  app.place_once();
  order_ranks(app, RankOrder::computation);
  group_ranks(app, kByNode);
  EXPECT_EQ(app.timeline.order, RankOrder::computation) << "groups keep the order";
  arrange_ranks(app);
  const std::vector<RankGroup> groups = shown_groups(app.store(), app.timeline);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].title, "host-1") << "the straggler's";
  EXPECT_EQ(groups[0].ranks.front(), 4U);
  const std::vector<std::uint32_t> sorted = rank_order(app);
  for (const RankGroup& group : groups)
    EXPECT_TRUE(std::ranges::is_sorted(group.ranks, {}, [&](std::uint32_t rank) {
      return std::ranges::find(sorted, rank) - sorted.begin();
    })) << group.title;
  order_ranks(app, RankOrder::number);
  arrange_ranks(app);
  EXPECT_EQ(shown_groups(app.store(), app.timeline)[0].title, "host-0");
  EXPECT_EQ(shown_groups(app.store(), app.timeline)[1].ranks, (std::vector<std::uint32_t>{3, 4, 5}));
}

}  // namespace
}  // namespace shardscope::gui
