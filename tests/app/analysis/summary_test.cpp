#include "app/analysis/summary.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "app/analysis/communication.h"
#include "app/analysis/digest.h"
#include "app/analysis/statistics.h"
#include "app/analysis/verdict_basis.h"
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
  EXPECT_EQ(summarize(plain.build()).ranks.at(0).data_wait_ns, std::nullopt) << "older recordings have none";
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

TEST(PartitionOfTime, WithoutCommunicationThereIsNoOverlapFigure) {
  RunBuilder run(1);
  run.span(0, 0, 100, EventKind::step_begin, StreamId::host, 0);
  EXPECT_FALSE(partition_time(run.build(), 0, 0, 100).overlap_pct());
}

TEST(Summary, FirstStepIsWarmUpAndMissingFiguresAreMissing) {
  RunBuilder run(1);
  for (std::uint32_t step = 0; step < 4; ++step) {
    const std::int64_t at = step * 10'000'000;
    run.span(0, at, at + (step == 0 ? 9'000'000 : 2'000'000 + step * 1'000'000), EventKind::step_begin,
             StreamId::host, step);
  }
  const Summary s = summarize(run.build());
  EXPECT_EQ(s.steps, 4U);
  EXPECT_EQ(s.steps_measured, 3U);
  ASSERT_TRUE(s.step_ms_median);
  EXPECT_DOUBLE_EQ(*s.step_ms_median, 4.0);
  EXPECT_FALSE(s.tokens_per_s);
  EXPECT_TRUE(std::isnan(s.loss.at(0)));
  const auto json = nlohmann::json::parse(to_json(s));
  EXPECT_TRUE(json["loss"][0].is_null());
  EXPECT_TRUE(json["tokens_per_s"].is_null());
  EXPECT_TRUE(json["memory_model"]["measured_bytes_per_rank"].is_null());
}

TEST(Communication, BandwidthUsesTheShortestDurationAndTheGroupSize) {
  RunBuilder run(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    run.span(rank, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    run.span(rank, rank == 0 ? 100 : 300, 500, EventKind::collective_begin, StreamId::gather, 0, 0, kGatherOp,
             1000, 4000);
    run.span(rank, 600, 700, EventKind::collective_begin, StreamId::reduce, 0, 0,
             static_cast<std::uint8_t>(CollectiveOp::all_reduce), 500, 2000);
  }
  const Summary s = summarize(run.build());
  ASSERT_EQ(s.ops.size(), 2U);
  EXPECT_EQ(s.ops[0].op, CollectiveOp::all_gather);
  EXPECT_DOUBLE_EQ(*s.ops[0].algbw_gbs, 4000.0 / 200.0);
  EXPECT_DOUBLE_EQ(*s.ops[0].busbw_gbs, 20.0 * 0.5);
  EXPECT_DOUBLE_EQ(*s.ops[1].busbw_gbs, 20.0 * 1.0);  // 2 (n-1)/n with n = 2
  EXPECT_DOUBLE_EQ(*s.elements_per_step, 1000 + 2 * 500);
}

TEST(Communication, ExpressionsOfTheStages) {
  struct Case {
    std::int32_t stage;
    const char* expression;
    double elements;
  };
  for (const Case& c : {Case{0, "2S", 2000}, Case{1, "2S", 2000}, Case{2, "2S", 2000}, Case{3, "3S", 3000}}) {
    RunBuilder run(2, c.stage);
    run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    const Summary s = summarize(run.build());
    EXPECT_EQ(s.comm_expression, c.expression);
    EXPECT_DOUBLE_EQ(s.expected_elements_per_step, c.elements);
  }
}

TEST(Memory, ExpressionOfTheRunsDataTypes) {
  for (const auto& [stage, text, bytes] :
       {std::tuple{0, "16S", 16000}, {1, "8S + 8S/n", 12000}, {2, "4S + 12S/n", 10000}, {3, "16S/n", 8000}}) {
    RunBuilder run(2, stage);  // fp32: the parameter is its own master
    const Summary s = summarize(run.build());
    EXPECT_EQ(s.memory_model.expression, text);
    EXPECT_EQ(s.memory_model.bytes_per_rank, bytes);
  }
}

/// A stage-3 run of two ranks on two nodes, with these settings.
Summary summary_with(const std::string& zero) {
  RunBuilder run(2);
  run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
  store::Store& store = run.build();
  ev::RunTables tables = store.tables();
  tables.local_world = 1;
  tables.config_json = R"({"gradient_accumulation_steps": 1, "zero_optimization": )" + zero + "}";
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    tables.rank = rank;
    store.set_tables(rank, tables);
  }
  return summarize(store);
}

// One parameter of 1000 elements, fp32: int8 and a scale for each rank's shard, the copy in fp32, a
// reduce-scatter because it has one dimension; and a secondary copy of 4 bytes an element over two ranks.
TEST(Expressions, FollowZeroPlusPlusAndMics) {
  const Summary plus = summary_with(
      R"({"zero_hpz_partition_size": 2, "zero_quantized_weights": true, "zero_quantized_gradients": true})");
  EXPECT_EQ(plus.comm_expression, "S int8 + S secondary + S int4");
  EXPECT_DOUBLE_EQ(plus.expected_elements_per_step, 1002 + 1000 + 1000);
  EXPECT_EQ(plus.memory_model.expression, "16S/n + 4S/2 (hpZ)");
  EXPECT_EQ(plus.memory_model.bytes_per_rank, 8000 + 2000);
  const Summary mics = summary_with(R"({"mics_shard_size": 1})");
  EXPECT_EQ(mics.comm_expression, "S + S + S + 2S replicas");
  EXPECT_DOUBLE_EQ(mics.expected_elements_per_step, 5000);
  EXPECT_EQ(mics.memory_model.expression, "16S/1 (MiCS)");
  EXPECT_EQ(mics.memory_model.bytes_per_rank, 16000);
}

// A recording whose detail was raised after the states were allocated holds gradients alone: no measurement.
TEST(Memory, WhatWasAllocatedAtLessDetailIsNotMeasured) {
  const auto measured = [](ev::Detail before) {
    RunBuilder run(2);
    run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    run.instant(0, 1, EventKind::detail_changed, StreamId::host, static_cast<std::uint32_t>(before),
                ev::kNoId, ev::kNoId, static_cast<std::uint8_t>(ev::Detail::kernels));
    run.instant(0, 2, EventKind::memory_alloc, StreamId::host, ev::kNoId, ev::kNoId, ev::kNoId,
                static_cast<std::uint8_t>(ev::MemoryCategory::grad_full), 2048, 2048);
    return summarize(run.build()).memory_model.measured_bytes_per_rank;
  };
  EXPECT_EQ(measured(ev::Detail::steps), std::nullopt);
  EXPECT_EQ(measured(ev::Detail::modules), std::nullopt);
  EXPECT_EQ(measured(ev::Detail::params), 2048);
}

/// Nor is it a figure of the rank's.
TEST(Memory, WhatIsNotMeasuredIsNoPeakOfARankEither) {
  RunBuilder run(1);
  run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
  run.instant(0, 1, EventKind::detail_changed, StreamId::host,
              static_cast<std::uint32_t>(ev::Detail::modules), ev::kNoId, ev::kNoId,
              static_cast<std::uint8_t>(ev::Detail::kernels));
  run.instant(0, 2, EventKind::memory_alloc, StreamId::host, ev::kNoId, ev::kNoId, ev::kNoId,
              static_cast<std::uint8_t>(ev::MemoryCategory::grad_full), 2048, 2048);
  const Summary summary = summarize(run.build());
  EXPECT_TRUE(nlohmann::json::parse(to_json(summary))["ranks"][0]["model_state_peak_bytes"].is_null());
  EXPECT_EQ(summary.ranks.at(0).memory_peak.size(), 1U) << "of the pool it is a figure";
}

// Each of ZenFlow's extras has a line of its own: 1000 elements over two ranks in fp32, 100 of them chosen.
// Buffers are of whole blocks of 256 bytes.
TEST(Memory, ZenFlowsExtrasAreNamed) {
  using ev::MemoryCategory;
  RunBuilder run(2);
  run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
  std::int64_t at = 0;
  const auto alloc = [&](ev::MemoryPool pool, MemoryCategory category, std::int64_t bytes) {
    run.instant(
        0, ++at, EventKind::memory_alloc, StreamId::host, ev::kNoId, ev::kNoId, ev::kNoId,
        static_cast<std::uint8_t>(static_cast<unsigned>(pool) << 4U | static_cast<unsigned>(category)), bytes,
        bytes);
  };
  alloc(ev::MemoryPool::device, MemoryCategory::param_shard, 2048);
  alloc(ev::MemoryPool::device, MemoryCategory::grad_shard, 2048);
  alloc(ev::MemoryPool::pinned, MemoryCategory::grad_shard, 2 * 2048);  // two sums
  for (const MemoryCategory state :
       {MemoryCategory::master_weight, MemoryCategory::momentum, MemoryCategory::variance}) {
    alloc(ev::MemoryPool::device, state, 512);
    alloc(ev::MemoryPool::pinned, state, 2048);
  }
  store::Store& store = run.build();
  ev::RunTables tables = store.tables();
  tables.config_json =
      R"({"zero_optimization": {"offload_optimizer": {"device": "cpu"}, "zenflow": {"overlap_step": true}}})";
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    tables.rank = rank;
    store.set_tables(rank, tables);
  }
  const MemoryModel model = summarize(store).memory_model;
  EXPECT_EQ(model.measured_bytes_per_rank, 2 * 2048 + 3 * 512);
  std::map<MemoryCause, std::int64_t> device;
  std::int64_t sum = model.bytes_per_rank;
  for (const MemoryPart& part : model.parts) {
    device[part.cause] = part.bytes;
    sum += part.bytes;
  }
  EXPECT_EQ(device, (std::map<MemoryCause, std::int64_t>{{MemoryCause::rounding, 48},
                                                         {MemoryCause::zenflow_chosen, 3 * 512},
                                                         {MemoryCause::zenflow_device_gradients, 2048}}));
  EXPECT_EQ(sum, model.measured_bytes_per_rank);
  EXPECT_EQ(model.unexplained_bytes, 0);
  ASSERT_EQ(model.offloaded.size(), 1U);
  const MemoryModel::Offloaded& host = model.offloaded.front();
  EXPECT_EQ(host.pool, ev::MemoryPool::pinned);
  ASSERT_EQ(host.parts.size(), 2U);
  EXPECT_EQ(host.parts[0].bytes, 4 * 48);  // rounding
  EXPECT_EQ(host.parts[1].cause, MemoryCause::zenflow_sums);
  EXPECT_EQ(host.parts[1].bytes, 2048);
  EXPECT_EQ(host.unexplained_bytes, 0);
}

// What no expression, padding or known buffer accounts for is said, in the pool where it is.
TEST(Memory, AnUnknownBufferIsUnexplainedInItsPool) {
  RunBuilder run(1);
  run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
  const auto place = static_cast<unsigned>(ev::MemoryPool::pinned) << 4U;
  run.instant(0, 10, EventKind::memory_alloc, StreamId::host, ev::kNoId, ev::kNoId, ev::kNoId,
              static_cast<std::uint8_t>(place | static_cast<unsigned>(ev::MemoryCategory::momentum)),
              4096 + 256, 4096 + 256);
  store::Store& store = run.build();
  ev::RunTables tables = store.tables();
  tables.config_json = R"({"zero_optimization": {"offload_optimizer": {"device": "cpu"}}})";
  store.set_tables(0, tables);
  const MemoryModel model = summarize(store).memory_model;
  ASSERT_EQ(model.offloaded.size(), 1U);
  // Gradients and three states of 1000 fp32 elements are expected, one buffer too large is there.
  EXPECT_EQ(model.offloaded[0].bytes_per_rank, 16000);
  EXPECT_EQ(model.offloaded[0].unexplained_bytes, 4096 + 256 - 4 * 4096);
}

// Two ranks of four: busbw is algbw times 1/2, not 3/4.
TEST(Communication, BusBandwidthIsOfTheGroup) {
  RunBuilder run(4);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    run.span(rank, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    const std::uint32_t code = ev::collective_code(0, ev::CollectiveScope::secondary, 2);
    for (const auto& [at, kind] :
         {std::pair{100, EventKind::collective_begin}, std::pair{300, EventKind::collective_end}}) {
      run.instant(rank, at, kind, StreamId::gather, 0, 0, code, kGatherOp, 1000, 4000);
    }
  }
  const Summary s = summarize(run.build());
  ASSERT_EQ(s.ops.size(), 1U);
  EXPECT_DOUBLE_EQ(*s.ops[0].algbw_gbs, 20.0);
  EXPECT_DOUBLE_EQ(*s.ops[0].busbw_gbs, 10.0);
}

TEST(PrefetchOutcome, EarlyJustInTimeLateMistargetedUnused) {
  RunBuilder run(1);
  run.span(0, 0, 10'000, EventKind::step_begin, StreamId::host, 0);
  struct Case {
    std::uint32_t gather;
    std::int64_t begin, end, wait_begin, wait_end;
  };
  for (const Case& c : {Case{1, 100, 200, 1000, 1001},       // lay unused for 800: early
                        Case{2, 1100, 1300, 1400, 1401},     // 100 after the end of a gather of 200: in time
                        Case{3, 2000, 2600, 2500, 2600}}) {  // waited for: late by 100
    run.instant(0, c.begin - 50, EventKind::prefetch_issued, StreamId::host, c.gather, 1);
    run.span(0, c.begin, c.end, EventKind::collective_begin, StreamId::gather, c.gather, c.gather, kGatherOp);
    run.span(0, c.wait_begin, c.wait_end, EventKind::fetch_wait_begin, StreamId::compute, 1, c.gather);
  }
  run.instant(0, 3000, EventKind::prefetch_issued, StreamId::host, 4, 1);
  run.instant(0, 12'000, EventKind::prefetch_issued, StreamId::host, 5, 1);  // after the last step: undecided
  Prefetch p = summarize(run.build()).prefetch.value();
  EXPECT_EQ(p.early, 1U);
  EXPECT_EQ(p.just_in_time, 1U);
  EXPECT_EQ(p.late, 1U);
  EXPECT_EQ(p.late_wait_ns, 100);
  EXPECT_EQ(p.unused, 1U);
  EXPECT_EQ(p.mistargeted, 0U);

  RunBuilder invalidated(1);
  invalidated.span(0, 0, 10'000, EventKind::step_begin, StreamId::host, 0);
  invalidated.instant(0, 100, EventKind::prefetch_issued, StreamId::host, 1, 1);
  invalidated.instant(0, 500, EventKind::trace_invalidated, StreamId::host, 1, 0, 3);
  p = summarize(invalidated.build()).prefetch.value();
  EXPECT_EQ(p.mistargeted, 1U);
  EXPECT_EQ(p.unused, 0U);
}

TEST(Digest, GrowsWithTheRunToTheSameFiguresAsAtOnce) {
  RunBuilder run(2);
  Digest digest;
  for (std::uint32_t step = 0; step < 5; ++step) {
    const std::int64_t at = step * 10'000;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      run.span(rank, at, at + 5000, EventKind::step_begin, StreamId::host, step);
      run.span(rank, at + 100 * step, at + 3000, EventKind::module_begin, StreamId::compute, 1);
      run.span(rank, at + 2000, at + 4000 + rank, EventKind::collective_begin, StreamId::gather, step, step,
               kGatherOp, 10, 40);
    }
    EXPECT_TRUE(digest.update(run.build()));
    ASSERT_EQ(digest.steps().size(), step + 1);
  }
  EXPECT_EQ(to_json(summarize(run.build(), digest)), to_json(summarize(run.build())));
}

TEST(Statistics, QuantilesInterpolateAsNumPyDoes) {
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3, 4}, 0.95), 3.85);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.95), 7);
  EXPECT_DOUBLE_EQ(half_iqr({1, 2, 3, 4}), 0.75);
  EXPECT_DOUBLE_EQ(half_iqr({5}), 0);
  EXPECT_THROW((void)quantile({}, 0.5), std::invalid_argument);
}

store::Store* steps_of(RunBuilder& run, std::initializer_list<std::int64_t> lengths_ns) {
  std::int64_t at = 0;
  std::uint32_t step = 0;
  for (const std::int64_t length : lengths_ns) {
    run.span(0, at, at + length, EventKind::step_begin, StreamId::host, step++);
    at += length + 100;
  }
  return &run.build();
}

TEST(Compare, VerdictOnlyWhatTheSpreadBears) {
  RunBuilder fast(1), slow(1), noisy(1);
  const store::Store* a = steps_of(fast, {9'000'000, 1'000'000, 1'010'000, 1'020'000, 1'000'000});
  const store::Store* b = steps_of(slow, {9'000'000, 2'000'000, 2'010'000, 2'020'000, 2'000'000});
  const store::Store* c = steps_of(noisy, {9'000'000, 500'000, 1'600'000, 900'000, 1'400'000});
  const Summary sa = summarize(*a), sb = summarize(*b), sc = summarize(*c);
  const Comparison slower = compare({{a, &sa}}, {{b, &sb}});
  EXPECT_NE(slower.verdict.find("slower than A"), std::string::npos) << slower.verdict;
  const Comparison alike = compare({{a, &sa}}, {{c, &sc}});
  EXPECT_NE(alike.verdict.find("No difference"), std::string::npos) << alike.verdict;
  EXPECT_TRUE(slower.config_changes.empty());
}

TEST(Compare, ExposedCommunicationIsSaidOfAFirst) {
  constexpr std::int64_t kMs = 1'000'000;
  const auto with_exposed = [](RunBuilder& run, std::initializer_list<double> exposed_ms) {
    std::int64_t at = 0;
    std::uint32_t step = 0;
    for (const double ms : exposed_ms) {
      run.span(0, at, at + 10 * kMs, EventKind::step_begin, StreamId::host, step);
      run.span(0, at, at + kMs, EventKind::module_begin, StreamId::compute, 1);
      run.span(0, at + 2 * kMs, at + 2 * kMs + static_cast<std::int64_t>(ms * 1e6),
               EventKind::collective_begin, StreamId::gather, step, step, kGatherOp, 1000, 4000);
      ++step;
      at += 11 * kMs;
    }
    return &run.build();
  };
  RunBuilder first(1), second(1), third(1);
  const store::Store* a = with_exposed(first, {5, 1.0, 2.0, 1.0, 2.0});
  const store::Store* b = with_exposed(second, {5, 1.2, 2.2, 1.2, 2.2});
  const store::Store* c = with_exposed(third, {5, 4.0, 4.1, 4.0, 4.1});
  const Summary sa = summarize(*a), sb = summarize(*b), sc = summarize(*c);
  const std::string alike = compare({{a, &sa}}, {{b, &sb}}).verdict;
  EXPECT_NE(alike.find("Exposed communication is alike (1.5 and 1.7 ms per step)."), std::string::npos)
      << alike;
  const std::string more = compare({{a, &sa}}, {{c, &sc}}).verdict;
  EXPECT_NE(more.find("Exposed communication goes from 1.5 to 4."), std::string::npos) << more;
}

TEST(Compare, EveryRunHasEnoughStepsOrThereIsNoVerdict) {
  RunBuilder whole(1), cut(1), once(1);
  const store::Store* a = steps_of(whole, {9'000'000, 1'000'000, 1'010'000, 1'020'000, 1'000'000});
  const store::Store* b = steps_of(cut, {9'000'000, 2'000'000});
  const store::Store* c = steps_of(once, {9'000'000});
  const Summary sa = summarize(*a), sb = summarize(*b), sc = summarize(*c);
  using Runs = std::vector<analysis::Run>;  // not testing::Test::Run
  const auto none = [](const Runs& left, const Runs& right) {
    EXPECT_FALSE(verdict_basis(left, right).enough());
    EXPECT_EQ(verdict_basis(left, right).steps_b, 1U);
    const std::string verdict = compare(left, right).verdict;
    EXPECT_EQ(verdict.rfind("No verdict: too few measured steps (A 4, B 1;", 0), 0U) << verdict;
    EXPECT_EQ(verdict.find("than A"), std::string::npos) << verdict;
  };
  none({{a, &sa}}, {{b, &sb}});
  // Three repeats of one step each are three warm-ups.
  none({{a, &sa}}, {{c, &sc}, {c, &sc}, {c, &sc}});
  // One repeat that was cut short is not outvoted by the others.
  none({{a, &sa}, {a, &sa}}, {{a, &sa}, {b, &sb}});
  EXPECT_TRUE(verdict_basis({{a, &sa}}, {{a, &sa}}).enough());
}

TEST(Summary, WaitsAreMeasuredWithoutPauses) {
  RunBuilder run(1);
  run.span(0, 0, 10'000, EventKind::step_begin, StreamId::host, 0);
  run.span(0, 10'000, 30'000, EventKind::step_begin, StreamId::host, 1);
  run.span(0, 14'000, 20'000, EventKind::paused_begin, StreamId::host, 7);
  run.span(0, 11'000, 29'000, EventKind::module_begin, StreamId::compute, 1);
  run.span(0, 12'000, 21'000, EventKind::fetch_wait_begin, StreamId::compute, 1, 3);
  run.span(0, 22'000, 26'000, EventKind::fetch_wait_begin, StreamId::compute, 1, 4);
  store::Store& store = run.build();
  Digest digest;
  digest.update(store);
  const Summary summary = summarize(store, digest);
  ASSERT_EQ(summary.ranks.size(), 1U);
  EXPECT_EQ(summary.ranks[0].fetch_wait_ns, 3'000 + 4'000);
  EXPECT_EQ(summary.ranks[0].time.total_ns, 14'000);
  // The longest is the one that waited longest, not the one that the user held.
  ASSERT_EQ(digest.longest_waits().size(), 2U);
  EXPECT_EQ(digest.longest_waits()[0].span.b, 4U);
}

TEST(Json, TextsThatAreNotUtf8AreReplacedAndDeepConfigurationsLeftOut) {
  Summary summary;
  summary.model =
      "a\xFF"
      "b";
  summary.device = std::string("\0\xC3", 2);
  summary.config_json = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const auto json = nlohmann::json::parse(to_json(summary));
  EXPECT_EQ(json["run"]["model"], "a\uFFFDb");
  EXPECT_TRUE(json["run"]["config"].is_null());
  summary.config_json = R"({"a": {"b": [1, 2]}})";
  EXPECT_EQ(nlohmann::json::parse(to_json(summary))["run"]["config"]["a"]["b"][1], 2);
}

}  // namespace
}  // namespace shardscope::analysis
