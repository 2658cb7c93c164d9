// Waits of a GPU's compute stream for which there are no spans, from made-up records of its lanes.
#include "app/analysis/stream_waits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "instrumentation/capability.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

constexpr std::int64_t kUs = 1000;

/// Work launched at `launch`. In microseconds.
void work(RunBuilder& run, StreamId lane, std::int64_t begin, std::int64_t end, std::int64_t launch,
          ev::GpuOwner owner = ev::GpuOwner::backward, std::uint32_t rank = 0) {
  run.span(rank, begin * kUs, end * kUs, EventKind::gpu_begin, lane, 1, 1,
           ev::gpu_code(ev::GpuWork::kernel, owner), (begin - launch) * kUs, 256);
}

/// The run says that it records everything but these.
void leave_out(store::Store& store, const std::vector<ev::Capability>& what) {
  ev::RunTables tables = store.tables();
  tables.records = ev::kAllCapabilities;
  for (const ev::Capability one : what) tables.records &= ~ev::bit_of(one);
  store.set_tables(0, tables);
}
const std::vector<ev::Capability> kWaits{ev::Capability::fetch_waits, ev::Capability::reduce_waits};

/// A kernel until 100 us, the next one begins at 300, launched at `launch`; a reduction ends at `reduced`.
std::vector<GpuWait> waits_of(std::int64_t launch, std::int64_t reduced,
                              const std::vector<ev::Capability>& lacks) {
  RunBuilder run(1);
  work(run, StreamId::gpu_compute, 0, 100, 0);
  work(run, StreamId::gpu_reduce, 50, reduced, 40);
  work(run, StreamId::gpu_compute, 300, 400, launch);
  store::Store& store = run.build();
  leave_out(store, lacks);
  return stream_waits(store, 0, {0, 500 * kUs});
}

TEST(StreamWaits, AKernelThatBeginsWhereAReductionEndsHasWaitedForIt) {
  const auto waits = waits_of(60, 290, kWaits);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].cause, GapCause::waiting_for_reduce);
  EXPECT_EQ(waits[0].at.begin, 100 * kUs) << "the end of the kernel before it";
  EXPECT_EQ(waits[0].at.end, 290 * kUs);
  const auto launched = waits_of(150, 290, kWaits);
  ASSERT_EQ(launched.size(), 1U);
  EXPECT_EQ(launched[0].at.begin, 150 * kUs) << "before, the host was late";
}

TEST(StreamWaits, ExplainTheGapBeforeAKernel) {
  RunBuilder run(1);
  work(run, StreamId::gpu_compute, 0, 100, 0);
  work(run, StreamId::gpu_gather, 50, 290, 40);
  work(run, StreamId::gpu_compute, 300, 400, 60);
  store::Store& store = run.build();
  leave_out(store, kWaits);
  const store::LaneId lane{0, StreamId::gpu_compute};
  const auto gap = gap_before(store, lane, store.spans(lane, 0)[1]);
  ASSERT_TRUE(gap);
  EXPECT_EQ(gap_text(gap->parts, [](std::int64_t ns) { return std::to_string(ns / kUs) + " us"; }),
            "waiting for gather 190 us, queued 10 us");
}

TEST(StreamWaits, NoneWhereTheHostWasLateOrSomethingElseHeldIt) {
  EXPECT_TRUE(waits_of(295, 290, kWaits).empty()) << "launched after the reduction";
  EXPECT_TRUE(waits_of(60, 270, kWaits).empty()) << "30 us later";
  EXPECT_TRUE(waits_of(60, 90, kWaits).empty()) << "ended before the stream was idle";
}

TEST(StreamWaits, NoneOfWhatTheRunRecordsItself) {
  EXPECT_TRUE(waits_of(60, 290, {}).empty());
  EXPECT_TRUE(waits_of(60, 290, {ev::Capability::fetch_waits}).empty());
  EXPECT_EQ(waits_of(60, 290, {ev::Capability::reduce_waits}).size(), 1U);
}

/// Ten steps of 10 ms of attached DeepSpeed 2 on a GPU: the backward waits for a bucket for 1 ms of each, and
/// the forward of the next micro-step for as long.
TEST(StreamWaits, ABackwardThatWaitsForBucketsIsFoundByTheGpusRecords) {
  for (const bool waits : {false, true}) {
    RunBuilder run(2, 2, "DeepSpeed 0.19.8");
    for (std::uint32_t step = 0; step < 10; ++step) {
      const std::int64_t at = step * 10'000;
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        run.span(rank, at * kUs, (at + 10'000) * kUs, EventKind::step_begin, StreamId::host, step);
        run.span(rank, at * kUs, (at + 9'000) * kUs, EventKind::module_begin, StreamId::compute, 1, step);
        const std::int64_t reduced = at + (waits ? 5'990 : 4'900);
        run.span(rank, (at + 2'000) * kUs, reduced * kUs, EventKind::collective_begin, StreamId::reduce, step,
                 0, static_cast<std::uint8_t>(CollectiveOp::all_reduce), 1000, 4000);
        run.span(rank, at * kUs, (at + 10'000) * kUs, EventKind::gpu_records_begin, StreamId::gpu_records, 1,
                 0, 0, 10, 0);
        const auto works = [&](StreamId lane, std::int64_t begin, std::int64_t end, std::int64_t launch,
                               ev::GpuOwner owner) { work(run, lane, begin, end, launch, owner, rank); };
        works(StreamId::gpu_compute, at, at + 5'000, at, ev::GpuOwner::backward);
        works(StreamId::gpu_reduce, at + 2'000, reduced, at + 1'000, ev::GpuOwner::collective);
        works(StreamId::gpu_compute, at + 6'000, at + 7'000, at + 100, ev::GpuOwner::backward);
        works(StreamId::gpu_reduce, at + 6'000, at + 7'290, at + 200, ev::GpuOwner::collective);
        works(StreamId::gpu_compute, at + 7'300, at + 10'000, at + 200, ev::GpuOwner::forward);
      }
    }
    store::Store& store = run.build();
    leave_out(store, kWaits);
    ev::RunTables tables = store.tables();
    tables.device = "cuda";
    tables.config_json = R"({"zero_optimization": {"stage": 2, "overlap_comm": true}})";
    store.set_tables(0, tables);
    // The forward's kernel has waited as well; the next micro-step needs what was reduced.
    EXPECT_EQ(stream_waits(store, 0, {0, 10'000 * kUs}).size(), waits ? 2U : 1U);
    const auto inside = reduction_waits_inside_backward(store, 0, {0, 10'000 * kUs});
    ASSERT_EQ(inside.size(), waits ? 1U : 0U);
    if (waits) {
      EXPECT_EQ(inside[0].end - inside[0].begin, 990 * kUs);
    }
    const auto findings = find(store, summarize(store));
    const auto found = std::ranges::find(findings, "serialized_buckets", &Finding::id);
    std::string ids;
    for (const Finding& one : findings) ids += one.id + " ";
    ASSERT_EQ(found != findings.end(), waits) << ids;
    if (waits) {
      EXPECT_NE(found->evidence.find("GPU's next kernel of the backward"), std::string::npos)
          << found->evidence;
      EXPECT_NEAR(*found->cost_ms, 0.99, 1e-6);
    }
  }
}

}  // namespace
}  // namespace shardscope::analysis
