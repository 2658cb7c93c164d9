// Findings that no other test provokes: each is there when its cause is, with its cost, and not without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>
#include <vector>

#include "app/analysis/advice.h"
#include "app/analysis/summary.h"
#include "runtime/plan/prefetch_outcome.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

constexpr std::int64_t kTenMs = 10'000'000;  // of a step

/// Ten steps of 10 ms; ranks compute for 8 of them.
class EachRun {
 public:
  explicit EachRun(std::uint32_t world = 2, std::int32_t stage = 3, const std::string& config = {})
      : builder_(world, stage), config_(config) {
    for (std::uint32_t step = 0; step < 10; ++step) {
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        const std::int64_t at = step * kTenMs;
        builder_.span(rank, at, at + 8'000'000, EventKind::module_begin, StreamId::compute, 1, step);
        builder_.span(rank, at, at + kTenMs, EventKind::step_begin, StreamId::host, step);
      }
    }
  }
  RunBuilder& builder() { return builder_; }
  store::Store& store() {
    if (store_ != nullptr) return *store_;
    store_ = &builder_.build();
    if (!config_.empty()) {
      ev::RunTables tables = store_->tables();
      tables.config_json = config_;
      store_->set_tables(0, tables);
    }
    return *store_;
  }
  Summary summary() { return summarize(store()); }
  /// Of a summary that was changed: what only some machines record.
  std::vector<Finding> found(const Summary& summary) { return find(store(), summary); }
  const Finding* with(const std::string& id, const Summary& summary) {
    findings_ = found(summary);
    const auto at = std::ranges::find(findings_, id, &Finding::id);
    return at == findings_.end() ? nullptr : &*at;
  }

 private:
  RunBuilder builder_;
  std::string config_;
  store::Store* store_ = nullptr;
  std::vector<Finding> findings_;
};

/// A kernel of 7 ms in each step, begun 2 ms after its launch and as long after the begin of the step as that
/// is.
void add_kernels(RunBuilder& run, std::uint32_t rank, std::uint32_t step, std::int64_t launched_ms) {
  const std::int64_t at = step * kTenMs, begin = at + launched_ms * kMs;
  run.span(rank, begin, at + kTenMs, EventKind::gpu_begin, StreamId::gpu_compute, 1, 1,
           ev::gpu_code(ev::GpuWork::kernel, ev::GpuOwner::forward), 1000, 256);
  run.span(rank, at, at + kTenMs, EventKind::gpu_records_begin, StreamId::gpu_records, 1, 0, 0, 10, 0);
}

TEST(FindingEach, AGpuThatWaitsForItsHost) {
  for (const std::int64_t late_ms : {0, 2}) {
    EachRun run;
    for (std::uint32_t step = 0; step < 10; ++step) {
      add_kernels(run.builder(), 0, step, 0);
      // The warm-up compiles: its wait is no cost of later steps.
      add_kernels(run.builder(), 1, step, step == 0 ? 3 : late_ms);
    }
    const Finding* found = run.with("host_bound", run.summary());
    ASSERT_EQ(found != nullptr, late_ms > 0);
    if (found == nullptr) continue;
    EXPECT_EQ(found->rank, 1U);
    EXPECT_NEAR(*found->cost_ms, 2, 0.01);
    EXPECT_NE(found->evidence.find("1 kernels of a step take 8000.0 us each"), std::string::npos)
        << found->evidence;
  }
}

TEST(FindingEach, PrefetchesThatCameLateOrForNothing) {
  using plan::PrefetchOutcome;
  for (const bool bad : {false, true}) {
    EachRun run;
    const auto add = [&](std::uint32_t rank, std::uint32_t step, PrefetchOutcome outcome,
                         std::int64_t slack_ns) {
      run.builder().instant(rank, step * kTenMs + 4 * kMs, EventKind::prefetch_outcome, StreamId::compute,
                            2 * step, 1, 1, static_cast<std::uint8_t>(outcome), slack_ns, kMs);
    };
    for (std::uint32_t step = 0; step < 10; ++step) {
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        add(rank, step, PrefetchOutcome::early, kMs);
        // 1 ms of each step of each of two ranks, and far more of the warm-up.
        add(rank, step, bad ? PrefetchOutcome::late : PrefetchOutcome::early,
            bad ? (step == 0 ? -8 : -1) * kMs : kMs);
        if (bad && step < 2) add(rank, step, PrefetchOutcome::unused, 0);
      }
    }
    const Finding* late = run.with("late_prefetch", run.summary());
    ASSERT_EQ(late != nullptr, bad);
    EXPECT_NEAR(late == nullptr ? 0 : *late->cost_ms, bad ? 1 : 0, 1e-6);
    const Finding* unused = run.with("unused_prefetch", run.summary());
    ASSERT_EQ(unused != nullptr, bad);
    EXPECT_EQ(unused != nullptr && unused->title.starts_with("4 prefetches"), bad);
  }
}

TEST(FindingEach, MoreIsCommunicatedThanTheExpression) {
  EachRun run(2, 2, R"({"zero_optimization": {"stage": 2, "reduce_scatter": false}})");
  Summary summary = run.summary();
  summary.expected_elements_per_step = 1000;
  summary.comm_expression = "2S";
  summary.volume_parts = {{VolumeCause::all_reduced, 40}};
  EXPECT_EQ(run.with("volume_above", summary), nullptr);  // a twenty-fifth
  summary.volume_parts = {{VolumeCause::all_reduced, 1000}};
  const Finding* found = run.with("volume_above", summary);
  ASSERT_NE(found, nullptr);
  ASSERT_EQ(found->changes.size(), 1U);
  EXPECT_EQ(found->changes[0].key, "zero_optimization.reduce_scatter");
  EXPECT_EQ(found->cost_bytes, 4000);
  EXPECT_EQ(found->bytes_of, BytesOf::communication);
}

/// In each step 2 ms of the backward's wait for a reduction. Then comes a module of that pass.
const Finding* serialized(EachRun& run, ev::Pass next) {
  for (std::uint32_t step = 0; step < 10; ++step) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const std::int64_t at = step * kTenMs + 4'000'000;
      run.builder().span(rank, at, at + 2'000'000, EventKind::reduce_wait_begin, StreamId::compute, 0);
      run.builder().span(rank, at + 2'100'000, at + 3'900'000, EventKind::module_begin, StreamId::compute, 1,
                         step, static_cast<std::uint8_t>(next));
    }
  }
  return run.with("serialized_buckets", run.summary());
}

TEST(FindingEach, ABackwardThatWaitsForBucketsAndNotTheEndOfAMicroStep) {
  EachRun ends, waits, recomputes;
  EXPECT_EQ(serialized(ends, ev::Pass::forward), nullptr) << "the next micro-step begins";
  const Finding* found = serialized(waits, ev::Pass::backward);
  ASSERT_NE(found, nullptr);
  EXPECT_NEAR(*found->cost_ms, 2, 1e-6);
  EXPECT_NE(found->evidence.find("1 times in a step"), std::string::npos) << found->evidence;
  EXPECT_NE(serialized(recomputes, ev::Pass::recompute), nullptr);
}

/// A bucket that waited, with a player that can play nothing: the first option stays.
Advice unplayed(const std::string& framework, const std::string& config) {
  EachRun run(2, 2, config);
  run.builder().change_tables([&](ev::RunTables& tables) { tables.framework = framework; });
  const Finding* found = serialized(run, ev::Pass::backward);
  if (found == nullptr) return {};
  std::vector<Finding> findings{*found};
  try_advice(findings, [](const std::vector<Change>&) { return PlayOutcome{0, 0, "cannot be played"}; });
  return {findings[0].changes, findings[0].next_step};
}

/// This runtime has no such buffers, unless it is to hold DeepSpeed's; it warns that the key does nothing.
TEST(FindingEach, ContiguousGradientsAreAdvisedOnlyWhereTheyAreUsed) {
  const std::string zero = R"("zero_optimization": {"stage": 2, "overlap_comm": true})";
  const std::string plain = "{" + zero + "}";
  const std::string buffers = "{" + zero + R"(, "shardscope": {"compat": {"gradient_buffers": true}}})";
  const std::string contiguous = "zero_optimization.contiguous_gradients";
  const Advice own = unplayed("", plain);
  ASSERT_EQ(own.changes.size(), 1U);
  EXPECT_EQ(own.changes[0].key, "zero_optimization.reduce_bucket_size") << own.next_step;
  for (const Advice& one : {unplayed("", buffers), unplayed("DeepSpeed 0.19.8", plain)}) {
    ASSERT_EQ(one.changes.size(), 1U);
    EXPECT_EQ(one.changes[0].key, contiguous) << one.next_step;
  }
}

TEST(FindingEach, AClockThatIsNotKnownWell) {
  EachRun run;
  Summary summary = run.summary();
  summary.ranks[1].clock_residual_ns = 100'000;  // 1 % of a step
  EXPECT_EQ(run.with("clock_residual", summary), nullptr);
  summary.ranks[1].clock_residual_ns = 2'000'000;
  const Finding* found = run.with("clock_residual", summary);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->rank, 1U);
}

TEST(FindingEach, AnAllocatorThatHoldsPiecesOrHadToFreeItsCache) {
  // `before`: retries until the steps that are judged, of the warm-up.
  for (const auto& [split, before, retries] :
       {std::tuple(10, 0, 0), std::tuple(300, 0, 0), std::tuple(10, 0, 2), std::tuple(10, 2, 2)}) {
    EachRun run(2);
    for (const auto& [step, count] : {std::pair(0, before), std::pair(9, retries)}) {
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        run.builder().instant(rank, step * kTenMs + 1'000'000, EventKind::allocator_state, StreamId::host,
                              static_cast<std::uint32_t>(rank == 0 ? before : count), 0, ev::kNoId,
                              static_cast<std::uint8_t>(ev::MemoryPool::device), 1000,
                              rank == 0 ? 10 : split);
      }
    }
    const Finding* found = run.with("fragmentation", run.summary());
    ASSERT_EQ(found != nullptr, split > 200 || retries > before) << split << " " << retries;
    if (found == nullptr) continue;
    EXPECT_EQ(found->rank, 1U) << "the one with most";
    EXPECT_EQ(found->severity, retries > before ? ev::Severity::warning : ev::Severity::info);
    EXPECT_EQ(found->cost_bytes, split);
  }
}

// What is in pieces at the end of a step is mostly cached for the next one, which fits into it.
TEST(FindingEach, AnAllocatorIsJudgedWhereFewestBytesLieInPieces) {
  for (const std::int64_t in_forward : {100, 300}) {
    EachRun run(1);
    for (const auto& [at, split] :
         {std::pair(1'000'000, in_forward), std::pair(2'000'000, std::int64_t{900})})
      run.builder().instant(0, 9 * kTenMs + at, EventKind::allocator_state, StreamId::host, 0, 0, ev::kNoId,
                            static_cast<std::uint8_t>(ev::MemoryPool::device), 1000, split);
    const Finding* found = run.with("fragmentation", run.summary());
    ASSERT_EQ(found != nullptr, in_forward > 200) << in_forward;
    EXPECT_EQ(found == nullptr ? std::nullopt : found->cost_bytes,
              in_forward > 200 ? std::optional(in_forward) : std::nullopt);
  }
}

TEST(FindingEach, AnUpdateThatWaitsForTheDisk) {
  for (const std::string device : {"nvme", "cpu"}) {
    EachRun run(2, 2,
                R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": ")" + device +
                    R"(", "nvme_path": "/d"}}})");
    for (std::uint32_t step = 0; step < 10; ++step) {
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        const std::int64_t at = step * kTenMs + 8'000'000;
        run.builder().span(rank, at, at + 2'000'000, EventKind::transfer_begin, StreamId::copy, 0, ev::kNoId,
                           static_cast<std::uint8_t>(ev::TransferKind::nvme_read), 1 << 20);
      }
    }
    const Finding* found = run.with("nvme_wait", run.summary());
    ASSERT_EQ(found != nullptr, device == "nvme");
    if (found != nullptr) {
      EXPECT_NEAR(*found->cost_ms, 2, 1e-6);
    }
  }
}

TEST(FindingEach, ARecordingThatIsNotWhole) {
  EachRun run;
  Summary summary = run.summary();
  EXPECT_EQ(run.with("recording_damaged", summary), nullptr);
  summary.problems = {"chunk 1", "chunk 2", "chunk 3", "chunk 4"};
  const Finding* found = run.with("recording_damaged", summary);
  ASSERT_NE(found, nullptr);
  EXPECT_NE(found->evidence.find("chunk 3. 1 more"), std::string::npos) << found->evidence;
}

TEST(FindingEach, ARunThatHangsForARankThatEnded) {
  for (const bool ended : {false, true}) {
    EachRun run;
    run.builder().instant(0, 10 * kTenMs + 1, EventKind::collective_begin, StreamId::gather, 7, 0, ev::kNoId,
                          kGatherOp, 1000, 4000);
    if (ended) {
      store::RankRow row = run.store().ranks()[1];
      row.finished = true;
      row.connected = false;
      run.store().set_rank(row);
    }
    const Finding* found = run.with("hang", run.summary());
    ASSERT_EQ(found != nullptr, ended);
    if (found != nullptr) {
      EXPECT_EQ(found->rank, 1U);
      EXPECT_EQ(found->severity, ev::Severity::error);
    }
  }
}

TEST(FindingEach, ALossScaleAtItsLeast) {
  const std::string config =
      R"({"fp16": {"enabled": true, "min_loss_scale": 1}, "zero_optimization": {"stage": 2}})";
  for (const double least : {1.0, 4.0}) {
    RunBuilder builder(1, 2);
    for (std::uint32_t step = 0; step < 4; ++step) {
      const std::int64_t at = step * kTenMs;
      builder.instant(0, at, EventKind::step_begin, StreamId::host, step);
      builder.instant(0, at + 1, EventKind::loss_scale, StreamId::host, step, ev::kNoId, ev::kNoId, 0,
                      std::bit_cast<std::int64_t>(std::max(least, 4.0 / (1 << step))));
      builder.instant(0, at + kTenMs / 2, EventKind::step_end, StreamId::host, step, ev::kNoId, ev::kNoId, 1);
    }
    store::Store& store = builder.build();
    ev::RunTables tables = store.tables();
    tables.config_json = config;
    store.set_tables(0, tables);
    const auto findings = find(store, summarize(store));
    const auto floor = std::ranges::find(findings, "loss_scale_floor", &Finding::id);
    ASSERT_EQ(floor != findings.end(), least < 2) << least;
    if (floor == findings.end()) continue;
    EXPECT_EQ(floor->severity, ev::Severity::error);
  }
}

/// Some rank is always the slowest: two steps say nothing of which.
TEST(FindingEach, AStragglerOfFewStepsIsANote) {
  for (const std::uint32_t steps : {3U, 8U}) {
    RunBuilder builder(2, 2);
    std::int64_t at = 0;
    for (std::uint32_t step = 0; step < steps; ++step) {
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        const std::int64_t computed = at + (rank == 1 ? 14'000'000 : kTenMs) + step * 10'000;
        builder.span(rank, at, computed, EventKind::module_begin, StreamId::compute, 1, step);
        builder.instant(rank, computed, EventKind::collective_begin, StreamId::reduce, step, 0, ev::kNoId,
                        kGatherOp, 1000, 4000);
        builder.instant(rank, at + 15'000'000, EventKind::collective_entered, StreamId::reduce, step, 0,
                        ev::kNoId, kGatherOp);
        builder.instant(rank, at + 15'500'000, EventKind::collective_end, StreamId::reduce, step, 0,
                        ev::kNoId, kGatherOp, 1000, 4000);
        builder.span(rank, at, at + 16'000'000, EventKind::step_begin, StreamId::host, step);
      }
      at += 17'000'000;
    }
    const store::Store& store = builder.build();
    const auto findings = find(store, summarize(store));
    const auto found = std::ranges::find(findings, "straggler", &Finding::id);
    ASSERT_NE(found, findings.end()) << steps;
    EXPECT_EQ(found->severity, steps > 4 ? ev::Severity::warning : ev::Severity::info) << steps;
    EXPECT_GT(found->until_ns, 0);
  }
}

}  // namespace
}  // namespace shardscope::analysis
