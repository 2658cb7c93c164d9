// Where the time of a step went: shares that sum to it, with pauses and checkpoints apart.
#include <gtest/gtest.h>

#include <bit>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "app/analysis/digest.h"
#include "app/analysis/summary.h"
#include "runtime/plan/scheduler.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

/// One step of 1000 ns: compute 100..400 and 500..700 with a wait 550..600 inside, a gather 300..600, a
/// copy 650..800.
RunBuilder one_step(std::int64_t offset = 0, std::uint32_t step = 0) {
  RunBuilder run(1);
  run.span(0, offset + 0, offset + 1000, EventKind::step_begin, StreamId::host, step);
  run.span(0, offset + 100, offset + 400, EventKind::module_begin, StreamId::compute, 1);
  run.span(0, offset + 500, offset + 700, EventKind::module_begin, StreamId::compute, 1);
  run.span(0, offset + 550, offset + 600, EventKind::fetch_wait_begin, StreamId::compute, 1, 0);
  run.span(0, offset + 300, offset + 600, EventKind::collective_begin, StreamId::gather, 0, 0, kGatherOp,
           1000, 4000);
  run.span(0, offset + 650, offset + 800, EventKind::transfer_begin, StreamId::copy, 0);
  return run;
}

TEST(PartitionOfTime, IsTheClosedFormAndSumsToTheStep) {
  RunBuilder run = one_step();
  const TimePartition part = partition_time(run.build(), 0, 0, 1000);
  EXPECT_EQ(part.total_ns, 1000);
  EXPECT_EQ(part.compute_ns, 300 + 200 - 50);
  EXPECT_EQ(part.comm_ns, 300);
  EXPECT_EQ(part.exposed_comm_ns, 100 + 50);  // 400..500 and the wait 550..600
  EXPECT_EQ(part.exposed_copy_ns, 100);       // 700..800
  EXPECT_EQ(part.idle_ns, 100 + 200);
  EXPECT_EQ(part.compute_ns + part.exposed_comm_ns + part.exposed_copy_ns + part.idle_ns, part.total_ns);
  ASSERT_TRUE(part.overlap_pct());
  EXPECT_DOUBLE_EQ(*part.overlap_pct(), 50.0);
}

// On a CPU a module's span may be around a call that returns when its collective has ended.
TEST(PartitionOfTime, ASynchronousCallOnTheHostIsNotComputationOfTheModuleAroundIt) {
  for (const bool holds_host : {false, true}) {
    RunBuilder run(1);
    run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    run.span(0, 100, 900, EventKind::module_begin, StreamId::compute, 1);
    const std::uint32_t code = ev::collective_code(0, ev::CollectiveScope::world, 2);
    for (const auto& [at, kind] :
         {std::pair(300, EventKind::collective_begin), std::pair(500, EventKind::collective_end)})
      run.instant(0, at, kind, StreamId::reduce, 0, 0, code | (holds_host ? ev::kHoldsHost : 0), kGatherOp,
                  1000, 4000);
    const TimePartition part = partition_time(run.build(), 0, 0, 1000);
    EXPECT_EQ(part.comm_ns, 200);
    EXPECT_EQ(part.compute_ns, holds_host ? 600 : 800);
    EXPECT_EQ(part.exposed_comm_ns, holds_host ? 200 : 0);
    EXPECT_EQ(*part.overlap_pct(), holds_host ? 0 : 100);
  }
}

// Loaded from 0 to 60, copied from 60 to 90: the copy is exposed, what the loader took is idle, and both are
// the wait.
TEST(PartitionOfTime, DataThatIsWaitedForIsIdleAndItsCopyExposed) {
  RunBuilder run = one_step();
  run.span(0, 0, 90, EventKind::data_wait_begin, StreamId::compute, 0, 0);
  run.span(0, 60, 90, EventKind::transfer_begin, StreamId::copy, ev::kNoId, ev::kNoId,
           static_cast<std::uint8_t>(ev::TransferKind::input_to_device), 256);
  const store::Store& store = run.build();
  const TimePartition with = partition_time(store, 0, 0, 1000);
  RunBuilder plain = one_step();
  const TimePartition without = partition_time(plain.build(), 0, 0, 1000);
  EXPECT_EQ(with.compute_ns, without.compute_ns);
  EXPECT_EQ(with.exposed_copy_ns, without.exposed_copy_ns + 30);
  EXPECT_EQ(with.idle_ns, without.idle_ns - 30);
  EXPECT_EQ(summarize(store).ranks.at(0).data_wait_ns, 90);
  EXPECT_EQ(summarize(plain.build()).ranks.at(0).data_wait_ns, std::nullopt) << "none was recorded";
}

TEST(PartitionOfTime, PausesAreCutOut) {
  RunBuilder run = one_step();
  run.span(0, 350, 550, EventKind::paused_begin, StreamId::host);
  const TimePartition part = partition_time(run.build(), 0, 0, 1000);
  EXPECT_EQ(part.total_ns, 800);
  EXPECT_EQ(part.compute_ns + part.exposed_comm_ns + part.exposed_copy_ns + part.idle_ns, part.total_ns);
}

/// A rank's checkpoint with what it does inside: work on the host, a read of swapped states, a collective.
void checkpoint(RunBuilder& run, std::int64_t begin, std::int64_t end, ev::Phase phase, std::uint32_t step) {
  run.span(0, begin, end, EventKind::phase_begin, StreamId::compute, step, ev::kNoId,
           static_cast<std::uint8_t>(phase));
  run.span(0, begin + 10, begin + 20, EventKind::optimizer_begin, StreamId::worker, 0, step);
  run.span(0, begin + 20, begin + 50, EventKind::transfer_begin, StreamId::nvme, 0);
  run.span(0, begin + 60, end - 10, EventKind::collective_begin, StreamId::reduce, 7, 0, kGatherOp, 1000,
           4000);
}

TEST(PartitionOfTime, ACheckpointIsItsOwnShareAndNeverCompute) {
  RunBuilder run = one_step();
  // From the idle end of the step into the 200 ns after it, and over the last 50 ns of its copy.
  checkpoint(run, 750, 1200, ev::Phase::checkpoint_save, 1);
  const TimePartition part = partition_time(run.build(), 0, 0, 1200);
  EXPECT_EQ(part.checkpoint_ns, 450);
  EXPECT_EQ(part.compute_ns, 450);
  EXPECT_EQ(part.comm_ns, 300);
  EXPECT_EQ(part.exposed_copy_ns, 50);  // 700..750
  EXPECT_EQ(part.checkpoint_ns + part.compute_ns + part.exposed_comm_ns + part.exposed_copy_ns + part.idle_ns,
            part.total_ns);
}

TEST(Summary, CheckpointsBetweenStepsAreCountedApart) {
  RunBuilder run(1);
  checkpoint(run, 100, 300, ev::Phase::checkpoint_load, 3);
  for (std::uint32_t step = 3; step < 6; ++step) {
    const std::int64_t at = step * 1000;
    run.span(0, at, at + 500, EventKind::step_begin, StreamId::host, step);
    run.span(0, at + 100, at + 400, EventKind::module_begin, StreamId::compute, 1);
    checkpoint(run, at + 600, at + 800 + step, ev::Phase::checkpoint_save, step + 1);
  }
  Digest digest;
  const store::Store& store = run.build();
  EXPECT_TRUE(digest.update(store));
  EXPECT_TRUE(digest.update(store));
  const Summary s = summarize(store, digest);  // what was counted once is not counted again
  const Checkpoints& made = s.ranks.at(0).checkpoints;
  EXPECT_EQ(made.loads, 1U);
  EXPECT_EQ(made.load_ns, 200);
  EXPECT_EQ(made.saves, 3U);
  EXPECT_EQ(made.save_ns, 3 * 200 + 3 + 4 + 5);
  EXPECT_EQ(s.ranks.at(0).time.total_ns, 2 * 500);
  EXPECT_EQ(s.ranks.at(0).time.compute_ns, 2 * 300);
  EXPECT_EQ(s.ranks.at(0).time.checkpoint_ns, 0);
  const auto json = nlohmann::json::parse(to_json(s));
  EXPECT_EQ(json["ranks"][0]["checkpoints"]["saves"], 3);
  EXPECT_EQ(json["ranks"][0]["time_ms"]["checkpoint"], 0.0);
}

// Modules, gathers and waits of an evaluation lie between steps: in its own figure and in no step's.
TEST(Summary, EvaluationsBetweenStepsAreCountedApart) {
  RunBuilder run(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    for (std::uint32_t step = 0; step < 4; ++step) {
      const std::int64_t at = step * 1000;
      run.span(rank, at, at + 500, EventKind::step_begin, StreamId::host, step);
      run.span(rank, at + 100, at + 400, EventKind::module_begin, StreamId::compute, 1);
      run.instant(rank, at + 10, EventKind::trace_mode, StreamId::host, step, step, ev::kNoId,
                  static_cast<std::uint8_t>(step == 0 ? plan::TraceMode::record : plan::TraceMode::complete));
      if (step % 2 == 0) continue;
      const std::int64_t length = 300 + 10 * rank;
      run.span(rank, at + 550, at + 550 + length, EventKind::phase_begin, StreamId::compute, step, ev::kNoId,
               static_cast<std::uint8_t>(ev::Phase::evaluation));
      run.span(rank, at + 560, at + 700, EventKind::module_begin, StreamId::compute, 1);
      run.span(rank, at + 700, at + 720, EventKind::data_wait_begin, StreamId::compute);
      run.instant(rank, at + 555, EventKind::eval_trace_mode, StreamId::host, ev::kNoId, step, ev::kNoId,
                  static_cast<std::uint8_t>(step == 1 ? plan::TraceMode::record : plan::TraceMode::complete));
      run.instant(rank, at + 840, EventKind::eval_loss, StreamId::host, step, 3, ev::kNoId, 0,
                  std::bit_cast<std::int64_t>(4.0 / step));
    }
  }
  const store::Store& store = run.build();
  Digest digest;
  EXPECT_TRUE(digest.update(store));
  EXPECT_TRUE(digest.update(store));
  const Summary s = summarize(store, digest);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(s.ranks.at(rank).evaluations.count, 2U);
    EXPECT_EQ(s.ranks.at(rank).evaluations.ns, 2 * (300 + 10 * rank));
    EXPECT_EQ(s.ranks.at(rank).time.total_ns, 3 * 500);
    EXPECT_EQ(s.ranks.at(rank).time.compute_ns, 3 * 300);
    EXPECT_EQ(s.ranks.at(rank).data_wait_ns, std::nullopt) << "no step waited for data";
  }
  const auto json = nlohmann::json::parse(to_json(s));
  EXPECT_EQ(json["eval_loss"], nlohmann::json::parse("[null, 4.0, null, 1.3333333333333333]"));
  EXPECT_EQ(json["ranks"][1]["evaluations"]["ms"], 620e-6);
  EXPECT_EQ(json["trace"]["record"], 2) << "training's only";
  EXPECT_EQ(json["trace"]["complete"], 6);
  EXPECT_EQ(json["eval_trace"]["record"], 2);
  EXPECT_EQ(json["eval_trace"]["complete"], 2);
}

TEST(PartitionOfTime, WithoutCommunicationThereIsNoOverlapFigure) {
  RunBuilder run(1);
  run.span(0, 0, 100, EventKind::step_begin, StreamId::host, 0);
  EXPECT_FALSE(partition_time(run.build(), 0, 0, 100).overlap_pct());
}

}  // namespace
}  // namespace shardscope::analysis
