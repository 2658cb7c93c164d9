#include "app/analysis/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "app/analysis/digest.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

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

/// The clocks of the ranks contradict each other in one step of four: it is in neither mean, so that no part
/// gains more than it takes.
TEST(Summary, GainsAndPartsOfThePathAreOfTheSameSteps) {
  constexpr std::int64_t kUnit = 100'000;
  RunBuilder run(2);
  for (std::uint32_t step = 0; step < 5; ++step) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const std::int64_t at = step * 20 * kUnit;
      const bool swapped = step == 3 && rank == 1;
      const auto gathers = [&](std::uint32_t number, std::int64_t begin, std::int64_t end) {
        run.span(rank, at + begin * kUnit, at + end * kUnit, EventKind::collective_begin, StreamId::gather,
                 2 * step + number, 0, kGatherOp, 1000, 4000);
      };
      run.span(rank, at, at + 10 * kUnit, EventKind::step_begin, StreamId::host, step);
      run.span(rank, at, at + kUnit, EventKind::module_begin, StreamId::compute, 1, step);
      gathers(swapped ? 1 : 0, 1, 3);
      gathers(swapped ? 0 : 1, 9, 10);
    }
  }
  const Summary s = summarize(run.build());
  EXPECT_EQ(s.steps_measured, 4U);
  ASSERT_TRUE(s.critical_path);
  EXPECT_EQ(s.critical_path->steps, 3U);
  const auto& parts = s.critical_path->ms_per_step;
  ASSERT_FALSE(s.critical_path->gain_ms_per_step.empty());
  for (const auto& [part, gain] : s.critical_path->gain_ms_per_step) {
    const auto own = std::ranges::find(parts, part, [](const auto& one) { return one.first; });
    ASSERT_NE(own, parts.end()) << part;
    EXPECT_LE(gain, own->second) << part;
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

TEST(Json, SaysWhatWasTrainedUnderTheNamesOfTheDocumentation) {
  Summary summary;
  summary.world = 4;
  summary.stage = 2;
  summary.params = 124'000'000;
  summary.model = "gpt2-small";
  summary.device = "CPU";
  summary.simulated = true;
  summary.link_gbps = 10;
  summary.link_latency_us = 5;
  // docs/metrics.md 4
  const auto run = nlohmann::json::parse(to_json(summary))["run"];
  EXPECT_EQ(run.at("world"), 4);
  EXPECT_EQ(run.at("stage"), 2);
  EXPECT_EQ(run.at("params"), 124'000'000);
  EXPECT_EQ(run.at("model"), "gpt2-small");
  EXPECT_EQ(run.at("device"), "CPU");
  EXPECT_EQ(run.at("simulated"), true);
  EXPECT_EQ(run.at("emulated_link").at("gbps"), 10);
  EXPECT_EQ(run.at("emulated_link").at("latency_us"), 5);
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
