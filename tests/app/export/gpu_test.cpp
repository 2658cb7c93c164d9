// What other tools get of a run whose GPUs were recorded: their kernels are the work, nothing counts twice.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "app/export/chrome.h"
#include "app/export/span_walk.h"
#include "tests/app/store/synthetic_gpu.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;

TEST(GpuExport, OnlyWhatTheGpuDidIsAKernel) {
  const store::Store store = store::make_synthetic_gpu_store();
  std::size_t spans = 0;
  for (const store::LaneId lane : store.lanes()) {
    walk_spans(store, lane, [&](const WalkedSpan& walked) {
      if (walked.span->kind == ev::EventKind::gpu_begin) {
        ++spans;
        EXPECT_TRUE(walked.is_work);
      } else if (lane.stream == ev::StreamId::compute || lane.stream == ev::StreamId::gather) {
        EXPECT_FALSE(walked.is_work) << ev::name_of(walked.span->kind);
      }
    });
  }
  ASSERT_GT(spans, 100U);
  std::ostringstream out;
  write_chrome(out, store, {});
  std::size_t kernels = 0, named = 0, delayed = 0;
  const auto trace = nlohmann::json::parse(out.str());
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] != "kernel") continue;
    ++kernels;
    named += event["name"].get<std::string>().rfind("ncclDevKernel_", 0) == 0 ? 1 : 0;
    delayed += event["args"].contains("launch_delay_ns") ? 1 : 0;
  }
  EXPECT_EQ(kernels, spans);
  EXPECT_EQ(delayed, spans);
  EXPECT_GT(named, 0U);
}

TEST(GpuExport, WithoutRecordsModulesAreTheWorkAsBefore) {
  const store::Store store = store::make_synthetic_store();
  std::size_t work = 0;
  walk_spans(store, {0, ev::StreamId::compute},
             [&](const WalkedSpan& walked) { work += walked.is_work ? 1 : 0; });
  EXPECT_GT(work, 0U);
}

}  // namespace
}  // namespace shardscope::exporter
