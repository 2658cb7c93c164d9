// The model layer on a synthetic run: rows, fetches, stepping, selection, the state dump.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "app/gui/model/app_state.h"
#include "app/gui/model/arrivals.h"
#include "app/gui/model/details.h"
#include "app/gui/model/format.h"
#include "app/gui/model/identity.h"
#include "app/gui/model/memory_stack.h"
#include "app/gui/model/names.h"
#include "app/gui/model/scheduling_at.h"
#include "app/gui/model/state_dump.h"
#include "app/store/lane.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/zenflow.h"
#include "tests/store/event_builder.h"
#include "tests/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

class Model : public ::testing::Test {
 protected:
  Model() {
    app_.run = std::make_unique<Session>(store::make_synthetic_store());
    app_.run->settle();
    app_.place_once();
  }
  [[nodiscard]] const store::Store& data() const { return app_.store(); }
  AppState app_;
};

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

TEST_F(Model, ACollectiveTellsWhichRankCameLast) {
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

TEST_F(Model, AnIndexCoversOnlyWhatItWasAskedFor) {
  RunIndex index;
  // Of a run too large for an index of all of it there is none until somebody looks closely; its waits are
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

TEST_F(Model, SteppingForwardAndBackReturnsToTheSameGate) {
  const auto gates = data().gates(0);
  ASSERT_GT(gates.size(), 20U);
  // Gates at the same instant are one place in time, so the count is of distinct times.
  app_.cursor_ns = gates[10].at_ns;
  std::vector<std::int64_t> visited;
  for (int i = 0; i < 5; ++i) {
    visited.push_back(*app_.cursor_ns);
    app_.step(StepUnit::event, Direction::forward);
    EXPECT_GT(*app_.cursor_ns, visited.back());
  }
  while (!visited.empty()) {
    app_.step(StepUnit::event, Direction::backward);
    EXPECT_EQ(*app_.cursor_ns, visited.back());
    visited.pop_back();
  }
  app_.step(StepUnit::step, Direction::forward);
  EXPECT_TRUE(std::ranges::any_of(gates, [&](const GateRow& gate) {
    return gate.at_ns == *app_.cursor_ns && gate.kind == ev::GateKind::step;
  }));
}

TEST_F(Model, RunToAParameterStopsAtAModuleThatUsesIt) {
  app_.cursor_ns = 0;
  const std::uint32_t param = 3;
  app_.run_to({RunToKind::param, param}, Direction::forward);
  const auto here = gate_at(data(), 0, *app_.cursor_ns);
  ASSERT_TRUE(here);
  const auto& users = data().tables().params[param].modules;
  EXPECT_NE(std::ranges::find(users, here->id), users.end());
}

TEST_F(Model, StatusListsHoldEveryParameterOnce) {
  const StatusLists lists = status_lists(data(), 0, data().end_ns() / 2);
  EXPECT_EQ(
      lists.not_available.size() + lists.in_flight.size() + lists.available.size() + lists.persistent.size(),
      data().tables().params.size());
  EXPECT_EQ(
      lists.not_available_elems + lists.in_flight_elems + lists.available_elems + lists.persistent_elems,
      data().tables().elems);
  EXPECT_GT(lists.not_available.size(), 0U) << "in the middle of a stage-3 step not everything is here";
}

TEST_F(Model, DeedsSayWhatWasFetchedAndWhyPrefetchingStopped) {
  const auto deeds = deeds_between(data(), 0, 0, data().end_ns());
  const auto says = [&](const std::string& part) {
    return std::ranges::any_of(deeds, [&](const Deed& deed) {
      return deed.text.find(part) != std::string::npos || deed.reason.find(part) != std::string::npos;
    });
  };
  EXPECT_TRUE(says("Prefetch started"));
  EXPECT_TRUE(says("Released"));
  EXPECT_TRUE(says("Prefetching stopped"));
  EXPECT_FALSE(says("unknown"));
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

TEST_F(Model, StateDumpIsJsonThatSaysWhatIsSelected) {
  app_.select_param(3, 1);
  const auto json = nlohmann::json::parse(state_json(app_, {{"timeline", {0, 0, 10, 10}}}, 7));
  EXPECT_EQ(json["selection"]["kind"], "param");
  EXPECT_EQ(json["selection"]["param"], 3);
  EXPECT_EQ(json["selection"]["name"], data().tables().params[3].name);
  EXPECT_EQ(json["store"]["ranks"], 4);
  EXPECT_EQ(json["frames"], 7);
}

TEST_F(Model, IdentityNamesModelStageAndRanks) {
  const Identity who = identify(data());
  EXPECT_EQ(who.model, "gpt-synthetic");
  EXPECT_NE(std::ranges::find(who.facts, "ZeRO-3"), who.facts.end());
  EXPECT_EQ(who.facts.front(), kSimulated);  // before all that a narrow window leaves out
  EXPECT_NE(who.link.find("emulated link"), std::string::npos);
}

TEST(SecondaryCopies, AreToldBesideTheStatusUntilTheWeightsChange) {
  using ev::EventKind;
  store::ChunkBuilder events;
  const auto status = [&](std::int64_t at, plan::ParamStatus now, bool copy, ev::StatusCause cause,
                          std::uint32_t gather) {
    const auto code =
        static_cast<std::uint8_t>(static_cast<std::uint8_t>(now) | (copy ? ev::kSecondaryHeld : 0));
    events.compute(at, EventKind::param_status, 0, ev::status_code(code, cause));
    events.chunk.events.back().c = gather;
    events.chunk.events.back().v0 = 4;
  };
  status(100, plan::ParamStatus::in_flight, false, ev::StatusCause::prefetch, 1);
  status(200, plan::ParamStatus::available, false, ev::StatusCause::prefetch, 1);
  status(300, plan::ParamStatus::not_available, true, ev::StatusCause::release, 1);
  status(400, plan::ParamStatus::in_flight, true, ev::StatusCause::prefetch, 2);
  status(500, plan::ParamStatus::available, true, ev::StatusCause::prefetch, 2);
  status(600, plan::ParamStatus::not_available, true, ev::StatusCause::release, 2);
  status(700, plan::ParamStatus::not_available, false, ev::StatusCause::partition, ev::kNoId);
  store::Store store;
  ev::RunTables tables;
  tables.stage = 3;
  tables.params = {{.id = 0, .name = "weight", .dtype = "float32", .shape = {4}, .elems = 4, .modules = {}}};
  store.set_tables(0, tables);
  store.ingest(events.chunk);
  const auto text_at = [&](std::int64_t ns) {
    return status_text(store.param_state(0, 0, ns - store.origin_ns()), false);
  };
  EXPECT_EQ(text_at(150), "in flight");
  EXPECT_EQ(text_at(250), "available");
  EXPECT_EQ(text_at(350), "not available, secondary copy held");
  EXPECT_EQ(text_at(450), "in flight, secondary copy held");
  EXPECT_EQ(text_at(550), "available, secondary copy held");
  EXPECT_EQ(text_at(650), "not available, secondary copy held");
  EXPECT_EQ(text_at(750), "not available");
  EXPECT_EQ(status_lists(store, 0, 550 - store.origin_ns()).available, std::vector{0U});
  const std::vector<Deed> deeds = deeds_between(store, 0, 290 - store.origin_ns(), 710 - store.origin_ns());
  ASSERT_EQ(deeds.size(), 5U);
  EXPECT_EQ(deeds[0].text, "Released: weight (4 elements); this rank keeps its part of a secondary copy");
  EXPECT_EQ(deeds[4].text, "Secondary copy ended: weight (4 elements)");
}

TEST(Deeds, OfAnUpdateSayWhatItDidAndWhy) {
  store::Store store;
  ev::RunTables tables;
  tables.params = {
      {.id = 0, .name = "fc.weight", .dtype = "float32", .shape = {4, 4}, .elems = 16, .modules = {}}};
  store.set_tables(0, tables);
  store::Chunk chunk;
  const auto add = [&](ev::EventKind kind, std::uint8_t code, std::uint32_t a, std::uint32_t b,
                       std::uint32_t c, std::int64_t v0, std::int64_t v1 = 0) {
    const std::uint64_t at = 100 + 10 * chunk.events.size();
    chunk.events.push_back({at, kind, ev::StreamId::host, code, a, b, c, v0, v1});
  };
  constexpr auto kNone = ev::kNoId;
  const auto number = [](double value) { return std::bit_cast<std::int64_t>(value); };
  add(ev::EventKind::clip_factor, 0, 7, kNone, kNone, number(0.25));
  add(ev::EventKind::clip_factor, 0, 7, kNone, kNone, number(1));  // nothing to tell
  add(ev::EventKind::columns_selected, static_cast<std::uint8_t>(plan::SelectionCause::interval), 0, 7, 2, 8,
      16);
  add(ev::EventKind::columns_selected, 0, 0, 7, 2, 8, 16);  // of an older recording
  add(ev::EventKind::update_votes, 0, 7, 3, 5, number(0.75), 6);
  add(ev::EventKind::deferred_update, 0, static_cast<std::uint32_t>(plan::UpdateCause::votes), 8, 4, 16);
  add(ev::EventKind::deferred_update, 0, kNone, 8, 1, 16);
  add(ev::EventKind::deferred_update, 1, kNone, 9, kNone, 16);
  add(ev::EventKind::feedback_reset, 0, 9, 2, kNone, 500);
  store.ingest(chunk);
  std::vector<std::pair<std::string, std::string>> said;
  for (const Deed& deed : deeds_between(store, 0, 0, store.end_ns() + 1))
    said.emplace_back(deed.text, deed.reason);
  EXPECT_EQ(
      said,
      (std::vector<std::pair<std::string, std::string>>{
          {"Gradients clipped: multiplied by 0.2500", ""},
          {"Columns chosen: 2 of fc.weight", "select_interval is over"},
          {"Columns chosen: 2 of fc.weight", ""},
          {"Votes for a deferred update: 3 of 6 matrices, 5 are needed",
           "75 % of the gradients' mass is in chosen columns"},
          {"Deferred update begins: gradients of 4 steps", "enough matrices voted for it in the step before"},
          {"Deferred update begins: gradients of 1 step", ""},
          {"Deferred update published", ""},
          {"Error feedback forgotten: 2 parameters, 500 elements", "reset_T steps are over"}}));
}

/// A gather of two NCCL operations and a reduce that the plugin did not follow; memory outside the runtime.
class NcclModel : public ::testing::Test {
 protected:
  void play(const char* device, bool plugin) {
    using ev::EventKind;
    using ev::StreamId;
    store::ChunkBuilder events;
    const auto nccl = [&](std::int64_t at, EventKind kind, std::uint32_t c, std::int64_t v0,
                          std::int64_t v1) { events.host(at, kind, 5, 0, v0, v1).chunk.events.back().c = c; };
    events.host(500, EventKind::outside_memory, ev::kNoId, 0, 3000, 9000);
    if (plugin) {
      nccl(900, EventKind::nccl_collective,
           ev::nccl_code(ev::NcclAlgorithm::nvls, ev::NcclProtocol::simple, 16, 16), 64, 1);
      nccl(901, EventKind::nccl_collective,
           ev::nccl_code(ev::NcclAlgorithm::ring, ev::NcclProtocol::simple, 8, 16), 64, 2);
    }
    events.add(1000, EventKind::collective_begin, StreamId::gather, 5, 0, 10, 40);
    events.add(1400, EventKind::collective_end, StreamId::gather, 5, 0, 10, 40);
    if (plugin) {
      nccl(1390, EventKind::nccl_kernel, ev::nccl_channels(16, 16), 350, 20);
      nccl(1395, EventKind::nccl_kernel, ev::nccl_channels(7, 8), 300, 30);
    }
    events.add(2000, EventKind::collective_begin, StreamId::reduce, 6, 1, 10, 40);
    events.add(2400, EventKind::collective_end, StreamId::reduce, 6, 1, 10, 40);
    events.host(2500, EventKind::outside_memory, ev::kNoId, 0, 3500, 9500);
    store::Store store;
    ev::RunTables tables;
    tables.device = device;
    store.set_tables(0, tables);
    store.ingest(events.chunk);
    app_.run = std::make_unique<Session>(std::move(store));
    app_.run->settle();
    app_.place_once();
  }
  [[nodiscard]] std::optional<std::string> field(ev::StreamId stream, const std::string& label) const {
    const store::LaneId lane{0, stream};
    const auto spans = app_.store().spans(lane, 0);
    if (spans.empty()) return "no span";
    for (const auto& one : describe_span(app_, lane, spans.front()).fields) {
      if (one.label == label) return one.value;
    }
    return std::nullopt;
  }
  AppState app_;
};

TEST_F(NcclModel, InspectorSaysWhatNcclSaid) {
  play("H200, NCCL 2.28.9", true);
  EXPECT_EQ(field(ev::StreamId::gather, "NCCL operations"), "2");
  EXPECT_EQ(field(ev::StreamId::gather, "algorithm"), "nvls and others");
  EXPECT_EQ(field(ev::StreamId::gather, "channels"), "16 and others");
  EXPECT_EQ(field(ev::StreamId::gather, "NCCL kernel"), duration(350).number);
  EXPECT_EQ(field(ev::StreamId::gather, "channel spread"), duration(30).number);
  EXPECT_EQ(field(ev::StreamId::gather, "network"), std::nullopt);
  // Missing is shown as missing: the plugin did not follow this one.
  EXPECT_EQ(field(ev::StreamId::reduce, "NCCL"), kMissing);
  EXPECT_EQ(field(ev::StreamId::reduce, "algorithm"), std::nullopt);
}

TEST_F(NcclModel, WithoutThePluginItIsMissingAndOnTheCpuThereIsNothingToMiss) {
  play("H200, NCCL 2.28.9", false);
  EXPECT_EQ(field(ev::StreamId::gather, "NCCL"), kMissing);
  play("CPU, shared memory", false);
  EXPECT_EQ(field(ev::StreamId::gather, "NCCL"), std::nullopt);
}

TEST_F(NcclModel, MemoryOutsideTheRuntimeIsACurve) {
  play("H200", false);
  const auto samples = app_.run->index().outside(0);
  ASSERT_EQ(samples.size(), 2U);
  const std::int64_t first = samples[0].at_ns;
  EXPECT_EQ(outside_at(samples, first - 1), std::nullopt);
  EXPECT_EQ(outside_at(samples, first), 3000);
  EXPECT_EQ(outside_at(samples, samples[1].at_ns - 1), 3000);
  EXPECT_EQ(outside_at(samples, samples[1].at_ns), 3500);
  EXPECT_TRUE(app_.run->index().outside(1).empty());
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

/// What the Inspector says of a rank that was heard so often, every two seconds.
std::string drift_shown(int heard) {
  store::Store store;
  for (int i = 0; i < heard; ++i) {
    store::ChunkBuilder builder(0, static_cast<std::uint64_t>(i));
    builder.chunk.clock_offset_ns = 1'000'000 + i * 30'000;
    builder.chunk.clock_residual_ns = 2'500;
    store.ingest(builder.host(i * std::int64_t{2'000'000'000}, ev::EventKind::tokens).chunk);
  }
  AppState app;
  app.run = std::make_unique<Session>(std::move(store));
  app.run->settle();
  app.select_rank(0);
  const Details details = describe_selection(app);
  const auto found = std::ranges::find(details.fields, "clock drift", &Field::label);
  return found == details.fields.end() ? "no such field" : found->value + found->unit;
}

TEST(RankDetails, SayHowWellItsClockIsKnownAndWhatIsNotKnown) {
  EXPECT_EQ(drift_shown(1), kMissing);
  EXPECT_EQ(drift_shown(2), "15.0 ± 2.5ppm");
}

TEST(SchedulingAtGate, FindsTheDifferenceFromAGateOn) {
  analysis::Scheduling scheduling;
  for (const std::uint64_t number : {10U, 11U, 13U, 13U, 17U}) {
    scheduling.gates.push_back({.at_ns = 0, .number = number, .kind = {}, .id = 0});
  }  // two boundaries share gate 13: a fetch and an attribute access
  EXPECT_EQ(SchedulingAt::difference_from(scheduling, 0), std::nullopt);
  scheduling.comparison.differences = {{1, {}, {}, "second"}, {3, {}, {}, "fourth"}};
  EXPECT_EQ(SchedulingAt::difference_from(scheduling, 0), 0U);
  EXPECT_EQ(SchedulingAt::difference_from(scheduling, 11), 0U);
  EXPECT_EQ(SchedulingAt::difference_from(scheduling, 12), 1U);
  EXPECT_EQ(SchedulingAt::difference_from(scheduling, 13), 1U);
  EXPECT_EQ(SchedulingAt::difference_from(scheduling, 14), std::nullopt);
}

TEST_F(Model, SchedulingIsKeptForTheMicroStepLookedAt) {
  SchedulingAt kept;
  const std::uint32_t rank = data().ranks().front().rank;
  const analysis::Scheduling& first = kept.of(data(), rank, data().end_ns());
  const analysis::Scheduling fresh = analysis::compare_scheduling(data(), rank, data().end_ns());
  EXPECT_EQ(first.missing, fresh.missing);
  EXPECT_EQ(first.text(), fresh.text());
  const analysis::Scheduling& again = kept.of(data(), rank, 0);
  EXPECT_EQ(again.micro_step, analysis::compare_scheduling(data(), rank, 0).micro_step);
}

}  // namespace
}  // namespace shardscope::gui
