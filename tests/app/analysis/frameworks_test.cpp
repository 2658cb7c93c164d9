// Figures and advice of runs of other frameworks: nothing of ZeRO's settings where there are none.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "app/analysis/framework.h"
#include "app/analysis/missing_reason.h"
#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

/// Two steps of 1 ms of two ranks: a module of 0.6 ms, a collective of 0.25 ms that it does not hide.
store::Store& exposed(RunBuilder& run, StreamId lane = StreamId::gather) {
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    for (std::int64_t step = 0; step < 2; ++step) {
      const std::int64_t at = step * 2'000'000;
      run.span(rank, at, at + 1'000'000, EventKind::step_begin, StreamId::host,
               static_cast<std::uint32_t>(step));
      run.span(rank, at + 100'000, at + 700'000, EventKind::module_begin, StreamId::compute, 0, 0);
      run.span(rank, at + 700'000, at + 950'000, EventKind::collective_begin, lane,
               static_cast<std::uint32_t>(step), 0, kGatherOp, 1000, 4000);
    }
  }
  return run.build();
}

std::string advice(const std::string& framework, std::int32_t stage, StreamId lane = StreamId::gather) {
  RunBuilder run(2, stage, framework);
  const store::Store& store = exposed(run, lane);
  for (const Finding& finding : find(store, summarize(store))) {
    if (finding.title.find("exposed communication") != std::string::npos)
      return finding.evidence + finding.next_step;
  }
  return "no finding";
}

TEST(Frameworks, AdviceNamesOnlySettingsThatTheFrameworkHas) {
  for (const auto& [framework, stage] :
       {std::pair("FSDP2 (PyTorch 2.15.0)", 3), std::pair("DistributedDataParallel (PyTorch 2.15.0)", 0)}) {
    const std::string text = advice(framework, stage);
    EXPECT_EQ(text.find("overlap_comm"), std::string::npos) << text;
    EXPECT_EQ(text.find("stage3_"), std::string::npos) << text;
    EXPECT_NE(text, "no finding");
  }
  EXPECT_NE(advice("FSDP2 (PyTorch 2.15.0)", 3).find("set_modules_to_backward_prefetch"), std::string::npos);
  // Naming the next groups asks for gathers earlier: where reductions are exposed it gains nothing.
  const std::string reductions = advice("FSDP2 (PyTorch 2.15.0)", 3, StreamId::reduce);
  EXPECT_EQ(reductions.find("_prefetch"), std::string::npos) << reductions;
  EXPECT_NE(reductions.find("are reductions"), std::string::npos) << reductions;
  EXPECT_NE(advice("DeepSpeed 0.19.8", 3).find("overlap_comm is on"), std::string::npos);
  EXPECT_EQ(advice("DeepSpeed 0.19.8", 2).find("stage3_"), std::string::npos);
}

/// DeepSpeed counts what happens; our engine emits all eight, so that a missing one was dropped.
TEST(Frameworks, WhatDeepSpeedDidNotCountIsZero) {
  for (const std::string framework : {"DeepSpeed 0.19.8", ""}) {
    RunBuilder run(1, 3, framework);
    run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    run.instant(0, 500, EventKind::fetch_counter, StreamId::host, 0, ev::kNoId, 11, 0, 12979);
    const Summary summary = summarize(run.build());
    EXPECT_EQ(summary.ranks[0].fetch_counters.has_value(), !framework.empty());
  }
}

/// Of stages 1 and 2 only the optimizer is recorded: that is not all that was computed.
TEST(Frameworks, OptimizerStepsAloneAreNotWhatWasComputed) {
  for (const std::string framework : {"DeepSpeed 0.19.8", "DDP", ""}) {
    RunBuilder run(1, 1, framework);
    run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    run.span(0, 800, 900, EventKind::optimizer_begin, StreamId::compute, 0, 0);
    const TimePartition time = partition_time(run.build(), 0, 0, 1000);
    EXPECT_EQ(time.known(), framework.empty()) << framework;
    EXPECT_EQ(time.unrecorded_ns, framework.empty() ? 0 : 1000) << framework;
  }
}

/// The root's group holds parameters of modules that have no group of their own.
TEST(Frameworks, GroupsOfFsdp2UseTheParametersThatTheyGather) {
  RunBuilder run(2, 3, "FSDP2 (PyTorch 2.15.0)");
  run.instant(0, 10, EventKind::gate, StreamId::host, 0, 0, ev::kNoId,
              static_cast<std::uint8_t>(ev::GateKind::step));
  run.span(0, 20, 1000, EventKind::step_begin, StreamId::host, 0);
  run.instant(0, 30, EventKind::gate, StreamId::host, 1, 0, ev::kNoId,
              static_cast<std::uint8_t>(ev::GateKind::pre_forward));
  run.instant(0, 40, EventKind::param_status, StreamId::gather, 0, 0, 0, 1, 1000, 1000);
  run.instant(0, 500, EventKind::gate, StreamId::host, 2, 0, ev::kNoId,
              static_cast<std::uint8_t>(ev::GateKind::pre_backward));
  const store::Store& store = run.build();
  const auto parts = VolumeModel(store.tables()).parts(store, 0, 0, 20, 1000);
  ASSERT_TRUE(parts);
  EXPECT_EQ((*parts)[static_cast<std::size_t>(VolumeCause::skipped)], 0);
  EXPECT_EQ((*parts)[static_cast<std::size_t>(VolumeCause::kept)], -1000);
}

/// Framework as a recording names it, stage, label.
using Named = std::tuple<std::string, std::int32_t, std::string>;

TEST(Frameworks, TheNameIsTheFrameworks) {
  for (const auto& [framework, stage, label] : {
           Named{"", 3, "ZeRO-3"},
           Named{"DeepSpeed 0.19.8, PyTorch 2.15.0", 2, "ZeRO-2"},
           Named{"FSDP2 (PyTorch 2.15.0+cpu)", 3, "FSDP2"},
           Named{"FSDP1 (PyTorch 2.15.0+cpu)", 3, "FSDP1"},
           Named{"DistributedDataParallel (PyTorch 2.15.0)", 0, "DDP"},
           Named{"Megatron-Core 0.16.1, PyTorch 2.15.0", 0, "Megatron-Core"},
           Named{"Megatron-Core 0.16.1, PyTorch 2.15.0", 1, "Megatron-Core, distributed optimizer"},
           Named{"Colossal-AI 0.5.0, PyTorch 2.15.0", 2, "Colossal-AI ZeRO-2"},
       }) {
    ev::RunTables tables;
    tables.framework = framework;
    tables.stage = stage;
    EXPECT_EQ(partitioning_name(tables), label) << framework;
  }
}

/// FSDP prefetches by the order of its modules: that it has no trace is no missing record.
TEST(Frameworks, OnlyACoordinatorKeepsATraceOfFetches) {
  EXPECT_TRUE(has_fetch_trace(Framework::zero));
  EXPECT_TRUE(has_fetch_trace(Framework::deepspeed));
  EXPECT_FALSE(has_fetch_trace(Framework::fsdp1));
  EXPECT_FALSE(has_fetch_trace(Framework::fsdp2));
}

TEST(Frameworks, EveryAttachedOneOnAGpuHasTimesOfTheHost) {
  for (const std::string framework : {"FSDP1 (PyTorch 2.15.0)", "Megatron-Core 0.16.1, PyTorch 2.15.0",
                                      "Colossal-AI 0.5.0, PyTorch 2.15.0", "DeepSpeed 0.19.8"}) {
    ev::RunTables tables;
    tables.framework = framework;
    EXPECT_TRUE(has_times_of_host(framework_of(tables), "cuda:0")) << framework;
    EXPECT_FALSE(has_times_of_host(framework_of(tables), "cpu")) << framework;
  }
  EXPECT_FALSE(has_times_of_host(framework_of(ev::RunTables{}), "cuda:0"));
}

/// Stages of a pipeline are recorded without their modules: optimizer spans alone are no measure of
/// computing.
TEST(Frameworks, ComputingIsNotKnownWithoutModules) {
  for (const bool modules : {false, true}) {
    RunBuilder run(1, 1, "Megatron-Core 0.16.1, PyTorch 2.15.0");
    run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    run.span(0, 800, 900, EventKind::optimizer_begin, StreamId::compute, 0, 0);
    if (modules) run.span(0, 100, 300, EventKind::module_begin, StreamId::compute, 0, 0);
    EXPECT_EQ(partition_time(run.build(), 0, 0, 1000).known(), modules);
  }
}

/// A program that attaches to a run on a GPU sees its calls return: what the device did only its records say.
TEST(Frameworks, SpansOfTheHostAreNoTimesOfAGpu) {
  for (const bool records : {false, true}) {
    RunBuilder run(1, 3, "FSDP2 (PyTorch 2.15.0)");
    run.on("cuda:0");
    run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    run.span(0, 100, 300, EventKind::module_begin, StreamId::compute, 0, 0);
    run.span(0, 150, 160, EventKind::collective_begin, StreamId::gather, 0, 0, kGatherOp, 1000, 4000);
    if (records) {
      run.span(0, 400, 700, EventKind::gpu_begin, StreamId::gpu_compute, 0, 0);
      run.span(0, 600, 800, EventKind::gpu_begin, StreamId::gpu_gather, 0, 0);
      run.span(0, 0, 1000, EventKind::gpu_records_begin, StreamId::gpu_records, 0, 0);
    }
    const store::Store& store = run.build();
    const TimePartition time = partition_time(store, 0, 0, 1000);
    EXPECT_EQ(time.known(), records);
    EXPECT_EQ(time.compute_ns, records ? 300 : 0);
    EXPECT_EQ(time.comm_ns, records ? 200 : 0);
    EXPECT_EQ(time.exposed_comm_ns, records ? 100 : 0);
    EXPECT_EQ(time.unrecorded_ns, records ? 0 : 1000);
  }
}

/// Of a PyTorch that has no hooks of process groups.
TEST(Frameworks, WithoutCollectivesWhatIsNoComputationIsNotIdle) {
  RunBuilder run(1, 3, "FSDP2 (PyTorch 2.11.0)");
  run.without(ev::Capability::collectives, "this PyTorch has no hooks of process groups");
  run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
  run.span(0, 100, 300, EventKind::module_begin, StreamId::compute, 0, 0);
  const store::Store& store = run.build();
  const TimePartition time = partition_time(store, 0, 0, 1000);
  EXPECT_EQ(time.compute_ns, 200);
  EXPECT_EQ(time.idle_ns, 0);
  EXPECT_EQ(time.unrecorded_ns, 800);
  const Summary summary = summarize(store);
  EXPECT_FALSE(exposure_known(summary));
  EXPECT_FALSE(summary.elements_per_step.has_value());
  EXPECT_FALSE(summary.unexplained_elements_per_step.has_value());
}

/// A prefetch that was too late would look like one that came in time.
TEST(Frameworks, WithoutWaitsNoOutcomeOfPrefetchesIsKnown) {
  for (const bool waits : {true, false}) {
    RunBuilder run(1, 3, "FSDP2 (PyTorch 2.15.0)");
    if (!waits) run.without(ev::Capability::fetch_waits, "on a GPU a stream waits");
    run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    run.span(0, 100, 300, EventKind::module_begin, StreamId::compute, 0, 0);
    run.instant(0, 50, EventKind::prefetch_issued, StreamId::host, 1, 0, 1, 0, 100);
    const Summary summary = summarize(run.build());
    EXPECT_EQ(summary.prefetch.has_value(), waits);
    EXPECT_EQ(summary.ranks[0].fetch_wait_ns.has_value(), waits);
  }
}

/// torch.optim keeps its states in the parameters' type; DeepSpeed's ZeRO has fp32 ones.
TEST(Frameworks, StatesOfPyTorchsOptimizersHaveTheParametersType) {
  ev::RunTables tables;
  tables.param_bytes = tables.grad_bytes = 2;
  for (const std::string framework :
       {"FSDP2 (PyTorch 2.15.0)", "FSDP1 (PyTorch 2.15.0)", "DistributedDataParallel (PyTorch 2.15.0)",
        "Megatron-Core 0.16.1, PyTorch 2.15.0", "Colossal-AI 0.5.0, PyTorch 2.15.0"}) {
    tables.framework = framework;
    tables.master_bytes = 0;
    tables.param_bytes = tables.grad_bytes = 2;
    EXPECT_EQ(state_bytes_of(tables).all(), 8) << framework;
    tables.master_bytes = 4;  // Megatron-Core's and Colossal-AI's of 16-bit parameters
    EXPECT_EQ(state_bytes_of(tables).all(), 16) << framework;
    tables.master_bytes = 0;
    tables.param_bytes = tables.grad_bytes = 4;
    EXPECT_EQ(state_bytes_of(tables).all(), 16) << framework;
  }
  tables.framework = "DeepSpeed 0.19.8";
  tables.param_bytes = tables.grad_bytes = 2;
  EXPECT_EQ(state_bytes_of(tables).all(), 12);  // two moments of 4 bytes, by a ZeRO optimizer
  tables.master_bytes = 4;
  EXPECT_EQ(state_bytes_of(tables).all(), 16);
}

}  // namespace
}  // namespace shardscope::analysis
