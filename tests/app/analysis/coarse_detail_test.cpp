// What a detail does not record is missing from the figures, neither idle nor zero.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

/// Steps 0 to 3 of 1000 ns; those from `recorded` on with what was computed and communicated in them.
RunBuilder steps_recorded_from(std::uint32_t recorded) {
  RunBuilder run(1);
  for (std::uint32_t step = 0; step < 4; ++step) {
    const std::int64_t at = step * 2000;
    run.span(0, at, at + 1000, EventKind::step_begin, StreamId::host, step);
    if (step < recorded) continue;
    run.span(0, at + 100, at + 400, EventKind::module_begin, StreamId::compute, 1);
    run.span(0, at + 500, at + 600, EventKind::fetch_wait_begin, StreamId::compute, 1, 0);
    run.span(0, at + 300, at + 500, EventKind::collective_begin, StreamId::gather, step, 0, kGatherOp, 1000,
             4000);
  }
  return run;
}

TEST(Summary, WhatWasNotRecordedIsNotIdleAndNotZero) {
  RunBuilder none = steps_recorded_from(4);
  const Summary unknown = summarize(none.build());
  const RankSummary& rank = unknown.ranks.at(0);
  EXPECT_FALSE(rank.time.known());
  EXPECT_EQ(rank.time_steps, 0U);
  EXPECT_EQ(rank.time.total_ns, 3000) << "the steps themselves are known";
  EXPECT_EQ(rank.fetch_wait_ns, std::nullopt);
  EXPECT_EQ(unknown.elements_per_step, std::nullopt);
  EXPECT_FALSE(unknown.prefetch);
  EXPECT_FALSE(unknown.trace);
  const auto json = nlohmann::json::parse(to_json(unknown));
  for (const char* part : {"compute", "exposed_comm", "exposed_copy", "idle"})
    EXPECT_TRUE(json["ranks"][0]["time_ms"][part].is_null()) << part;
  EXPECT_DOUBLE_EQ(json["ranks"][0]["time_ms"]["total"].get<double>(), 0.003);
  EXPECT_TRUE(json["ranks"][0]["fetch_wait_ms"].is_null());
  EXPECT_TRUE(json["comm"]["elements_per_step"].is_null());
  EXPECT_TRUE(json["prefetch"].is_null());
  EXPECT_TRUE(json["trace"].is_null());

  // The level was raised while the run went on: figures are of the steps that have them.
  RunBuilder some = steps_recorded_from(2);
  const Summary partly = summarize(some.build());
  const TimePartition& time = partly.ranks.at(0).time;
  EXPECT_EQ(partly.steps_measured, 3U);
  EXPECT_EQ(partly.ranks.at(0).time_steps, 2U);
  EXPECT_EQ(time.total_ns, 2000);
  EXPECT_EQ(time.compute_ns, 600);
  EXPECT_EQ(time.exposed_comm_ns, 200);
  EXPECT_EQ(time.idle_ns, 1200);
  EXPECT_EQ(partly.ranks.at(0).fetch_wait_ns, 200);
  EXPECT_DOUBLE_EQ(*partly.elements_per_step, 1000);

  // Without a fetch scheduler there is nothing to be recorded of it.
  RunBuilder sharded(1, 2);
  sharded.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
  const Summary stage_2 = summarize(sharded.build());
  EXPECT_TRUE(stage_2.prefetch && stage_2.trace);
}

/// Of what detail there is anything, in the newest events and in those that are sealed.
TEST(Summary, KnowsOfWhichDetailThereIsAnything) {
  EXPECT_EQ(summarize(store::Store()).recorded_detail, std::nullopt);
  RunBuilder steps = steps_recorded_from(4), modules = steps_recorded_from(0);
  EXPECT_EQ(summarize(steps.build()).recorded_detail, ev::Detail::steps);
  EXPECT_EQ(summarize(modules.build()).recorded_detail, ev::Detail::modules);
  for (const std::size_t sealed : {1U, 1000U}) {
    store::Store store;
    store.seal_after(sealed);
    store::Chunk chunk;
    chunk.events = {{.ticks = 10, .kind = EventKind::step_begin, .stream = StreamId::host, .a = 0},
                    {.ticks = 20, .kind = EventKind::memory_alloc, .stream = StreamId::host, .a = 0}};
    store.ingest(chunk);
    EXPECT_EQ(store.recorded_detail(), ev::Detail::params) << sealed;
  }
}

TEST(Summary, TellsEndsWithoutABeginning) {
  RunBuilder run = steps_recorded_from(0);
  store::Chunk chunk;
  chunk.rank = 3;
  chunk.events = {{.ticks = 10, .kind = EventKind::module_begin, .stream = StreamId::compute, .a = 1},
                  {.ticks = 20, .kind = EventKind::module_end, .stream = StreamId::compute, .a = 2}};
  store::Store store;
  store.ingest(chunk);
  const Summary summary = summarize(store);
  const auto reported = nlohmann::json::parse(to_json(summary))["unmatched_ends"];
  EXPECT_EQ(reported, nlohmann::json::parse(
                          R"({"count": 1, "explained": 0,
                          "by": [{"rank": 3, "kind": "module_end", "count": 1, "explained": 0}]})"));
  const std::vector<Finding> findings = find(store, summary);
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.title == "Spans end that never began" &&
           finding.evidence.find("rank 3: 1 module_end") != std::string::npos;
  }));
  const store::Store& whole = run.build();
  EXPECT_EQ(nlohmann::json::parse(to_json(summarize(whole)))["unmatched_ends"]["count"], 0);
}

TEST(Compare, StepsThatDoNotTellWhatWasComputedAreLeftOut) {
  RunBuilder none = steps_recorded_from(4), some = steps_recorded_from(3);
  const store::Store &a = none.build(), &b = some.build();
  const Summary sa = summarize(a), sb = summarize(b);
  const Comparison compared = compare({{&a, &sa}}, {{&b, &sb}});
  for (const Difference& difference : compared.metrics) {
    if (difference.metric != "exposed communication" && difference.metric != "idle" &&
        difference.metric != "fetch wait" && difference.metric != "elements communicated")
      continue;
    EXPECT_FALSE(difference.a) << difference.metric;
    EXPECT_TRUE(difference.b) << difference.metric;
  }
}

// Steps 0 to 2 of 1000 ns with a copy in each; the detail is lowered at the end of step 1's copy.
TEST(Summary, CopiesAreKnownOfWhatWasRecordedAtAll) {
  const auto lowered_to = [](ev::Detail detail) {
    RunBuilder run(1);
    for (std::uint32_t step = 0; step < 3; ++step) {
      const std::int64_t at = step * 2000;
      run.span(0, at, at + 1000, EventKind::step_begin, StreamId::host, step);
      if (step == 2) continue;
      run.span(0, at + 100, at + 400, EventKind::module_begin, StreamId::compute, 1);
      run.span(0, at + 500, at + 600, EventKind::transfer_begin, StreamId::copy);
    }
    run.instant(0, 2700, EventKind::detail_changed, StreamId::host,
                static_cast<std::uint32_t>(ev::Detail::params), ev::kNoId, ev::kNoId,
                static_cast<std::uint8_t>(detail));
    return summarize(run.build()).ranks.at(0);
  };
  const RankSummary steps = lowered_to(ev::Detail::steps);
  EXPECT_TRUE(steps.copies_known) << "what came later is unrecorded as a whole";
  EXPECT_EQ(steps.time.exposed_copy_ns, 100);
  EXPECT_EQ(steps.time.unrecorded_ns, 300);
  EXPECT_FALSE(lowered_to(ev::Detail::modules).copies_known) << "computation went on to be recorded";
}

}  // namespace
}  // namespace shardscope::analysis
