// The model layer on a synthetic run: rows, selection, axes, the state dump.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "app/gui/model/app_state.h"
#include "app/gui/model/bucket_note.h"
#include "app/gui/model/details.h"
#include "app/gui/model/identity.h"
#include "app/gui/model/memory_stack.h"
#include "app/gui/model/state_dump.h"
#include "app/gui/model/timeline_rows.h"
#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

TEST_F(Model, RowsOfAnExpandedRankDoNotOverlapAndAreFoundByTheirPlace) {
  app_.timeline.expanded.insert(data().ranks().front().rank);
  const TimelineRows rows = layout_rows(data(), app_.timeline);
  ASSERT_GT(rows.rows.size(), data().ranks().size()) << "the first rank is expanded";
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const TimelineRow& row = rows.rows[i];
    if (i > 0) {
      EXPECT_GE(row.y, rows.rows[i - 1].y + rows.rows[i - 1].height);
    }
    const TimelineRow* found = rows.at(row.y + row.height / 2);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->y, row.y);
  }
  EXPECT_EQ(rows.at(rows.height + 10), nullptr);
  app_.timeline.expanded.clear();
  EXPECT_EQ(layout_rows(data(), app_.timeline).rows.size(), data().ranks().size());
}

TEST_F(Model, RanksOpenWhileThereIsRoomAndTheFirstAlways) {
  const std::size_t ranks = data().ranks().size();
  ASSERT_GT(ranks, 2U);
  TimelineOptions options;
  expand_while_room(data(), options, 0);
  EXPECT_EQ(options.expanded.size(), 1U);
  const float one = layout_rows(data(), options).height;
  expand_while_room(data(), options, one * 2);
  EXPECT_EQ(options.expanded.size(), 2U);
  EXPECT_LE(layout_rows(data(), options).height, one * 2);
  expand_while_room(data(), options, one * static_cast<float>(ranks));
  EXPECT_EQ(options.expanded.size(), ranks);
}

TEST_F(Model, NowOfARunThatIsOverIsTheEndOfItsLastStep) {
  EXPECT_EQ(app_.now_ns(), std::min(data().steps().back().end_ns, data().end_ns()));
  EXPECT_GT(data().memory_at(0, ev::MemoryPool::device, app_.now_ns()).total(), 0)
      << "not the empty pools that the program leaves behind";
}

TEST_F(Model, SpanAtFindsTheSpanUnderTheTimeAndNothingFarFromOne) {
  const store::LaneId lane{0, ev::StreamId::compute};
  const auto spans = data().spans(lane, 0);
  ASSERT_FALSE(spans.empty());
  const store::Span& one = spans[spans.size() / 2];
  const auto found = span_at(data(), lane, 0, (one.begin_ns + one.end_ns) / 2, 10);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->begin_ns, one.begin_ns);
  EXPECT_FALSE(span_at(data(), lane, 0, data().end_ns() + 1'000'000'000, 10));
}

TEST_F(Model, SelectingAGatherSelectsItsParametersInTheMap) {
  const store::LaneId lane{0, ev::StreamId::gather};
  for (std::uint8_t depth = 0; depth < data().depth_count(lane); ++depth) {
    for (const store::Span& span : data().spans(lane, depth)) {
      const Fetch* fetch = app_.run->index().fetch_of(0, span);
      if (span.kind != ev::EventKind::collective_begin || fetch == nullptr) continue;
      app_.select_span(lane, span);
      EXPECT_EQ(app_.selection.kind, SelectionKind::collective);
      for (std::uint32_t param = 0; param < data().tables().params.size(); ++param) {
        EXPECT_EQ(app_.selected(param), std::ranges::find(fetch->params, param) != fetch->params.end());
      }
      EXPECT_TRUE(app_.selected_span(lane, span));
      EXPECT_FALSE(describe_selection(app_).title.empty());
      return;
    }
  }
  FAIL() << "no gather found";
}

TEST_F(Model, ElementAxisCoversEveryElementOnceOverTheRanks) {
  const ElementAxis& axis = app_.run->elements(ElementScale::linear);
  std::int64_t owned = 0;
  for (std::uint32_t rank = 0; rank < data().tables().world; ++rank) owned += axis.owned_elems(rank);
  EXPECT_EQ(owned, data().tables().elems);
  for (std::uint32_t param = 0; param < axis.size(); ++param) {
    const double middle = (axis.begin(param) + axis.end(param)) / 2;
    EXPECT_EQ(axis.param_at(middle), param);
    EXPECT_EQ(app_.run->elements(ElementScale::compressed).size(), axis.size());
  }
  EXPECT_EQ(axis.param_at(1.0), ev::kNoId);
  EXPECT_EQ(axis.param_at(-0.1), ev::kNoId);
}

TEST(MemoryLegend, HasTheLargestCategoriesWhereNotAllFit) {
  using C = ev::MemoryCategory;
  const std::vector<C> used{C::param_shard, C::momentum, C::activation, C::temporary};
  store::MemorySample now, peak;
  now.bytes[static_cast<std::size_t>(C::param_shard)] = 40;
  now.bytes[static_cast<std::size_t>(C::momentum)] = 30;
  now.bytes[static_cast<std::size_t>(C::temporary)] = 20;
  peak.bytes[static_cast<std::size_t>(C::activation)] = 90;
  EXPECT_EQ(largest_categories(used, now, peak, 4), used);
  // A line is left for the rest.
  EXPECT_EQ(largest_categories(used, now, peak, 3), (std::vector<C>{C::param_shard, C::activation}));
  EXPECT_EQ(largest_categories(used, now, std::nullopt, 3), (std::vector<C>{C::param_shard, C::momentum}));
  EXPECT_TRUE(largest_categories(used, now, peak, 0).empty());
}

// overlap_comm costs DeepSpeed a second buffer at stage 2, and here up to two more buckets of gradients, as
// engine_step_events_test measures them.
TEST(BucketNote, SaysWhatOverlapCostsHereAndInDeepSpeed) {
  const auto note = [](std::int32_t stage, const std::string& more, const std::string& beside = "") {
    ev::RunTables tables;
    tables.stage = stage;
    tables.param_bytes = 2;
    tables.config_json =
        R"({"shardscope": {}, "zero_optimization": {"stage": 2, "reduce_bucket_size": 524288)" + more + "}" +
        beside + "}";
    return bucket_note(tables);
  };
  using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not;
  EXPECT_THAT(note(2, R"(, "overlap_comm": true)"),
              AllOf(HasSubstr("up to three buckets are held: one fills, two are being reduced"),
                    HasSubstr("a buffer of reduce_bucket_size elements (1.00 MiB)"),
                    HasSubstr("overlap_comm costs a second one there and none here")));
  EXPECT_THAT(note(2, ""), AllOf(HasSubstr("Without overlap_comm one bucket is held"),
                                 HasSubstr("overlap_comm would cost a second one there and none here")));
  EXPECT_THAT(note(2, R"(, "contiguous_gradients": false)"), Not(HasSubstr("DeepSpeed")))
      << "it has no buffers then";
  EXPECT_EQ(note(3, ""), "") << "DeepSpeed's stage 3 has one buffer, with and without overlap_comm";
  const std::string buffered = R"(, "shardscope": {"compat": {"gradient_buffers": true}})";
  const auto of_stage = [&](std::int32_t stage, const std::string& more) {
    ev::RunTables tables;
    tables.stage = stage;
    tables.param_bytes = tables.grad_bytes = 2;
    tables.config_json =
        R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": 524288)" + more + "}" + buffered + "}";
    return bucket_note(tables);
  };
  EXPECT_THAT(of_stage(2, R"(, "overlap_comm": true)"),
              AllOf(HasSubstr("one of two buffers of reduce_bucket_size elements (1.00 MiB each"),
                    HasSubstr("for each backward"), Not(HasSubstr("no buffer"))));
  EXPECT_THAT(of_stage(1, ""), HasSubstr("copied into a buffer"));
  EXPECT_THAT(of_stage(3, ""), AllOf(HasSubstr("a buffer of"), HasSubstr("and kept")));
  EXPECT_THAT(of_stage(2, R"(, "contiguous_gradients": false)"), HasSubstr("no buffer is allocated"));
  ev::RunTables foreign;
  foreign.stage = 2;
  foreign.config_json = R"({"zero_optimization": {"stage": 2}})";
  EXPECT_EQ(bucket_note(foreign), "") << "another program's run";
}

TEST_F(Model, StackRunsKeepEveryColumn) {
  std::vector<store::MemorySample> columns(300);
  data().memory_columns(0, ev::MemoryPool::device, 0, data().end_ns(), columns);
  const auto runs = stack_runs(columns);
  ASSERT_FALSE(runs.empty());
  EXPECT_LT(runs.size(), columns.size());
  std::size_t next = 0;
  for (const StackRun& run : runs) {
    EXPECT_EQ(run.first, next);
    for (std::size_t i = run.first; i < run.last; ++i) EXPECT_EQ(columns[i].bytes, run.bytes);
    next = run.last;
  }
  EXPECT_EQ(next, columns.size());
}

TEST_F(Model, GoToStepShowsItAndRefusesOneThatIsNotThere) {
  ASSERT_TRUE(app_.go_to_step(2));
  const store::StepRow& row = data().steps()[2];
  EXPECT_LE(app_.time.range().begin_ns, row.begin_ns);
  EXPECT_GE(app_.time.range().end_ns, row.end_ns);
  EXPECT_FALSE(app_.go_to_step(4000));
}

TEST_F(Model, SelectingAStepReplacesWhatWasSelected) {
  app_.select_param(3, 1);
  app_.select_step(2);
  EXPECT_EQ(app_.selection.kind, SelectionKind::step);
  EXPECT_EQ(app_.selection.step, 2U);
  EXPECT_EQ(app_.selection.param, ev::kNoId);
  EXPECT_EQ(app_.selection.rank, ev::kNoId);
  EXPECT_FALSE(app_.selected(3));
  const Details details = describe_selection(app_);
  EXPECT_EQ(details.title, "Step 2");
  EXPECT_EQ(details.subtitle, "completed");
}

TEST_F(Model, StateDumpIsJsonThatSaysWhatIsSelected) {
  app_.select_param(3, 1);
  const auto json = nlohmann::json::parse(state_json(app_, {{"timeline", {0, 0, 10, 10}}}, 7));
  EXPECT_EQ(json["selection"]["kind"], "param");
  EXPECT_EQ(json["selection"]["param"], 3);
  EXPECT_EQ(json["selection"]["name"], data().tables().params[3].name);
  EXPECT_EQ(json["store"]["ranks"], 4);
  EXPECT_EQ(json["frames"], 7);
}

TEST(Summary, SaysOfHowManyStepsItIsUntilItIsOfAll) {
  Session run(store::make_synthetic_store());
  const std::size_t steps = run.store().steps().size();
  ASSERT_GT(steps, 1U);
  EXPECT_EQ(run.partial(), "partial: 0 of " + std::to_string(steps) + " steps analysed");
  EXPECT_TRUE(run.settle());
  EXPECT_EQ(run.summary().steps, steps);
  EXPECT_EQ(run.partial(), "");
}

TEST_F(Model, IdentityNamesModelStageAndRanks) {
  const Identity who = identify(data());
  EXPECT_EQ(who.model, "gpt-synthetic");
  EXPECT_NE(std::ranges::find(who.facts, "ZeRO-3"), who.facts.end());
  EXPECT_EQ(who.facts.front(), kSimulated);  // before all that a narrow window leaves out
  EXPECT_NE(who.link.find("emulated link"), std::string::npos);
}

TEST_F(Model, IdentitySaysWhetherCommunicationOverlaps) {
  for (const bool on : {true, false}) {
    ev::RunTables tables = data().tables();
    tables.config_json =
        std::string(R"({"zero_optimization": {"overlap_comm": )") + (on ? "true" : "false") + "}}";
    store::Store store;
    store.set_tables(0, tables);
    const std::vector<std::string> facts = identify(store).facts;
    EXPECT_EQ(std::ranges::count(facts, "overlap on"), on ? 1 : 0);
    EXPECT_EQ(std::ranges::count(facts, "overlap off"), on ? 0 : 1);
  }
}

TEST(EmptyModel, NothingIsKnownAndNothingFails) {
  AppState app;
  app.run = std::make_unique<Session>(store::Store());
  app.run->settle();
  app.place_once();
  EXPECT_TRUE(layout_rows(app.store(), app.timeline).rows.empty());
  EXPECT_FALSE(app.go_to_step(0));
  app.step(StepUnit::event, Direction::forward);
  EXPECT_TRUE(describe_selection(app).title.empty());
  EXPECT_FALSE(state_json(app, {}, 0).empty());
}

}  // namespace
}  // namespace shardscope::gui
