// The lines of wall_clock_breakdown, memory_breakdown and log_level debug, from events with known times.
#include "runtime/train/training_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/fetch_counters.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::train {
namespace {

namespace ev = instrumentation;
using ev::EventKind;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::int64_t kMs = 1'000'000;

template <EventKind kind>
ev::Event at(std::int64_t ms, const ev::Fields<kind>& fields) {
  ev::Event event = ev::make<kind>(ev::StreamId::compute, fields);
  event.ticks = static_cast<std::uint64_t>(ms * kMs);
  return event;
}
template <EventKind begin>
ev::Event end_at(std::int64_t ms, const ev::Fields<begin>& fields) {
  ev::Event event = at<begin>(ms, fields);
  event.kind = ev::end_of(begin);
  return event;
}
void phase(std::vector<ev::Event>& events, ev::Phase which, std::int64_t begin, std::int64_t end) {
  events.push_back(at<EventKind::phase_begin>(begin, {.phase = which, .step = 0}));
  events.push_back(end_at<EventKind::phase_begin>(end, {.phase = which, .step = 0}));
}

/// Two micro-steps of 10 + 20 ms, and a step of 8 ms; modules' backwards end 3 and 4 ms before the phase, and
/// 2 ms are waited for the last bucket.
std::vector<ev::Event> a_step() {
  std::vector<ev::Event> events;
  events.push_back(at<EventKind::micro_step_begin>(0, {.micro_step = 0, .step = 0}));
  phase(events, ev::Phase::forward, 0, 10);
  phase(events, ev::Phase::backward, 10, 30);
  events.push_back(end_at<EventKind::module_begin>(27, {.pass = ev::Pass::backward, .module = 1}));
  events.push_back(at<EventKind::micro_step_begin>(30, {.micro_step = 1, .step = 0}));
  phase(events, ev::Phase::forward, 30, 41);
  phase(events, ev::Phase::backward, 41, 61);
  events.push_back(end_at<EventKind::module_begin>(57, {.pass = ev::Pass::backward, .module = 1}));
  events.push_back(at<EventKind::reduce_wait_begin>(61, {.bucket = 0}));
  events.push_back(end_at<EventKind::reduce_wait_begin>(63, {.bucket = 0}));
  phase(events, ev::Phase::optimizer, 64, 70);
  events.push_back(at<EventKind::optimizer_begin>(65, {.sub_group = 0, .step = 0}));
  events.push_back(end_at<EventKind::optimizer_begin>(69, {.sub_group = 0, .step = 0}));
  events.push_back(at<EventKind::step_end>(72, {.step = 0}));
  // No two at one time, and none at the clock's 0.
  std::uint64_t after = 1'000'000'000;
  for (ev::Event& event : events) event.ticks += after++;
  return events;
}

ev::RunTables tables() {
  ev::RunTables tables;
  tables.modules = {{.id = 0, .path = "h.0", .type = "Block", .params = {}},
                    {.id = 1, .path = "h.0.fc", .type = "Linear", .params = {0, 1}}};
  tables.params.resize(2);
  ev::ParamInfo& weight = tables.params[0];
  weight.id = 0;
  weight.name = "h.0.fc.weight";
  weight.shape = {8, 4};
  weight.elems = 32;
  ev::ParamInfo& bias = tables.params[1];
  bias.id = 1;
  bias.name = "h.0.fc.bias";
  bias.shape = {8};
  bias.elems = 8;
  bias.persistent = bias.frozen = true;
  return tables;
}

std::vector<std::string> lines_of(LogParts parts, const std::vector<std::vector<ev::Event>>& batches,
                                  std::uint64_t dropped = 0) {
  std::vector<std::string> lines;
  TrainingLog log(parts, tables(), [&](const std::string& line) { lines.push_back(line); });
  for (const auto& batch : batches) log.add(batch, dropped);
  return lines;
}

TEST(TrainingLog, TimesAreThoseOfTheParts) {
  EXPECT_THAT(
      lines_of({.times = true}, {a_step()}),
      ElementsAre(
          "time (ms) | fwd_microstep: 10.00 | bwd_microstep: 20.00 | bwd_inner_microstep: 17.00 | "
          "bwd_allreduce_microstep: 3.00 | step_microstep: 0.00",
          "time (ms) | optimizer_gradients: 1.00 | optimizer_step: 4.00 | optimizer_allgather: 2.00",
          "time (ms) | fwd_microstep: 11.00 | bwd_microstep: 20.00 | bwd_inner_microstep: 16.00 | "
          "bwd_allreduce_microstep: 6.00 | step_microstep: 8.00",
          "time (ms) | fwd: 21.00 | bwd: 40.00 | bwd_inner: 33.00 | bwd_allreduce: 9.00 | step: 8.00"));
}

// A GPU's events reach the publisher after the host's.
TEST(TrainingLog, OrderOfArrivalDoesNotMatter) {
  std::vector<ev::Event> all = a_step();
  const auto expected = lines_of({.times = true}, {all});
  std::vector<ev::Event> late;
  for (auto it = all.begin(); it != all.end();) {
    const bool keep = it->kind != EventKind::phase_begin && it->kind != EventKind::phase_end &&
                      it->kind != EventKind::step_end;
    if (!keep) late.push_back(*it);
    it = keep ? it + 1 : all.erase(it);
  }
  EXPECT_THAT(lines_of({.times = true}, {all}), IsEmpty()) << "the step is not over";
  EXPECT_EQ(lines_of({.times = true}, {all, late}), expected);
}

TEST(TrainingLog, TheNextStepBeginsFromNothing) {
  std::vector<ev::Event> second = a_step();
  for (ev::Event& event : second) event.ticks += 100 * kMs;
  const auto once = lines_of({.times = true}, {a_step()});
  auto twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(lines_of({.times = true}, {a_step(), second}), twice);
  std::vector<ev::Event> both = a_step();
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_EQ(lines_of({.times = true}, {both}), twice) << "both in one batch";
}

TEST(TrainingLog, CountersAreSummedOverMicroSteps) {
  std::vector<ev::Event> events = a_step();
  for (const std::uint32_t micro : {0U, 1U}) {
    events.push_back(at<EventKind::fetch_counter>(
        1029 + micro * 30,
        {.counter = plan::FetchCounter{}, .micro_step = micro, .step = 0, .count = 3, .elems = 50}));
  }
  EXPECT_THAT(lines_of({.times = true}, {events}), Contains("forward_fetch_submit: count = 6, numel = 100"));
}

TEST(TrainingLog, MemoryIsThatOfTheMomentAndThePeakSinceTheLineBefore) {
  constexpr std::int64_t kGiB = 1LL << 30;
  std::vector<ev::Event> events = a_step();
  const auto device = [](std::int64_t ms, std::int64_t bytes) {
    return at<EventKind::memory_alloc>(ms, {.pool = ev::MemoryPool::device, .bytes = 1, .pool_bytes = bytes});
  };
  events.insert(events.begin(), device(1000, kGiB));
  events.push_back(device(1005, 3 * kGiB));
  events.push_back(
      at<EventKind::memory_free>(1008, {.pool = ev::MemoryPool::device, .bytes = 1, .pool_bytes = 2 * kGiB}));
  events.push_back(at<EventKind::memory_alloc>(
      1009, {.pool = ev::MemoryPool::pinned, .bytes = 1, .pool_bytes = kGiB / 2}));
  EXPECT_THAT(lines_of({.memory = true}, {events}),
              ElementsAre("Engine before forward: MA 1.0000 GiB, Max_MA 1.0000 GiB",
                          "Engine after forward: MA 2.0000 GiB, Max_MA 3.0000 GiB, pinned 0.5000 GiB",
                          "Engine before backward: MA 2.0000 GiB, Max_MA 2.0000 GiB, pinned 0.5000 GiB",
                          StartsWith("Engine after backward"), StartsWith("Engine before forward"),
                          StartsWith("Engine after forward"), StartsWith("Engine before backward"),
                          StartsWith("Engine after backward"), StartsWith("Engine before step"),
                          StartsWith("Engine after step: MA 2.0000 GiB")));
}

TEST(TrainingLog, DecisionsHaveTheCoordinatorsWords) {
  std::vector<ev::Event> events = a_step();
  const auto status = [](std::int64_t ms, std::uint32_t param, plan::ParamStatus to, ev::StatusCause cause) {
    return at<EventKind::param_status>(ms, {.status = to, .cause = cause, .param = param, .module = 1});
  };
  events.push_back(
      at<EventKind::fetch_decision>(1001, {.module = 1, .trace_step = 4, .available_elems = 40}));
  events.push_back(status(1002, 0, plan::ParamStatus::in_flight, ev::StatusCause::fetch));
  events.push_back(status(1003, 0, plan::ParamStatus::available, ev::StatusCause::fetch));
  events.push_back(status(1004, 1, plan::ParamStatus::in_flight, ev::StatusCause::prefetch));
  events.push_back(status(1005, 0, plan::ParamStatus::not_available, ev::StatusCause::release));
  EXPECT_THAT(
      lines_of({.decisions = true}, {events}),
      ElementsAre("4: M1(h.0.fc) P[0, 1] {'avail': '4.0e+01'}",
                  "-fetch: {'id': 0, 'name': 'h.0.fc.weight', 'status': 'NOT_AVAILABLE', 'ds_numel': 32, "
                  "'ds_shape': (8, 4), 'requires_grad': True, 'persist': False}",
                  AllOf(StartsWith("-wait: {'id': 0,"), HasSubstr("'status': 'INFLIGHT'")),
                  AllOf(StartsWith("-prefetch: {'id': 1,"), HasSubstr("'ds_shape': (8,)"),
                        HasSubstr("'requires_grad': False, 'persist': True")),
                  AllOf(StartsWith("-release: {'id': 0,"), HasSubstr("'status': 'AVAILABLE'"))));
}

TEST(TrainingLog, WhatWasDroppedIsSaidOnce) {
  std::vector<std::vector<ev::Event>> batches{a_step(), a_step()};
  for (ev::Event& event : batches[1]) event.ticks += 100 * kMs;
  std::vector<std::string> lines;
  TrainingLog log({.times = true}, tables(), [&](const std::string& line) { lines.push_back(line); });
  log.add(batches[0], 7);
  EXPECT_THAT(lines, Contains("7 events were dropped: the lines above may lack some or be too short"));
  lines.clear();
  log.add(batches[1], 0);
  EXPECT_THAT(lines, Not(Contains(HasSubstr("dropped"))));
}

TEST(TrainingLog, PartsThatWereNotRecordedAreLeftOut) {
  std::vector<ev::Event> events = a_step();
  std::erase_if(events, [](const ev::Event& event) {
    return event.kind == EventKind::module_end || event.kind == EventKind::optimizer_begin ||
           event.kind == EventKind::optimizer_end;
  });
  EXPECT_THAT(lines_of({.times = true}, {events}),
              ElementsAre("time (ms) | fwd_microstep: 10.00 | bwd_microstep: 20.00 | step_microstep: 0.00",
                          "time (ms) | fwd_microstep: 11.00 | bwd_microstep: 20.00 | step_microstep: 8.00",
                          "time (ms) | fwd: 21.00 | bwd: 40.00 | step: 8.00"));
}

TEST(TrainingLog, MemoryIsNotThatOfBeforeTheDetailWasLowered) {
  std::vector<ev::Event> events = a_step();
  events.push_back(
      at<EventKind::detail_changed>(1005, {.detail = ev::Detail::phases, .before = ev::Detail::params}));
  const auto lines = lines_of({.memory = true}, {events});
  ASSERT_EQ(lines.size(), 10U);
  EXPECT_THAT(lines[0], HasSubstr("MA 0.0000 GiB"));
  for (std::size_t i = 1; i < lines.size(); ++i) EXPECT_THAT(lines[i], HasSubstr("memory is not recorded"));
}

// Of a step that was under way when recording began, or whose begin was lost.
TEST(TrainingLog, AStepWithoutItsBeginsSaysNothingOfThem) {
  EXPECT_THAT(lines_of({.times = true, .memory = true},
                       {{at<EventKind::step_end>(5, {.step = 0}),
                         end_at<EventKind::phase_begin>(3, {.phase = ev::Phase::forward})}}),
              Not(Contains(HasSubstr("fwd_microstep"))));
}

}  // namespace
}  // namespace shardscope::train
