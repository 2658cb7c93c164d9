// Stepping through a run, and what is shown of a position: statuses, actions with their reasons, decisions
// compared.
#include "app/gui/model/stepping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/model/details.h"
#include "app/gui/model/names.h"
#include "app/gui/model/scheduling_at.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/zenflow.h"
#include "tests/app/gui/model_fixture.h"
#include "tests/app/store/event_builder.h"

namespace shardscope::gui {
namespace {

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

TEST_F(Model, ActionsSayWhatWasFetchedAndWhyPrefetchingStopped) {
  const auto actions = scheduler_actions(data(), 0, 0, data().end_ns());
  const auto says = [&](const std::string& part) {
    return std::ranges::any_of(actions, [&](const SchedulerAction& action) {
      return action.text.find(part) != std::string::npos || action.reason.find(part) != std::string::npos;
    });
  };
  EXPECT_TRUE(says("Prefetch started"));
  EXPECT_TRUE(says("Released"));
  EXPECT_TRUE(says("prefetching stopped at"));
  EXPECT_FALSE(says("unknown"));
}

TEST(SecondaryCopies, AreShownBesideTheStatusUntilTheWeightsChange) {
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
  const std::vector<SchedulerAction> actions =
      scheduler_actions(store, 0, 290 - store.origin_ns(), 710 - store.origin_ns());
  ASSERT_EQ(actions.size(), 5U);
  EXPECT_EQ(actions[0].text, "Released: weight (4 elements); this rank keeps its part of a secondary copy");
  EXPECT_EQ(actions[4].text, "Secondary copy ended: weight (4 elements)");
}

TEST(SchedulerActions, OfAnUpdateSayWhatItDidAndWhy) {
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
  add(ev::EventKind::clip_factor, 0, 7, kNone, kNone, number(1));  // not clipped: no action
  add(ev::EventKind::columns_selected, static_cast<std::uint8_t>(plan::SelectionCause::interval), 0, 7, 2, 8,
      16);
  add(ev::EventKind::columns_selected, 0, 0, 7, 2, 8, 16);  // of a program that does not say why
  add(ev::EventKind::update_votes, 0, 7, 3, 5, number(0.75), 6);
  add(ev::EventKind::deferred_update, 0, static_cast<std::uint32_t>(plan::UpdateCause::votes), 8, 4, 16);
  add(ev::EventKind::deferred_update, 0, kNone, 8, 1, 16);
  add(ev::EventKind::deferred_update, 1, kNone, 9, kNone, 16);
  add(ev::EventKind::feedback_reset, 0, 9, 2, kNone, 500);
  add(ev::EventKind::micro_batch, 0, 9, 3, 4, 43, 5);
  add(ev::EventKind::gradient_not_finite, 3, 9, 0, 1, 7, 2);
  store.ingest(chunk);
  std::vector<std::pair<std::string, std::string>> said;
  for (const SchedulerAction& action : scheduler_actions(store, 0, 0, store.end_ns() + 1))
    said.emplace_back(action.text, action.reason);
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
          {"Error feedback reset: 2 parameters, 500 elements", "reset_T is over"},
          {"Micro-batch of 4 x 12", "5 of 48 positions are padding"},
          {"First gradient not finite: fc.weight", "7 elements infinite or NaN in this rank's partition"}}));
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
