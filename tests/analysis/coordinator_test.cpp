// What recordings say of stage 3's coordinator: its counters by rank, and why a trace was given up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/analysis/summary.h"
#include "tests/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using instrumentation::EventKind;
using instrumentation::StreamId;
using test::RunBuilder;

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
  const auto& told = json["ranks"][0]["fetch_counters"];
  EXPECT_EQ(told["micro_steps"], 3);
  EXPECT_EQ(told["total"]["forward_fetch_wait"], (nlohmann::json{{"count", 14}, {"numel", 140}}));
  EXPECT_EQ(told["last_micro_step"]["backward_all_gather"], (nlohmann::json{{"count", 32}, {"numel", 320}}));
}

TEST(FetchCounterSums, MissingAreMissing) {
  RunBuilder run = two_steps();
  counters(run, 0, 400, 0, 1, 3);
  const Summary summary = summarize(run.build());
  EXPECT_FALSE(summary.ranks[0].fetch_counters);
  EXPECT_FALSE(summary.ranks[1].fetch_counters);
  EXPECT_TRUE(nlohmann::json::parse(to_json(summary))["ranks"][1]["fetch_counters"].is_null());
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
                "expected layer but ran the root module (trace of 40 modules)"},
           Case{InvalidationCause::trace_too_short, kNone, 1, 40, "trace_too_short",
                "ran layer after the end of the trace, which has only 40 modules"},
           Case{InvalidationCause::params_differ, 1, 1, 40, "params_differ",
                "ran layer with parameters that were not recorded for it (trace of 40 modules)"},
           // As recorded before the event told cause and length.
           Case{InvalidationCause::module_differs, 1, 0, 0, "module_differs",
                "expected layer but ran the root module"},
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
