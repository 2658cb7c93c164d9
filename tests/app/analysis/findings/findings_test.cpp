// What stands out in a run, with its evidence.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

TEST(Findings, NameTheInvalidatedModuleAndTheFailedRank) {
  RunBuilder run(1);
  run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
  run.instant(0, 500, EventKind::trace_invalidated, StreamId::host, 1, 0, 3);
  store::Store& store = run.build();
  store::RankRow row = store.ranks().front();
  row.exit_code = 9;
  row.finished = true;
  row.exit_message = "out of memory";
  store.set_rank(row);
  const auto findings = find(store, summarize(store));
  ASSERT_GE(findings.size(), 2U);
  EXPECT_EQ(findings[0].severity, ev::Severity::error);
  EXPECT_EQ(findings[0].evidence, "out of memory");
  EXPECT_NE(findings[1].evidence.find("expected layer but ran hand-made"), std::string::npos)
      << findings[1].evidence;
}

TEST(Findings, AStepWhoseBeginADeviceStampsLateHasItsTracesInvalidation) {
  // Steps of 10 ms, but for the third and the one after it: 30 and 20 ms.
  constexpr std::int64_t kMs = 1'000'000, kLate = 1000;
  for (const std::int64_t before_begin : {-5 * kMs, kLate}) {
    RunBuilder run(1);
    std::int64_t begin = 0;
    for (std::uint32_t step = 0; step < 6; ++step) {
      const std::int64_t length = step == 2 ? 30 * kMs : step == 3 ? 20 * kMs : 10 * kMs;
      run.span(0, begin, begin + length, EventKind::step_begin, StreamId::host, step);
      if (step == 2)
        run.instant(0, begin - before_begin, EventKind::trace_invalidated, StreamId::host, 1, 0, 3);
      begin += length + 2 * kLate;
    }
    const store::Store& store = run.build();
    const auto findings = find(store, summarize(store));
    const auto found = std::ranges::find(findings, "trace_invalidated", &Finding::id);
    ASSERT_NE(found, findings.end());
    // Two steps with a median of 25 ms, three of 10.
    ASSERT_TRUE(found->cost_once_ms) << found->evidence;
    EXPECT_NEAR(*found->cost_once_ms, 2 * (25 - 10), 1e-9);
  }
}

TEST(Findings, BlameTheRankThatDiedAndNotTheOneThatNoticed) {
  RunBuilder run(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    run.instant(rank, 0, EventKind::tokens, StreamId::host, 0);
    run.instant(rank, rank == 2 ? 4'000'000 : 9'000'000, EventKind::tokens, StreamId::host, 0);
  }
  store::Store& store = run.build();
  for (const store::RankRow& known :
       std::vector<store::RankRow>(store.ranks().begin(), store.ranks().end())) {
    store::RankRow row = known;
    row.connected = false;
    row.finished = row.rank != 2;
    row.exit_code = row.rank == 2 ? 128 + 9 : 1;
    if (row.finished) row.exit_message = "rank 0 failed: rank 2 ended (killed, crashed or left early)";
    store.set_rank(row);
  }
  const auto findings = find(store, summarize(store));
  ASSERT_GE(findings.size(), 1U);
  EXPECT_EQ(findings[0].title, "Rank 2 was killed by signal 9 (SIGKILL)");
  EXPECT_EQ(findings[0].rank, 2U);
  EXPECT_EQ(findings[0].at_ns, 4'000'000);
  EXPECT_NE(findings[0].evidence.find("0.004 s"), std::string::npos) << findings[0].evidence;
  // What follows from it is no finding of its own.
  ASSERT_EQ(findings[0].explains.size(), 1U);
  EXPECT_NE(findings[0].explains[0].find("after rank 2"), std::string::npos) << findings[0].explains[0];
  EXPECT_NE(findings[0].explains[0].find("0, 1"), std::string::npos) << findings[0].explains[0];
}

/// The finding about skipped steps of a run with these scales, every step skipped.
Finding skipped_steps(const std::string& config, std::initializer_list<double> scales) {
  RunBuilder run(1);
  std::uint32_t step = 0;
  for (const double scale : scales) {
    const std::int64_t at = step * 1000;
    run.instant(0, at, EventKind::step_begin, StreamId::host, step);
    run.instant(0, at + 500, EventKind::step_end, StreamId::host, step, ev::kNoId, ev::kNoId, 1);
    run.instant(0, at + 1, EventKind::loss_scale, StreamId::host, step, ev::kNoId, ev::kNoId, 0,
                std::bit_cast<std::int64_t>(scale));
    ++step;
  }
  store::Store& store = run.build();
  ev::RunTables tables = store.tables();
  tables.config_json = config;
  store.set_tables(0, tables);
  for (const Finding& finding : find(store, summarize(store))) {
    if (finding.title.find("skipped after an overflow") == std::string::npos) continue;
    Finding out = finding;
    // No event names a parameter, and the run does not say why.
    const std::size_t known =
        out.evidence.find(" Which parameter was first is not known: no event of these steps names it.");
    EXPECT_NE(known, std::string::npos) << out.evidence;
    out.evidence = out.evidence.substr(0, known);
    return out;
  }
  return {};
}

TEST(Findings, SayWhatTheLossScaleDidAfterAnOverflow) {
  const Finding fixed =
      skipped_steps(R"({"fp16": {"enabled": true, "loss_scale": 1099511627776}})", {0x1p40, 0x1p40, 0x1p40});
  EXPECT_EQ(fixed.title, "3 of 3 steps were skipped after an overflow");
  EXPECT_EQ(fixed.evidence,
            "fp16.loss_scale keeps the scale at 1099511627776: it is not lowered after an overflow.");
  EXPECT_EQ(fixed.next_step.rfind("Set fp16.loss_scale to 0", 0), 0U) << fixed.next_step;
  const std::string dynamic = R"({"fp16": {"enabled": true, "loss_scale": 0}})";
  EXPECT_EQ(skipped_steps(dynamic, {65536, 65536, 32768, 16384}).evidence,
            "The loss scale was lowered 2 times, to 16384 at the least.");
  EXPECT_EQ(skipped_steps(dynamic, {65536, 65536}).evidence,
            "The loss scale did not fall from 65536: its hysteresis lets overflows pass.");
  EXPECT_EQ(skipped_steps(R"({"bf16": {"enabled": true}})", {1, 1}).evidence,
            "No loss scale was in use that could be lowered.");
}

TEST(Findings, NameTheCausesOfAnExcessOfModelStatesAndTheRankThatHoldsThem) {
  RunBuilder run(1);
  run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
  const store::Store& store = run.build();
  Summary summary = summarize(store);
  summary.memory_model.expression = "16S/n";
  summary.memory_model.bytes_per_rank = 1 << 20;
  summary.memory_model.measured_bytes_per_rank = 5 << 18;
  summary.memory_model.measured_rank = 3;
  summary.memory_model.excess_pct = 25;
  // Every run of the stage has padding and rounding: nothing to say of.
  summary.memory_model.parts = {{MemoryCause::padding, 3 << 16}, {MemoryCause::rounding, 1 << 16}};
  EXPECT_TRUE(std::ranges::none_of(find(store, summary),
                                   [](const Finding& one) { return one.id == "memory_excess"; }));
  summary.memory_model.parts = {{MemoryCause::pieces, 3 << 16}, {MemoryCause::rounding, 1 << 16}};
  const auto findings = find(store, summary);
  const auto excess = std::ranges::find(findings, "Model states exceed 16S/n by 25.0 %", &Finding::title);
  ASSERT_NE(excess, findings.end());
  EXPECT_EQ(excess->rank, 3U);
  for (const char* part :
       {"1.25 MiB measured on rank 3", "192 KiB are owned parameters in a row", "64.0 KiB are rounding"}) {
    EXPECT_NE(excess->evidence.find(part), std::string::npos) << part << " in: " << excess->evidence;
  }
}

}  // namespace
}  // namespace shardscope::analysis
