// Accumulation that saves nothing where PyTorch reduces: found by what was recorded, with the call that ends
// it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

constexpr std::int64_t kStepNs = 10'000'000;

/// Two micro-steps of 5 ms: 1 ms of each is a reduction with nothing beside it. `accumulates`: of the second
/// only. The last step has `last` micro-steps.
struct TorchRun {
  RunBuilder builder;
  std::vector<Finding> findings;
  TorchRun(const std::string& framework, std::int32_t stage, CollectiveOp op, bool accumulates,
           std::uint32_t last = 2)
      : builder(2, stage, framework) {
    std::uint32_t sequence = 0;
    for (std::uint32_t step = 0; step < 10; ++step) {
      for (std::uint32_t micro = 0; micro < (step == 9 ? last : 2); ++micro, ++sequence) {
        const std::int64_t at = step * kStepNs + micro * 5 * kMs;
        for (std::uint32_t rank = 0; rank < 2; ++rank) {
          builder.span(rank, at, at + 5 * kMs, EventKind::micro_step_begin, StreamId::host, micro, step);
          builder.span(rank, at, at + 3'500'000, EventKind::module_begin, StreamId::compute, 1, step);
          if (accumulates && micro == 0) continue;
          builder.span(rank, at + 3'500'000, at + 4'500'000, EventKind::collective_begin, StreamId::reduce,
                       sequence, 0, static_cast<std::uint8_t>(op), 1000, 4000);
          builder.instant(rank, at + 3'400'000, EventKind::bucket_add, StreamId::host, 0, 0, ev::kNoId, 0,
                          1000, 1000);
        }
      }
      for (std::uint32_t rank = 0; rank < 2; ++rank)
        builder.span(rank, step * kStepNs, step * kStepNs + (step == 9 ? last : 2) * 5 * kMs,
                     EventKind::step_begin, StreamId::host, step);
    }
    builder.change_tables([](ev::RunTables& tables) { tables.config_json.clear(); });
  }
  const Finding* accumulated() {
    const store::Store& store = builder.build();
    findings = find(store, summarize(store));
    const auto at = std::ranges::find(findings, "accumulated_reductions", &Finding::id);
    return at == findings.end() ? nullptr : &*at;
  }
};

/// The backward waits inside of a module: nothing of 1 ms of transfers seems exposed.
TEST(FindingAccumulation, ReductionsWhoseWaitsAreNotKnownAreANoteWithoutTime) {
  struct Case {
    const char* framework;
    std::int32_t stage;
    CollectiveOp op;
    std::int64_t bytes;
  };
  for (const Case& one : {Case{"DistributedDataParallel (PyTorch 2.15.0)", 0, CollectiveOp::all_reduce, 8000},
                          Case{"FSDP2 (PyTorch 2.15.0)", 3, CollectiveOp::reduce_scatter, 4000}}) {
    for (const char* device : {"cpu", "NVIDIA H200"}) {
      TorchRun run(one.framework, one.stage, one.op, false);
      run.builder.on(device);
      for (std::uint32_t micro = 0; micro < 20; ++micro) {
        const std::int64_t at = micro * 5 * kMs + 3'500'000;
        for (std::uint32_t rank = 0; rank < 2; ++rank)
          run.builder.span(rank, at, at + kMs, EventKind::module_begin, StreamId::compute, 1, micro / 2);
      }
      const Finding* found = run.accumulated();
      ASSERT_EQ(found != nullptr, std::string(device) == "cpu") << one.framework << device;
      if (found == nullptr) continue;
      EXPECT_EQ(found->severity, ev::Severity::info);
      EXPECT_FALSE(found->cost_ms);
      EXPECT_EQ(found->cost_bytes, one.bytes);
      EXPECT_TRUE(found->placed());
      EXPECT_NE(found->evidence.find("is not known"), std::string::npos) << found->evidence;
      EXPECT_EQ(found->options.size(), 1U);
    }
  }
}

/// Gathers remain where gradients are reduced once: 2 ms of each micro-step do not count, only reductions do.
TEST(FindingAccumulation, TransfersOfGathersAreNotSaved) {
  for (const std::int64_t reduces_ns : {1'000'000, 50'000}) {
    RunBuilder builder(2, 3, "FSDP2 (PyTorch 2.15.0)");
    builder.on("cpu");
    for (std::uint32_t sequence = 0; sequence < 20; ++sequence) {
      const std::int64_t at = sequence * 5 * kMs;
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        builder.span(rank, at, at + 5 * kMs, EventKind::micro_step_begin, StreamId::host, sequence % 2,
                     sequence / 2);
        builder.span(rank, at, at + 5 * kMs, EventKind::module_begin, StreamId::compute, 1, sequence / 2);
        builder.span(rank, at + kMs, at + 3 * kMs, EventKind::collective_begin, StreamId::gather, sequence, 0,
                     kGatherOp, 1000, 4000);
        builder.span(rank, at + 3 * kMs, at + 3 * kMs + reduces_ns, EventKind::collective_begin,
                     StreamId::reduce, 100 + sequence, 0,
                     static_cast<std::uint8_t>(CollectiveOp::reduce_scatter), 1000, 4000);
        if (sequence % 2 == 1)
          builder.span(rank, at - 5 * kMs, at + 5 * kMs, EventKind::step_begin, StreamId::host, sequence / 2);
      }
    }
    builder.change_tables([](ev::RunTables& tables) { tables.config_json.clear(); });
    const store::Store& store = builder.build();
    const std::vector<Finding> findings = find(store, summarize(store));
    const auto found = std::ranges::find(findings, "accumulated_reductions", &Finding::id);
    ASSERT_EQ(found != findings.end(), reduces_ns == 1'000'000) << reduces_ns;
    if (found == findings.end()) continue;
    EXPECT_NE(found->evidence.find("reductions move bytes for 2.0 of 10.0 ms"), std::string::npos)
        << found->evidence;
  }
}

TEST(FindingAccumulation, MicroStepsOfPyTorchThatEachReduce) {
  struct Case {
    const char *framework, *call, *key;
    std::int32_t stage;
    CollectiveOp op;
    bool more_memory;
    std::int64_t bytes;  ///< an all-reduce counts twice
  };
  for (const Case& one :
       {Case{"FSDP2 (PyTorch 2.15.0)", "set_requires_gradient_sync(False)",
             "fully_shard.reduce_in_last_micro_step_only", 3, CollectiveOp::reduce_scatter, true, 4000},
        Case{"FSDP1 (PyTorch 2.15.0)", "no_sync()", "", 3, CollectiveOp::reduce_scatter, true, 4000},
        Case{"DistributedDataParallel (PyTorch 2.15.0)", "no_sync()",
             "DistributedDataParallel.reduce_in_last_micro_step_only", 0, CollectiveOp::all_reduce, false,
             8000}}) {
    TorchRun each(one.framework, one.stage, one.op, false), once(one.framework, one.stage, one.op, true);
    const Finding* found = each.accumulated();
    ASSERT_NE(found, nullptr) << one.framework;
    EXPECT_NEAR(*found->cost_ms, 1, 1e-6);
    EXPECT_EQ(found->cost_bytes, one.bytes);
    EXPECT_NE(found->next_step.find(one.call), std::string::npos) << found->next_step;
    EXPECT_EQ(found->next_step.find("1.95 KiB more on each rank") != std::string::npos, one.more_memory)
        << found->next_step;
    EXPECT_EQ(once.accumulated(), nullptr) << one.framework;
    ASSERT_EQ(found->changes.size(), *one.key == '\0' ? 0U : 1U) << one.framework;
    if (*one.key == '\0') continue;
    EXPECT_EQ(found->changes[0], (Change{one.key, "true"}));
  }
}

/// The expression counts what was recorded: two micro-steps gather and reduce twice.
TEST(FindingAccumulation, TheVolumeOfRecordedMicroSteps) {
  TorchRun run("FSDP2 (PyTorch 2.15.0)", 3, CollectiveOp::reduce_scatter, false);
  const Summary summary = summarize(run.builder.build());
  EXPECT_EQ(summary.expected_elements_per_step, 2 * 3 * 1000);
}

/// An epoch whose batches do not divide ends with a step of fewer micro-steps: the others are what the run
/// is.
TEST(FindingAccumulation, AnUnevenLastStepIsOneOfTheMeasured) {
  for (const std::uint32_t last : {1U, 4U}) {
    TorchRun run("FSDP2 (PyTorch 2.15.0)", 3, CollectiveOp::reduce_scatter, false, last);
    const Finding* found = run.accumulated();
    ASSERT_NE(found, nullptr) << last;
    EXPECT_EQ(found->evidence.find("2 micro-steps of a step reduced all gradients 2.0 times"), 0U)
        << found->evidence;
    const Summary summary = summarize(run.builder.build());
    EXPECT_NEAR(summary.expected_elements_per_step, (8 * 6000 + last * 3000) / 9.0, 1e-6);
    EXPECT_EQ(summary.comm_expression, "6S");
    EXPECT_EQ(summary.unexplained_elements_per_step, 0);
  }
}

/// What a script that accumulates does not reduce is no missing gradient.
TEST(FindingAccumulation, ReducedOnceAStepIsExplained) {
  TorchRun run("FSDP2 (PyTorch 2.15.0)", 3, CollectiveOp::reduce_scatter, true);
  const Summary summary = summarize(run.builder.build());
  const auto part = [&](VolumeCause cause) {
    const auto at = std::ranges::find(summary.volume_parts, cause, &VolumePart::cause);
    return at == summary.volume_parts.end() ? 0.0 : at->elements_per_step;
  };
  EXPECT_EQ(part(VolumeCause::accumulated), -1000);
  EXPECT_EQ(part(VolumeCause::no_gradient), 0);
  EXPECT_EQ(summary.unexplained_elements_per_step, 0);
}

/// HSDP: four ranks shard a copy, whatever the number of all.
TEST(FindingAccumulation, ThePriceIsOfTheRanksThatShardOneCopy) {
  TorchRun run("FSDP2 (PyTorch 2.15.0)", 3, CollectiveOp::reduce_scatter, false);
  run.builder.change_tables([](ev::RunTables& tables) { tables.params[0].shard_elems = 250; });
  const Finding* found = run.accumulated();
  ASSERT_NE(found, nullptr);
  EXPECT_NE(found->next_step.find("2.93 KiB more on each rank"), std::string::npos) << found->next_step;
}

}  // namespace
}  // namespace shardscope::analysis
