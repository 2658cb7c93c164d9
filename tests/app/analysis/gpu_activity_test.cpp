// Why streams of the GPU are idle, from made-up streams of events: every figure is a closed form.
#include "app/analysis/gpu_activity.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using ev::GpuOwner;
using ev::GpuWork;
using namespace test;

std::int64_t of(const GapTimes& times, GapCause cause) { return times[static_cast<std::size_t>(cause)]; }
std::int64_t sum(const GapTimes& times) {
  return std::accumulate(times.begin(), times.end(), std::int64_t{0});
}

void work(RunBuilder& run, StreamId lane, std::int64_t begin, std::int64_t end,
          std::optional<std::int64_t> launch, GpuWork kind = GpuWork::kernel) {
  run.span(0, begin, end, EventKind::gpu_begin, lane, 1, 1, ev::gpu_code(kind, GpuOwner::forward),
           launch ? begin - *launch : ev::kNoDelay, 256);
}

TEST(GapExplained, TheComputeStreamWaitsThenTheHostIsLateThenItIsQueued) {
  GpuSurroundings around;
  around.waits = {{{100, 130}, GapCause::waiting_for_gather}, {{150, 160}, GapCause::waiting_for_reduce}};
  // The gap is [100, 200); what ended it was launched at 180.
  const GapTimes parts = explain_gap(StreamId::gpu_compute, {100, 200}, 180, around);
  EXPECT_EQ(of(parts, GapCause::waiting_for_gather), 30);
  EXPECT_EQ(of(parts, GapCause::waiting_for_reduce), 10);
  EXPECT_EQ(of(parts, GapCause::host_late), 40);
  EXPECT_EQ(of(parts, GapCause::queued), 20);
  EXPECT_EQ(sum(parts), 100);
}

TEST(GapExplained, ALaunchBeforeTheGapIsNotLateAndOneThatIsNotKnownExplainsNothing) {
  EXPECT_EQ(of(explain_gap(StreamId::gpu_compute, {100, 200}, 20, {}), GapCause::queued), 100);
  EXPECT_EQ(of(explain_gap(StreamId::gpu_compute, {100, 200}, 300, {}), GapCause::host_late), 100);
  GpuSurroundings around;
  around.waits = {{{90, 110}, GapCause::waiting_for_gather}};
  const GapTimes parts = explain_gap(StreamId::gpu_compute, {100, 200}, std::nullopt, around);
  EXPECT_EQ(of(parts, GapCause::waiting_for_gather), 10);
  EXPECT_EQ(of(parts, GapCause::unexplained), 90);
}

TEST(GapExplained, AGatherIsOnlyLateWhileComputationWaitsForWantOfIt) {
  GpuSurroundings around;
  around.compute_busy = IntervalSet({{0, 140}});
  around.waits = {{{140, 160}, GapCause::waiting_for_gather}, {{160, 170}, GapCause::waiting_for_reduce}};
  const GapTimes gather = explain_gap(StreamId::gpu_gather, {100, 200}, 190, around);
  EXPECT_EQ(of(gather, GapCause::nothing_to_do), 40 + 10);  // computation went on, or waited for a bucket
  EXPECT_EQ(of(gather, GapCause::host_late), 20 + 20);      // it waited for a gather, or for the host
  EXPECT_EQ(of(gather, GapCause::queued), 10);
  EXPECT_EQ(sum(gather), 100);
  const GapTimes reduce = explain_gap(StreamId::gpu_reduce, {100, 200}, 190, around);
  EXPECT_EQ(of(reduce, GapCause::nothing_to_do), 40 + 20);
  EXPECT_EQ(of(reduce, GapCause::host_late), 10 + 20);
}

TEST(GapExplained, WhatIsQueuedWhileComputationRunsHoldsUpNobodyYet) {
  GpuSurroundings around;
  around.compute_busy = IntervalSet({{0, 140}, {160, 175}});
  const GapTimes reduce = explain_gap(StreamId::gpu_reduce, {100, 200}, 120, around);
  EXPECT_EQ(of(reduce, GapCause::nothing_to_do), 20);
  EXPECT_EQ(of(reduce, GapCause::queued_while_computing), 20 + 15);
  EXPECT_EQ(of(reduce, GapCause::queued), 20 + 25);
  EXPECT_EQ(sum(reduce), 100);
  // Computation's own stream is what is queued for.
  const GapTimes compute = explain_gap(StreamId::gpu_compute, {140, 160}, 150, around);
  EXPECT_EQ(of(compute, GapCause::queued_while_computing), 0);
  EXPECT_EQ(of(compute, GapCause::queued), 10);
}

/// A step [1000, 2000) of one rank whose GPU records cover [900, 2100).
RunBuilder recorded_step() {
  RunBuilder run(1);
  run.instant(0, 0, EventKind::tokens, StreamId::host);  // time 0
  run.span(0, 1000, 2000, EventKind::step_begin, StreamId::host, 0);
  run.span(0, 1000, 2000, EventKind::module_begin, StreamId::compute, 1);
  run.span(0, 1200, 1300, EventKind::fetch_wait_begin, StreamId::compute, 1, 5);
  work(run, StreamId::gpu_compute, 1100, 1200, 1050);
  work(run, StreamId::gpu_compute, 1300, 1500, 1060);
  work(run, StreamId::gpu_compute, 1600, 1800, 1580);
  work(run, StreamId::gpu_compute, 2050, 2080, 2040);
  work(run, StreamId::gpu_gather, 1150, 1300, 1145, GpuWork::device_to_device);
  return run;
}

void cover(RunBuilder& run, std::int64_t begin, std::int64_t end, std::int64_t dropped = 0) {
  run.span(0, begin, end, EventKind::gpu_records_begin, StreamId::gpu_records, 1, 0, 0, 10, dropped);
}

TEST(GpuActivity, BusyAndIdleAddUpToTheStepAndEachGapHasItsCause) {
  RunBuilder run = recorded_step();
  cover(run, 900, 1400, 3);
  cover(run, 1400, 2100);
  const auto gpu = gpu_activity(run.build(), 0, 1000, 2000);
  ASSERT_TRUE(gpu.has_value());
  const GpuStream& compute = gpu->streams.at(StreamId::gpu_compute);
  EXPECT_EQ(compute.kernels, 3U);
  EXPECT_EQ(compute.copies, 0U);
  EXPECT_EQ(compute.busy_ns, 100 + 200 + 200);
  EXPECT_EQ(compute.busy_ns + sum(compute.idle_ns), 1000);
  EXPECT_EQ(of(compute.idle_ns, GapCause::waiting_for_gather), 100);
  // [1000, 1050) and [1500, 1580) before a launch; what follows the step was launched after its end.
  EXPECT_EQ(of(compute.idle_ns, GapCause::host_late), 50 + 80 + 200);
  EXPECT_EQ(of(compute.idle_ns, GapCause::queued), 50 + 20);
  EXPECT_EQ(compute.launches, 3U);
  EXPECT_EQ(compute.delay_min_ns, 20);
  EXPECT_EQ(compute.delay_max_ns, 240);
  EXPECT_EQ(compute.delay_sum_ns, 50 + 240 + 20);
  const GpuStream& gather = gpu->streams.at(StreamId::gpu_gather);
  EXPECT_EQ(gather.copies, 1U);
  EXPECT_EQ(gather.busy_ns + sum(gather.idle_ns), 1000);
  EXPECT_EQ(of(gather.idle_ns, GapCause::nothing_to_do),
            45 + 700);  // compute runs 1100-1145; nothing came after
  EXPECT_EQ(of(gather.idle_ns, GapCause::host_late), 100);
  // A flush counts in the step in which its stretch begins: the first began before it.
  EXPECT_EQ(gpu->dropped, 0U);
}

TEST(GpuActivity, IsMissingWhereTheRecordsDoNotCoverTheStep) {
  RunBuilder none = recorded_step();
  EXPECT_FALSE(gpu_activity(none.build(), 0, 1000, 2000).has_value());
  RunBuilder hole = recorded_step();
  cover(hole, 900, 1400);
  cover(hole, 1401, 2100);
  EXPECT_FALSE(gpu_activity(hole.build(), 0, 1000, 2000).has_value());
}

TEST(GpuActivity, PausesAreInNoFigure) {
  RunBuilder run = recorded_step();
  cover(run, 900, 2100);
  run.span(0, 1510, 1560, EventKind::paused_begin, StreamId::host, 1);
  const auto gpu = gpu_activity(run.build(), 0, 1000, 2000);
  const GpuStream& compute = gpu->streams.at(StreamId::gpu_compute);
  EXPECT_EQ(compute.busy_ns + sum(compute.idle_ns), 950);
  EXPECT_EQ(of(compute.idle_ns, GapCause::host_late), 50 + 30 + 200);
}

// The host waits at once, and the streams are idle when they have done what was queued.
TEST(GpuActivity, WorkThatRunsOnIntoAPauseIsInNoFigureEither) {
  RunBuilder run = recorded_step();
  cover(run, 900, 2100);
  run.span(0, 1450, 1560, EventKind::paused_begin, StreamId::host, 1);
  const store::Store& store = run.build();
  const auto gpu = gpu_activity(store, 0, 1000, 2000);
  const GpuStream& compute = gpu->streams.at(StreamId::gpu_compute);
  EXPECT_EQ(compute.busy_ns, 100 + 150 + 200);
  EXPECT_EQ(compute.busy_ns + sum(compute.idle_ns), 1000 - 110);
  EXPECT_EQ(compute.busy_ns, partition_time(store, 0, 1000, 2000).compute_ns);
}

// Nobody was late while the user held the run.
TEST(GpuActivity, TheGapBeforeAKernelIsWithoutPauses) {
  RunBuilder run = recorded_step();
  cover(run, 900, 2100);
  run.span(0, 1510, 1560, EventKind::paused_begin, StreamId::host, 1);
  const store::Store& store = run.build();
  const store::LaneId lane{0, StreamId::gpu_compute};
  const auto gap = gap_before(store, lane, store.spans(lane, 0)[2]);
  ASSERT_TRUE(gap.has_value());
  EXPECT_EQ(gap->at.end - gap->at.begin, 100);
  EXPECT_EQ(gap->paused_ns, 50);
  EXPECT_EQ(of(gap->parts, GapCause::host_late), 30);
  EXPECT_EQ(of(gap->parts, GapCause::queued), 20);
  EXPECT_EQ(sum(gap->parts), 50);
}

TEST(GpuActivity, TheGapBeforeAKernelIsThatSinceTheLastOneOfItsStream) {
  RunBuilder run = recorded_step();
  cover(run, 900, 2100);
  const store::Store& store = run.build();
  const store::LaneId lane{0, StreamId::gpu_compute};
  const auto spans = store.spans(lane, 0);
  ASSERT_EQ(spans.size(), 4U);
  EXPECT_FALSE(gap_before(store, lane, spans[0]).has_value());
  const auto gap = gap_before(store, lane, spans[2]);
  ASSERT_TRUE(gap.has_value());
  EXPECT_EQ(gap->at.begin, spans[1].end_ns);
  EXPECT_EQ(gap->at.end, spans[2].begin_ns);
  EXPECT_EQ(of(gap->parts, GapCause::host_late), 80);
  EXPECT_EQ(gap_text(gap->parts, [](std::int64_t ns) { return std::to_string(ns) + " ns"; }),
            "host late 80 ns, queued 20 ns");
}

TEST(GpuActivity, IsTheComputationOfTheStepAndStandsInTheSummary) {
  RunBuilder run = recorded_step();
  cover(run, 900, 2100);
  run.instant(0, 1700, EventKind::gpu_clock, StreamId::host, 20, ev::kNoId, ev::kNoId, 0, 350, 12);
  run.instant(0, 1800, EventKind::gpu_clock, StreamId::host, 20, ev::kNoId, ev::kNoId, 0, 120, 12);
  const store::Store& store = run.build();
  // The module's span is 1000 long, less 100 of waiting; its kernels 500.
  EXPECT_EQ(partition_time(store, 0, 1000, 2000).compute_ns, 500);
  const Summary summary = summarize(store);
  ASSERT_TRUE(summary.ranks[0].gpu.has_value());
  const auto json = nlohmann::json::parse(to_json(summary));
  const auto& gpu = json["ranks"][0]["gpu"];
  EXPECT_EQ(gpu["steps"], 1);
  EXPECT_EQ(gpu["clock_residual_ns"], 350) << "the largest, not the newest";
  EXPECT_NEAR(gpu["streams"]["gpu_compute"]["busy_ms"].get<double>(), 500e-6, 1e-9);
  EXPECT_NEAR(gpu["streams"]["gpu_compute"]["idle_ms"]["waiting_for_gather"].get<double>(), 100e-6, 1e-9);
  EXPECT_NEAR(gpu["streams"]["gpu_compute"]["launch_to_start_us"]["max"].get<double>(), 0.24, 1e-9);
  EXPECT_NEAR(gpu["streams"]["gpu_compute"]["launch_to_start_us"]["mean"].get<double>(), 0.31 / 3, 1e-9);
  // A copy, so of no kernels.
  EXPECT_NEAR(gpu["streams"]["gpu_gather"]["launch_to_start_us"]["mean"].get<double>(), 0.005, 1e-9);
}

TEST(GpuActivity, WithoutRecordsTheSummarySaysNullAndModulesAreTheComputation) {
  RunBuilder run = recorded_step();
  const store::Store& store = run.build();
  EXPECT_EQ(partition_time(store, 0, 1000, 2000).compute_ns, 900);
  const Summary summary = summarize(store);
  EXPECT_FALSE(summary.ranks[0].gpu.has_value());
  const auto json = nlohmann::json::parse(to_json(summary));
  EXPECT_TRUE(json["ranks"][0]["gpu"].is_null());
}

}  // namespace
}  // namespace shardscope::analysis
