// Traces in the shape of PyTorch's profiler: read as Holistic Trace Analysis (hta/utils/utils.py) reads them,
// their figures are those of the summary.
#include "app/export/kineto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "app/analysis/intervals.h"
#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/store/synthetic_gpu.h"
#include "tests/app/store/synthetic_run.h"
#include "tests/temporary_folder.h"

namespace shardscope::exporter {
namespace {

using analysis::Interval;
using analysis::IntervalSet;
using nlohmann::json;

std::string text_of(const store::Store& store, std::uint32_t rank, const KinetoOptions& options = {}) {
  std::ostringstream out;
  write_kineto(out, store, rank, options);
  return out.str();
}

json exported(const store::Store& store, std::uint32_t rank, const KinetoOptions& options = {}) {
  return json::parse(text_of(store, rank, options));
}

std::int64_t nanoseconds(const json& us) { return std::llround(us.get<double>() * 1000); }

/// HTA's classes of what has a stream and a launch in a step.
struct HtaTimes {
  IntervalSet compute, communication, all;
};
HtaTimes hta_times(const json& trace) {
  // HTA's own patterns: ^nccl.*Kernel; ^Memcpy|^Memset|^dma; ^nccl.*Kernel|.*Memcpy|^Memset|.*Sync.
  const auto is_communication = [](const std::string& name) {
    return name.starts_with("nccl") && name.find("Kernel") != std::string::npos;
  };
  const auto is_compute = [](const std::string& name) {
    return name.find("Memcpy") == std::string::npos && name.find("Sync") == std::string::npos &&
           !name.starts_with("Memset") && !name.starts_with("dma");
  };
  std::vector<Interval> steps, compute, communication, all;
  std::map<std::int64_t, std::int64_t> launches;
  for (const json& event : trace["traceEvents"]) {
    if (event.value("cat", "") == "cuda_runtime")
      launches[event["args"]["correlation"]] = nanoseconds(event["ts"]);
    if (event["name"].get<std::string>().rfind("ProfilerStep#", 0) == 0)
      steps.push_back({nanoseconds(event["ts"]), nanoseconds(event["ts"]) + nanoseconds(event["dur"])});
  }
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || !event.contains("args") || !event["args"].contains("stream")) continue;
    const std::int64_t launch = launches.at(event["args"]["correlation"]);
    const bool in_step = std::ranges::any_of(
        steps, [&](const Interval& step) { return launch >= step.begin && launch < step.end; });
    EXPECT_TRUE(in_step) << event.dump();
    const Interval at{nanoseconds(event["ts"]), nanoseconds(event["ts"]) + nanoseconds(event["dur"])};
    EXPECT_LE(launch, at.begin);
    const std::string name = event["name"];
    all.push_back(at);
    if (is_communication(name)) {
      communication.push_back(at);
    } else if (is_compute(name)) {
      compute.push_back(at);
    }
  }
  return {IntervalSet(compute), IntervalSet(communication), IntervalSet(all)};
}

void expect_figures_of_summary(const store::Store& store) {
  const analysis::Summary summary = analysis::summarize(store);
  ASSERT_FALSE(summary.ranks.empty());
  for (const analysis::RankSummary& rank : summary.ranks) {
    const HtaTimes hta = hta_times(exported(store, rank.rank));
    EXPECT_EQ(hta.compute.length(), rank.time.compute_ns);
    EXPECT_EQ(hta.communication.length(), rank.time.comm_ns);
    EXPECT_EQ(hta.communication.subtract(hta.compute).length(), rank.time.exposed_comm_ns);
    EXPECT_EQ(hta.all.length() - hta.compute.length(), rank.time.exposed_comm_ns + rank.time.exposed_copy_ns);
  }
}

TEST(Kineto, HtaComputesTheFiguresOfTheSummary) {
  for (const std::int32_t stage : {1, 2, 3}) {
    SCOPED_TRACE(stage);
    expect_figures_of_summary(store::make_synthetic_store({.stage = stage}));
  }
}

TEST(Kineto, AndThoseOfRunsWhoseGpusWereRecorded) {
  const store::Store store = store::make_synthetic_gpu_store();
  expect_figures_of_summary(store);
  std::set<std::string> names;
  std::size_t launched = 0;
  const json trace = exported(store, 0);
  for (const json& event : trace["traceEvents"]) {
    if (event.value("cat", "") == "kernel") names.insert(event["name"]);
    launched += event.value("cat", "") == "cuda_runtime" && !event["args"].contains("launch") ? 1 : 0;
  }
  EXPECT_THAT(names, testing::Not(testing::Contains(testing::HasSubstr("transformer"))));
  EXPECT_GT(launched, 100U);
}

/// An optimizer on the host beside computation, copies, a pause, a name that HTA would not take for
/// computation.
TEST(Kineto, HtaCountsOffloadedOptimizersAndCutsPauses) {
  test::RunBuilder run(1);
  using enum ev::EventKind;
  using enum ev::StreamId;
  for (std::uint32_t step = 0; step < 3; ++step) {
    const std::int64_t at = step * 1'000'000;
    run.span(0, at, at + 900'500, step_begin, host, step);
    run.span(0, at + 100'100, at + 500'300, module_begin, compute, 0);
    run.span(0, at + 150'700, at + 250'900, module_begin, compute, 1);
    run.span(0, at + 300'000, at + 320'000, paused_begin, host);
    run.span(0, at + 450'000, at + 700'000, optimizer_begin, worker, 0, step);
    run.span(0, at + 480'000, at + 760'000, transfer_begin, copy, 0, 0,
             static_cast<std::uint8_t>(ev::TransferKind::device_to_host), 4096);
    run.span(0, at + 50'000, at + 200'000, collective_begin, gather, step, step, test::kGatherOp, 100, 400);
  }
  store::Store& store = run.build();
  expect_figures_of_summary(store);
  std::map<std::string, std::set<std::int64_t>> streams;  // by category and name
  const json trace = exported(store, 0);
  for (const json& event : trace["traceEvents"]) {
    if (event.contains("args") && event["args"].contains("stream"))
      streams[event["name"]].insert(event["args"]["stream"].get<std::int64_t>());
  }
  EXPECT_THAT(streams, testing::Contains(testing::Key("Memcpy DtoH (Device -> Pinned)")));
  EXPECT_THAT(streams, testing::Contains(testing::Pair("layer forward", testing::ElementsAre(7))));
  EXPECT_THAT(streams, testing::Contains(testing::Key("ncclKernel_AllGather")));
}

TEST(Kineto, HasTheShapeOfPyTorchsTraces) {
  const store::Store store = store::make_synthetic_store();
  const std::string text = text_of(store, 2);
  // HTA reads line by line until this, with the space.
  EXPECT_THAT(text.substr(0, 200), testing::ContainsRegex("\"rank\": 2"));
  const json trace = json::parse(text);
  EXPECT_EQ(trace["distributedInfo"]["world_size"], 4);
  EXPECT_EQ(trace["baseTimeNanoseconds"], store.origin_ns());
  std::set<std::string> steps, named;
  std::set<std::int64_t> launched, ran, operators, pids;
  std::map<std::string, std::int64_t> phases;
  for (const json& event : trace["traceEvents"]) {
    const std::string category = event.value("cat", "");
    const std::string name = event["name"];
    ++phases[event["ph"]];
    pids.insert(event["pid"].get<std::int64_t>());
    if (name == "thread_name") named.insert(event["args"]["name"]);
    if (name.rfind("ProfilerStep#", 0) == 0) {
      EXPECT_EQ(category, "user_annotation");
      steps.insert(name);
    }
    if (category == "cpu_op") operators.insert(event["args"]["External id"].get<std::int64_t>());
    if (category == "cuda_runtime") launched.insert(event["args"]["correlation"].get<std::int64_t>());
    if (category != "kernel" && category != "gpu_memcpy") continue;
    EXPECT_TRUE(ran.insert(event["args"]["correlation"].get<std::int64_t>()).second) << event.dump();
    EXPECT_EQ(event["tid"], event["args"]["stream"]);
    EXPECT_EQ(event["args"]["device"], 2);
    if (name.rfind("nccl", 0) != 0) continue;
    EXPECT_EQ(event["args"]["Group size"], 4);
    EXPECT_GE(event["args"]["Out msg nelems"].get<std::int64_t>(), 0);
  }
  // The first step is warm-up, in the summary as well.
  EXPECT_THAT(steps, testing::ElementsAre("ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3"));
  EXPECT_EQ(pids.size(), 2U);
  EXPECT_GT(operators.size(), 50U);
  EXPECT_GT(ran.size(), 100U);
  EXPECT_EQ(launched, ran);
  EXPECT_EQ(phases["s"], static_cast<std::int64_t>(ran.size()));
  EXPECT_EQ(phases["f"], phases["s"]);
  EXPECT_THAT(named, testing::Contains("stream 7 compute"));
}

TEST(Kineto, WhereOneKernelFollowsAnotherIsAWholeMicrosecond) {
  const json trace = exported(store::make_synthetic_store(), 0);
  std::map<std::int64_t, std::vector<Interval>> streams;
  for (const json& event : trace["traceEvents"]) {
    if (event.value("cat", "") == "kernel")
      streams[event["tid"].get<std::int64_t>()].push_back(
          {nanoseconds(event["ts"]), nanoseconds(event["ts"]) + nanoseconds(event["dur"])});
  }
  std::size_t inner = 0;
  auto& kernels = streams.at(7);
  std::ranges::sort(kernels, {}, &Interval::begin);
  for (std::size_t i = 1; i < kernels.size(); ++i) {
    EXPECT_GE(kernels[i].begin, kernels[i - 1].end);
    if (kernels[i].begin != kernels[i - 1].end) continue;
    ++inner;
    EXPECT_EQ(kernels[i].begin % 1000, 0);
  }
  EXPECT_GT(inner, 20U);
}

TEST(Kineto, WritesTheRanksAndStepsThatAreChosen) {
  const store::Store store = store::make_synthetic_store();
  const test::TemporaryFolder temporary;
  const auto folder = temporary.path() / "trace";
  const auto written = write_kineto(folder.string(), store, {.ranks = {1, 3}, .steps = {{0, 1}}});
  ASSERT_EQ(written.size(), 2U);
  EXPECT_TRUE(std::filesystem::exists(folder / "rank_3.json"));
  EXPECT_FALSE(std::filesystem::exists(folder / "rank_0.json"));
  std::ifstream file(written.front());
  const json trace = json::parse(file);
  EXPECT_EQ(trace["distributedInfo"]["rank"], 1);
  std::set<std::string> steps;
  for (const json& event : trace["traceEvents"]) {
    const std::string name = event["name"];
    if (name.rfind("ProfilerStep#", 0) == 0) steps.insert(name);
  }
  EXPECT_THAT(steps, testing::ElementsAre("ProfilerStep#0", "ProfilerStep#1"));
  const auto nowhere = temporary.path() / "nowhere";
  EXPECT_THROW((void)write_kineto(nowhere.string(), store, {.ranks = {7}, .steps = {}}), std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(nowhere));
}

std::string refusal(const std::filesystem::path& folder, const store::Store& store,
                    const KinetoOptions& options) {
  try {
    (void)write_kineto(folder.string(), store, options);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "written";
}

TEST(Kineto, StepsOfWhichNoneWasRecordedAreRefused) {
  const store::Store store = store::make_synthetic_store();
  const test::TemporaryFolder temporary;
  const auto folder = temporary.path() / "trace";
  EXPECT_EQ(refusal(folder, store, {.ranks = {}, .steps = {{1000, 2000}}}),
            "steps 1000-2000: none of them was recorded to its end; the recording has 0-3");
  EXPECT_FALSE(std::filesystem::exists(folder));
}

/// HTA reads all that is there.
TEST(Kineto, AFolderWithOtherRanksIsRefused) {
  const store::Store store = store::make_synthetic_store();
  const test::TemporaryFolder temporary;
  EXPECT_EQ(refusal(temporary.path(), store, {}), "written");
  EXPECT_EQ(refusal(temporary.path(), store, {}), "written") << "the same ranks replace those";
  EXPECT_THAT(refusal(temporary.path(), store, {.ranks = {1, 2, 3}, .steps = {}}),
              testing::HasSubstr("holds rank_0.json of another export"));
}

std::vector<std::string> steps_in(const json& trace) {
  std::vector<std::string> out;
  for (const json& event : trace["traceEvents"]) {
    const std::string name = event["name"];
    if (name.rfind("ProfilerStep#", 0) == 0) out.push_back(name.substr(13));
  }
  return out;
}

/// Rank 0 loses all from within step 2 to step 4: both files have the steps that the summary measures.
TEST(Kineto, RanksHaveTheSameStepsAfterALoss) {
  test::RunBuilder run(2);
  using enum ev::EventKind;
  using enum ev::StreamId;
  const auto step = [&](std::uint32_t rank, std::uint32_t number) {
    const std::int64_t at = number * 1'000'000;
    run.span(rank, at, at + 900'000, step_begin, host, number);
    run.span(rank, at + 100'000, at + 800'000, module_begin, compute, 1);
  };
  for (std::uint32_t number = 0; number < 8; ++number) step(1, number);
  for (std::uint32_t number = 0; number < 2; ++number) step(0, number);
  run.instant(0, 2'000'000, step_begin, host, 2);
  (void)run.build();
  run.drop(0, 12);
  for (std::uint32_t number = 5; number < 8; ++number) step(0, number);
  const store::Store& store = run.build();
  for (const std::uint32_t rank : {0U, 1U})
    EXPECT_THAT(steps_in(exported(store, rank)), testing::ElementsAre("1", "2", "5", "6", "7")) << rank;
  expect_figures_of_summary(store);
}

/// A process of a container may have the number of the rank.
TEST(Kineto, TheHostIsNeverTheDevice) {
  test::RunBuilder run(2);
  run.span(1, 0, 900, ev::EventKind::step_begin, ev::StreamId::host, 0);
  store::Store& store = run.build();
  store::RankRow row = store.ranks()[1];
  for (const int pid : {1, 4711}) {
    row.pid = pid;
    store.set_rank(row);
    std::map<std::string, std::set<std::int64_t>> pids;  // of labels
    const json trace = exported(store, 1);
    for (const json& event : trace["traceEvents"]) {
      if (event["name"] == "process_labels")
        pids[event["args"]["labels"]].insert(event["pid"].get<std::int64_t>());
    }
    EXPECT_THAT(pids["CPU"], testing::ElementsAre(pid == 1 ? 100'001 : pid));
    EXPECT_THAT(pids["GPU 1"], testing::ElementsAre(1));
  }
}

/// A gather that a pause cuts, and that goes on in the next step, gathered its elements once.
TEST(Kineto, ACollectiveThatIsCutHasItsElementsOnce) {
  test::RunBuilder run(1);
  using enum ev::EventKind;
  using enum ev::StreamId;
  for (std::uint32_t step = 0; step < 3; ++step) {
    const std::int64_t at = step * 1'000'000;
    run.span(0, at, at + 1'000'000, step_begin, host, step);
    run.span(0, at + 100'000, at + 200'000, module_begin, compute, 1);
  }
  run.span(0, 1'500'000, 1'600'000, paused_begin, host);
  run.span(0, 1'400'000, 2'300'000, collective_begin, gather, 5, 5, test::kGatherOp, 100, 400);
  run.span(0, 2'400'000, 2'500'000, collective_begin, gather, 6, 6, test::kGatherOp, 10, 40);
  const json trace = exported(run.build(), 0);
  std::int64_t parts = 0, elems = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event.value("cat", "") != "kernel" || event["name"] != "ncclKernel_AllGather") continue;
    ++parts;
    elems += event["args"]["Out msg nelems"].get<std::int64_t>();
    EXPECT_EQ(event["args"].contains("continues"), event["args"]["Out msg nelems"] == 0);
  }
  EXPECT_EQ(parts, 4);
  EXPECT_EQ(elems, 110);
}

}  // namespace
}  // namespace shardscope::exporter
