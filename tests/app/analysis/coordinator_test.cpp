// What recordings say of stage 3's coordinator: its counters by rank, and why a trace was invalidated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

/// The eight counters of a micro-step: counts 1 to 8 and elements 10 to 80, times `factor`.
void counters(RunBuilder& run, std::uint32_t rank, std::int64_t at, std::uint32_t micro_step,
              std::uint32_t factor, std::uint8_t most = 8) {
  for (std::uint8_t i = 0; i < most; ++i) {
    run.instant(rank, at, EventKind::fetch_counter, StreamId::host, micro_step, 0, factor * (i + 1), i,
                std::int64_t{10} * factor * (i + 1));
  }
}

RunBuilder two_steps() {
  RunBuilder run(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    run.span(rank, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    run.span(rank, 1000, 2000, EventKind::step_begin, StreamId::host, 1);
  }
  return run;
}

TEST(FetchCounterSums, AddUpOverMicroStepsByRank) {
  RunBuilder run = two_steps();
  counters(run, 0, 400, 0, 1);
  counters(run, 0, 900, 1, 2);
  counters(run, 0, 1900, 2, 4);
  counters(run, 1, 400, 0, 1);
  counters(run, 1, 900, 1, 2, 7);  // one was dropped on the way: this micro-step is left out
  const Summary summary = summarize(run.build());
  ASSERT_TRUE(summary.ranks[0].fetch_counters);
  const FetchCounterSums& first = *summary.ranks[0].fetch_counters;
  EXPECT_EQ(first.micro_steps, 3U);
  EXPECT_EQ(first.total[0], (plan::FetchCount{7, 70}));
  EXPECT_EQ(first.total[7], (plan::FetchCount{56, 560}));
  EXPECT_EQ(first.last[2], (plan::FetchCount{12, 120}));
  ASSERT_TRUE(summary.ranks[1].fetch_counters);
  EXPECT_EQ(summary.ranks[1].fetch_counters->micro_steps, 1U);
  EXPECT_EQ(summary.ranks[1].fetch_counters->total[7], (plan::FetchCount{8, 80}));

  const auto json = nlohmann::json::parse(to_json(summary));
  const auto& reported = json["ranks"][0]["fetch_counters"];
  EXPECT_EQ(reported["micro_steps"], 3);
  EXPECT_EQ(reported["total"]["forward_fetch_wait"], (nlohmann::json{{"count", 14}, {"numel", 140}}));
  EXPECT_EQ(reported["last_micro_step"]["backward_all_gather"],
            (nlohmann::json{{"count", 32}, {"numel", 320}}));
}

TEST(FetchCounterSums, MissingAreMissing) {
  RunBuilder run = two_steps();
  counters(run, 0, 400, 0, 1, 3);
  const Summary summary = summarize(run.build());
  EXPECT_FALSE(summary.ranks[0].fetch_counters);
  EXPECT_FALSE(summary.ranks[1].fetch_counters);
  EXPECT_TRUE(nlohmann::json::parse(to_json(summary))["ranks"][1]["fetch_counters"].is_null());
}

void micro_step_gate(RunBuilder& run, std::uint32_t rank, std::int64_t at, std::uint32_t number,
                     std::uint32_t micro_step) {
  run.instant(rank, at, EventKind::gate, StreamId::host, number, micro_step, instrumentation::kNoId,
              static_cast<std::uint8_t>(instrumentation::GateKind::micro_step));
}

// Counters have the compute stream's time, gates the host's: those of a micro-step may lie behind the next
// gate.
TEST(FetchCountersAt, AreThoseOfTheMicroStepOrOfTheOneBefore) {
  RunBuilder run = two_steps();
  for (std::uint32_t micro_step = 0; micro_step < 4; ++micro_step) {
    micro_step_gate(run, 0, 100 + 400 * micro_step, 10 + micro_step, micro_step);
  }
  counters(run, 0, 480, 0, 1);
  counters(run, 0, 950, 1, 2);      // behind the gate of micro-step 2
  counters(run, 0, 1290, 2, 4, 7);  // one was dropped
  const store::Store& store = run.build();
  EXPECT_FALSE(fetch_counters_at(store, 0, 50)) << "before the first gate";
  EXPECT_FALSE(fetch_counters_at(store, 1, 600)) << "of another rank";
  for (const std::int64_t at : {100, 300, 499}) {
    const auto first = fetch_counters_at(store, 0, at);
    ASSERT_TRUE(first) << at;
    EXPECT_EQ(first->micro_step, 0U) << at;
    EXPECT_EQ(first->counts[7], (plan::FetchCount{8, 80}));
  }
  for (const std::int64_t at : {500, 800, 901}) {  // of micro-step 2 seven are known: those of 1 again
    const auto second = fetch_counters_at(store, 0, at);
    ASSERT_TRUE(second) << at;
    EXPECT_EQ(second->micro_step, 1U) << at;
    EXPECT_EQ(second->counts[0], (plan::FetchCount{2, 20}));
  }
  EXPECT_FALSE(fetch_counters_at(store, 0, 1400)) << "neither micro-step 3 nor 2 has all";
}

TEST(TraceInvalidations, AreFoundFromWhatTheyReleased) {
  RunBuilder run = two_steps();
  for (std::uint32_t micro_step = 0; micro_step < 4; ++micro_step) {
    micro_step_gate(run, 0, 100 + 400 * micro_step, 10 + micro_step, micro_step);
  }
  run.instant(0, 300, EventKind::trace_invalidated, StreamId::host, 1, 0, 7, 0, 40);
  const store::Store& store = run.build();
  EXPECT_FALSE(invalidation_before(store, 0, 299));
  ASSERT_TRUE(invalidation_before(store, 0, 300));
  EXPECT_EQ(invalidation_before(store, 0, 301)->trace_step, 7U);
  EXPECT_TRUE(invalidation_before(store, 0, 700)) << "the stream is behind the host";
  EXPECT_FALSE(invalidation_before(store, 0, 1000)) << "two micro-steps later";
  EXPECT_FALSE(invalidation_before(store, 1, 300)) << "of another rank";
}

TEST(TraceInvalidations, SayTheirCause) {
  using plan::InvalidationCause;
  struct Case {
    InvalidationCause cause;
    std::uint32_t expected, got;
    std::int64_t recorded;
    const char *name, *text;
  };
  constexpr std::uint32_t kNone = instrumentation::kNoId;
  for (const Case& c : {
           Case{InvalidationCause::module_differs, 1, 0, 40, "module_differs",
                "expected layer but ran hand-made (trace of 40 modules)"},
           Case{InvalidationCause::trace_too_short, kNone, 1, 40, "trace_too_short",
                "ran layer after the end of the trace, which has only 40 modules"},
           Case{InvalidationCause::params_differ, 1, 1, 40, "params_differ",
                "ran layer with parameters that were not recorded for it (trace of 40 modules)"},
           // Of a program that does not know the length.
           Case{InvalidationCause::module_differs, 1, 0, 0, "module_differs",
                "expected layer but ran hand-made"},
           Case{InvalidationCause::module_differs, kNone, 1, 0, "trace_too_short",
                "ran layer after the end of the trace"},
           Case{InvalidationCause::module_differs, 1, 1, 0, "params_differ",
                "ran layer with parameters that were not recorded for it"},
       }) {
    RunBuilder run = two_steps();
    run.instant(1, 500, EventKind::trace_invalidated, StreamId::host, c.expected, c.got, 7,
                static_cast<std::uint8_t>(c.cause), c.recorded);
    const Summary summary = summarize(run.build());
    EXPECT_EQ(summary.first_invalidation_text, c.text);
    const auto json = nlohmann::json::parse(to_json(summary))["trace"]["first_invalidation"];
    EXPECT_EQ(json["rank"], 1);
    EXPECT_EQ(json["cause"], c.name);
    EXPECT_EQ(json["trace_step"], 7);
    EXPECT_EQ(json["recorded_modules"],
              c.recorded > 0 ? nlohmann::json(c.recorded) : nlohmann::json(nullptr));
    EXPECT_EQ(json["text"], c.text);
  }
  RunBuilder none = two_steps();
  EXPECT_TRUE(
      nlohmann::json::parse(to_json(summarize(none.build())))["trace"]["first_invalidation"].is_null());
}

}  // namespace
}  // namespace shardscope::analysis
