// Findings from stores, so that what is measured is exercised as well as the rule: each is there with its
// cost where the events have its cause, and not without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/analysis/ten_steps.h"

namespace shardscope::analysis {
namespace {

using namespace test;

TEST(FindingMeasured, EventsThatWereDropped) {
  for (const std::uint64_t dropped : {0U, 7U}) {
    RunBuilder run(2);
    add_steps(run, 2);
    run.build();
    run.drop(1, dropped);
    run.instant(1, kStepCount * kStepLength, EventKind::tokens, StreamId::host);
    const auto found = found_in(run.build(), "events_missing");
    ASSERT_EQ(found.has_value(), dropped > 0);
    if (found) {
      EXPECT_NE(found->evidence.find("7 events dropped (7 by ranks"), std::string::npos) << found->evidence;
    }
  }
}

/// Each time the scale is raised a step overflows.
TEST(FindingMeasured, ALossScaleThatFallsAndRisesAgain) {
  for (const bool rises : {false, true}) {
    RunBuilder run(1, 2);
    for (std::uint32_t step = 0; step < kStepCount; ++step) {
      const std::int64_t at = step * kStepLength;
      const bool high = rises ? step % 2 == 0 : step == 0;
      run.instant(0, at, EventKind::step_begin, StreamId::host, step);
      run.instant(0, at + 1, EventKind::loss_scale, StreamId::host, step, ev::kNoId, ev::kNoId, 0,
                  std::bit_cast<std::int64_t>(high ? 64.0 : 32.0));
      run.instant(0, at + kStepLength / 2, EventKind::step_end, StreamId::host, step, ev::kNoId, ev::kNoId,
                  high ? 1 : 0);
    }
    run.change_tables([](ev::RunTables& tables) {
      tables.config_json =
          R"({"fp16": {"enabled": true, "loss_scale_window": 50}, "zero_optimization": {"stage": 2}})";
    });
    const auto found = found_in(run.build(), "loss_scale_floor");
    ASSERT_EQ(found.has_value(), rises);
    if (!found) continue;
    EXPECT_NE(found->title.find("4 times"), std::string::npos) << found->title;
    ASSERT_EQ(found->changes.size(), 1U);
    EXPECT_EQ(found->changes[0].key, "fp16.loss_scale_window");
    EXPECT_EQ(found->changes[0].value, "200");
  }
}

/// A scale that is fixed is not lowered: the key to change is named.
TEST(FindingMeasured, AFixedLossScaleThatOverflows) {
  RunBuilder run(1, 2);
  add_steps(run, 1);
  run.instant(0, kStepCount * kStepLength, EventKind::step_begin, StreamId::host, kStepCount);
  run.instant(0, kStepCount * kStepLength + 1, EventKind::step_end, StreamId::host, kStepCount, ev::kNoId,
              ev::kNoId, 1);
  run.change_tables([](ev::RunTables& tables) {
    tables.config_json =
        R"({"fp16": {"enabled": true, "loss_scale": 65536}, "zero_optimization": {"stage": 2}})";
  });
  const auto found = found_in(run.build(), "overflow");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->changes.size(), 1U) << found->evidence;
  EXPECT_EQ(found->changes[0].key, "fp16.loss_scale");
  EXPECT_EQ(found->changes[0].value, "0");
}

/// Of FSDP2, whose waits no setting explains: 0.3 ms of each step.
TEST(FindingMeasured, GathersThatAreWaitedFor) {
  for (const bool late : {false, true}) {
    RunBuilder run(2, 3, "FSDP2 (PyTorch 2.15.0)");
    add_steps(run, 2);
    for (std::uint32_t step = 0; step < kStepCount; ++step) {
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        const std::int64_t at = step * kStepLength + kMs, use = at + (late ? 500'000 : 900'000);
        run.instant(rank, at, EventKind::prefetch_issued, StreamId::host, step, 1);
        run.span(rank, at, at + 800'000, EventKind::collective_begin, StreamId::gather, step, step, kGatherOp,
                 1000, 4000);
        run.span(rank, use, late ? at + 800'000 : use + 1, EventKind::fetch_wait_begin, StreamId::compute, 1,
                 step);
      }
    }
    const auto found = found_in(run.build(), "late_prefetch");
    ASSERT_EQ(found.has_value(), late);
    if (!found) continue;
    EXPECT_EQ(found->title, "20 of 20 prefetches of all ranks come too late");
    EXPECT_NEAR(*found->cost_ms, 0.3, 1e-3);
  }
}

TEST(FindingMeasured, PrefetchesThatNoModuleUsed) {
  RunBuilder run(2);
  add_steps(run, 2);
  for (std::uint32_t step = 0; step < kStepCount; ++step)
    run.instant(0, step * kStepLength + kMs, EventKind::prefetch_issued, StreamId::host, step, 1);
  const auto found = found_in(run.build(), "unused_prefetch");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->title, "10 prefetches of all ranks were never used");
  RunBuilder none(2);
  add_steps(none, 2);
  EXPECT_FALSE(found_in(none.build(), "unused_prefetch"));
}

/// An attached script that checkpoints one module, and a container of it: 2 ms, less a wait of half of one.
TEST(FindingMeasured, ForwardsThatAnAttachedBackwardRepeats) {
  for (const char* device : {"cpu", "cuda:0"}) {
    for (const bool repeats : {false, true}) {
      RunBuilder run(2, 2, "DDP (PyTorch 2.15.0)");
      run.on(device);
      add_steps(run, 2);
      const auto pass = static_cast<std::uint8_t>(repeats ? ev::Pass::recompute : ev::Pass::backward);
      for (std::uint32_t step = 0; step < kStepCount; ++step) {
        for (std::uint32_t rank = 0; rank < 2; ++rank) {
          const std::int64_t at = step * kStepLength + 4 * kMs;
          run.span(rank, at, at + 2 * kMs, EventKind::module_begin, StreamId::compute, 0, step, pass);
          run.span(rank, at + kMs / 2, at + 2 * kMs, EventKind::module_begin, StreamId::compute, 1, step,
                   pass);
          run.span(rank, at + kMs, at + kMs + kMs / 2, EventKind::fetch_wait_begin, StreamId::compute, 1,
                   step);
        }
      }
      const auto found = found_in(run.build(), "recomputation");
      // Spans of a script on a GPU are its host's.
      ASSERT_EQ(found.has_value(), repeats && std::string(device) == "cpu") << device;
      if (!found) continue;
      EXPECT_NEAR(*found->cost_ms, 1.5, 1e-6);
      EXPECT_EQ(found->severity, ev::Severity::info);
      EXPECT_TRUE(found->changes.empty());
    }
  }
}

/// Stage 2 all-reduces where a reduction to the owners would do: an all-reduce counts twice.
TEST(FindingMeasured, GradientsThatAreAllReduced) {
  for (const bool all : {false, true}) {
    RunBuilder run(2, 2);
    add_steps(run, 2);
    for (std::uint32_t step = 0; step < kStepCount; ++step) {
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        const std::int64_t at = step * kStepLength + 8 * kMs;
        run.instant(rank, at, EventKind::bucket_add, StreamId::host, step, 0, ev::kNoId, 0, 1000, 1000);
        run.span(rank, at, at + kMs, EventKind::collective_begin, StreamId::reduce, step, step,
                 static_cast<std::uint8_t>(all ? CollectiveOp::all_reduce : CollectiveOp::reduce), 1000,
                 4000);
      }
    }
    run.change_tables([&](ev::RunTables& tables) {
      tables.config_json = std::string(R"({"zero_optimization": {"stage": 2, "reduce_scatter": )") +
                           (all ? "false}}" : "true}}");
    });
    const auto found = found_in(run.build(), "volume_above");
    ASSERT_EQ(found.has_value(), all);
    if (!found) continue;
    EXPECT_EQ(found->title.find("50 % more is communicated than 2S"), 0U) << found->title;
    EXPECT_EQ(found->cost_bytes, 4000);
  }
}

TEST(FindingMeasured, AClockWithALargeResidual) {
  for (const std::int64_t residual_ns : {kMs / 10, 2 * kMs}) {
    RunBuilder run(2);
    add_steps(run, 2);
    store::Store& store = run.build();
    store::Chunk chunk;
    chunk.rank = 1;
    chunk.sequence = 1;
    chunk.clock_residual_ns = residual_ns;
    store.ingest(chunk);
    const auto found = found_in(store, "clock_residual");
    ASSERT_EQ(found.has_value(), residual_ns > kMs);
    if (found) {
      EXPECT_EQ(found->rank, 1U);
      EXPECT_NE(found->title.find("2.00 ms"), std::string::npos) << found->title;
    }
  }
}

/// fp32 at stage 3 of two ranks: 16S/n of 1000 elements is 8000 bytes.
TEST(FindingMeasured, ModelStatesThatExceedTheExpression) {
  for (const std::int64_t bytes : {8'000, 10'000}) {
    RunBuilder run(2);
    add_steps(run, 2);
    for (std::uint32_t rank = 0; rank < 2; ++rank)
      run.instant(rank, 1, EventKind::memory_alloc, StreamId::host, ev::kNoId, ev::kNoId, ev::kNoId,
                  static_cast<std::uint8_t>(ev::MemoryCategory::variance), bytes, bytes);
    const auto found = found_in(run.build(), "memory_excess");
    ASSERT_EQ(found.has_value(), bytes > 8'000);
    if (!found) continue;
    EXPECT_EQ(found->title, "Model states exceed 16S/n by 25.0 %");
    EXPECT_EQ(found->cost_bytes, 2000);
  }
}

/// Records of a GPU: a kernel that was launched 3 ms after the one before it had ended.
TEST(FindingMeasured, AGpuThatIsIdleForItsHost) {
  for (const bool late : {false, true}) {
    RunBuilder run(1, 0);
    add_steps(run, 1);
    const auto kernel = [&](std::int64_t begin, std::int64_t end, std::int64_t launch) {
      run.span(0, begin, end, EventKind::gpu_begin, StreamId::gpu_compute, 1, 1,
               ev::gpu_code(ev::GpuWork::kernel, ev::GpuOwner::forward), begin - launch, 256);
    };
    for (std::uint32_t step = 0; step < kStepCount; ++step) {
      const std::int64_t at = step * kStepLength;
      kernel(at, at + 4 * kMs, at - 1000);
      kernel(at + (late ? 7 : 4) * kMs, at + kStepLength, at + (late ? 7 : 3) * kMs - 1000);
    }
    run.span(0, 0, kStepCount * kStepLength + 1000, EventKind::gpu_records_begin, StreamId::gpu_records, 1, 0,
             0, 2 * kStepCount, 0);
    const auto found = found_in(run.build(), "host_bound");
    ASSERT_EQ(found.has_value(), late);
    if (!found) continue;
    EXPECT_EQ(found->rank, 0U);
    EXPECT_NEAR(*found->cost_ms, 3, 0.01);
    EXPECT_NE(found->evidence.find("2 kernels of a step"), std::string::npos) << found->evidence;
  }
}

/// What a rank says itself, as those of simulated runs do: the one that loses most is named.
TEST(FindingMeasured, ADeviceThatIsIdleForItsHostByItsOwnWord) {
  for (const bool simulated : {false, true}) {
    for (const std::int64_t late_ms : {0, 3}) {
      RunBuilder run(2, 0);
      run.change_tables([&](ev::RunTables& tables) { tables.simulated = simulated; });
      add_steps(run, 2);
      for (std::uint32_t step = 0; step < kStepCount; ++step) {
        const std::int64_t end = step * kStepLength + kStepLength - 1;
        run.instant(0, end, EventKind::host_late, StreamId::host, step, ev::kNoId, ev::kNoId, 0, kMs / 100);
        // The first step is warm-up.
        run.instant(1, end, EventKind::host_late, StreamId::host, step, ev::kNoId, ev::kNoId, 0,
                    step == 0 ? kStepLength : late_ms * kMs);
      }
      const auto found = found_in(run.build(), "host_bound");
      ASSERT_EQ(found.has_value(), late_ms > 0);
      if (!found) continue;
      EXPECT_EQ(found->rank, 1U);
      EXPECT_NEAR(*found->cost_ms, 3, 0.01);
      EXPECT_EQ(found->evidence.find("The run is simulated") != std::string::npos, simulated)
          << found->evidence;
      EXPECT_EQ(found->next_step.find("launch_us") != std::string::npos, simulated);
    }
  }
}

}  // namespace
}  // namespace shardscope::analysis
