// The finding of parameters that stay gathered after a use: the step that it reads, and the reason on which
// its advice depends.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/held_long.h"
#include "app/analysis/summary.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/scheduler.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;
using plan::KeepReason;
using Reasons = std::vector<KeepReason>;

constexpr std::int64_t kUnitNs = 1'000'000, kHeldStepNs = 10 * kUnitNs;

struct HeldRun {
  std::string framework{};
  std::string config = R"({"zero_optimization": {"stage": 3}})";
  Reasons reasons{};                   ///< in each step
  bool used_again = true;              ///< at 7 ms; else it is released there
  std::int64_t pause_ns = 0;           ///< of the last step, of rank 1, while the parameter is whole on both
  bool checkpoint = false;             ///< in its place
  std::int64_t held_ns = 5 * kUnitNs;  ///< between the uses
  std::int64_t late_ns = 0;            ///< after its second use, until it is released
  std::int64_t gathered_bytes = 4000, other_bytes = 1000;  ///< in memory at the peak
  bool nested = false;       ///< the parameter is that of a module inside of the one for which it is gathered
  bool inner_spans = false;  ///< that module has spans too, of a tenth
};

/// Steps of 10 ms: the parameter is gathered at 1 ms, used until 2 ms, kept, and used from then on.
store::Store& made(RunBuilder& builder, const HeldRun& run) {
  for (std::uint32_t step = 0; step < 6; ++step) {
    const bool last = step == 5;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const std::int64_t at = step * kHeldStepNs, kept = at + 2 * kUnitNs,
                         again = kept + run.held_ns + (last ? run.pause_ns : 0), ends = again + kUnitNs,
                         step_end = at + kHeldStepNs + (last ? run.pause_ns : 0);
      const auto status = [&](std::int64_t when, plan::ParamStatus to, ev::StatusCause cause) {
        builder.instant(rank, when, EventKind::param_status, StreamId::compute, 0, 1, ev::kNoId,
                        ev::status_code(static_cast<std::uint8_t>(to), cause), 1000);
      };
      const auto memory = [&](std::int64_t when, EventKind kind, ev::MemoryCategory category,
                              std::int64_t bytes, std::int64_t total) {
        builder.instant(rank, when, kind, StreamId::host, 0, ev::kNoId, ev::kNoId,
                        static_cast<std::uint8_t>(category), bytes, total);
      };
      const std::int64_t gathered = run.gathered_bytes, all = gathered + run.other_bytes;
      builder.span(rank, at, step_end, EventKind::step_begin, StreamId::host, step);
      memory(at + kUnitNs, EventKind::memory_alloc, ev::MemoryCategory::param_gathered, gathered, gathered);
      status(at + kUnitNs, plan::ParamStatus::available, ev::StatusCause::fetch);
      builder.span(rank, at + kUnitNs + 1, kept, EventKind::module_begin, StreamId::compute, 1, step);
      if (run.inner_spans)
        for (const std::int64_t use : {at + kUnitNs + 2, again + 1})
          builder.span(rank, use, use + kUnitNs / 10, EventKind::module_begin, StreamId::compute, 2, step);
      for (std::size_t i = 0; i < run.reasons.size(); ++i)
        builder.instant(rank, kept + static_cast<std::int64_t>(i), EventKind::release_kept, StreamId::host, 1,
                        0, ev::kNoId, static_cast<std::uint8_t>(run.reasons[i]), 1000);
      memory(kept + 1000, EventKind::memory_alloc, ev::MemoryCategory::activation, run.other_bytes, all);
      memory(again - 1000, EventKind::memory_free, ev::MemoryCategory::activation, run.other_bytes, gathered);
      if (last && run.pause_ns > 0 && rank == 1) {
        if (run.checkpoint) {
          builder.span(rank, kept + 5000, kept + 5000 + run.pause_ns, EventKind::phase_begin,
                       StreamId::compute, ev::kNoId, ev::kNoId,
                       static_cast<std::uint8_t>(ev::Phase::checkpoint_save));
        } else {
          builder.span(rank, kept + 5000, kept + 5000 + run.pause_ns, EventKind::paused_begin, StreamId::host,
                       1);
        }
      }
      if (run.used_again) {
        builder.span(rank, again, ends, EventKind::module_begin, StreamId::compute, 1, step);
        status(ends + run.late_ns, plan::ParamStatus::not_available, ev::StatusCause::release);
      } else {
        status(again, plan::ParamStatus::not_available, ev::StatusCause::release);
      }
      memory(ends, EventKind::memory_free, ev::MemoryCategory::param_gathered, gathered, 0);
    }
  }
  store::Store& store = builder.build();
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ev::RunTables tables = store.tables();  // a rank's own have no model
    tables.rank = rank;
    tables.config_json = run.config;
    if (run.nested) {
      tables.modules.push_back({2, 1, "layer.0", "Linear", {0}, true});
      tables.params[0].modules = {2};
    }
    store.set_tables(rank, tables);
  }
  return store;
}

std::vector<Finding> findings_of(const HeldRun& run) {
  RunBuilder builder(2, 3, run.framework);
  const store::Store& store = made(builder, run);
  return find(store, summarize(store));
}

std::optional<Finding> with(const std::string& id, const std::vector<Finding>& findings) {
  const auto at = std::ranges::find(findings, id, &Finding::id);
  return at == findings.end() ? std::nullopt : std::optional(*at);
}

std::optional<Finding> held(const HeldRun& run) { return with("held_after_use", findings_of(run)); }

/// Whether the finding is there and its advice says this.
testing::AssertionResult advises(const std::optional<Finding>& found, const std::string& text) {
  if (!found) return testing::AssertionFailure() << "no finding";
  if (found->next_step.find(text) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << found->next_step;
}

std::vector<HeldStretch> stretches_of(const HeldRun& run) {
  RunBuilder builder(2, 3, run.framework);
  const store::Store& store = made(builder, run);
  return held_long(store, 0, store.steps()[2]).stretches;
}

/// FSDP2's groups use all of their parameters for as long as they run. Elsewhere a module without a span did
/// not run, and used nothing.
TEST(HeldAfterUse, AGroupUsesWhatItsModulesHave) {
  HeldRun grouped{.framework = "FSDP2", .reasons = {KeepReason::reshard_off}, .nested = true};
  EXPECT_TRUE(advises(held(grouped), "reshard_after_forward=True"));
  EXPECT_FALSE(held({.reasons = {KeepReason::reshard_off}, .nested = true}));
  const std::vector<HeldStretch> without = stretches_of(grouped);
  grouped.inner_spans = true;
  const std::vector<HeldStretch> with_spans = stretches_of(grouped);
  ASSERT_EQ(with_spans.size(), without.size());
  for (std::size_t i = 0; i < without.size(); ++i) {
    EXPECT_EQ(with_spans[i].begin_ns, without[i].begin_ns);
    EXPECT_EQ(with_spans[i].end_ns, without[i].end_ns);
  }
}

TEST(HeldAfterUse, TheLiveLimitReleasesWhatAModuleReturnedWhereItIsKeptToIt) {
  const std::string limit = "stage3_max_live_parameters";
  EXPECT_TRUE(advises(held({.reasons = {KeepReason::external}}), limit));
  HeldRun deepspeed{.framework = "DeepSpeed 0.19", .reasons = {KeepReason::external}};
  EXPECT_TRUE(advises(held(deepspeed), "no limit releases them"));
  EXPECT_FALSE(advises(held(deepspeed), limit));
  EXPECT_TRUE(held(deepspeed)->changes.empty());
  HeldRun compatible{
      .config = R"({"zero_optimization": {"stage": 3}, "shardscope": {"compat": {"preset": "deepspeed"}}})",
      .reasons = {KeepReason::external}};
  EXPECT_TRUE(advises(held(compatible), "no limit releases them"));
  // A prefetch stops at it under DeepSpeed too.
  deepspeed.reasons = {KeepReason::already_fetched};
  EXPECT_TRUE(advises(held(deepspeed), limit));
}

/// The model's one parameter is gathered whole whatever the limit says.
TEST(HeldAfterUse, TheLiveLimitIsNotSetBelowTheLargestParameter) {
  const auto found = held({.reasons = {KeepReason::external}});
  ASSERT_TRUE(found);
  ASSERT_EQ(found->options.size(), 1U) << "a quarter and a half are both below it";
  ASSERT_EQ(found->changes.size(), 1U);
  EXPECT_EQ(found->changes[0].value, "1000");
  const auto low =
      held({.config = R"({"zero_optimization": {"stage": 3, "stage3_max_live_parameters": 1000}})",
            .reasons = {KeepReason::external}});
  EXPECT_TRUE(advises(low, "is 1k already; less than 1k,"));
  EXPECT_TRUE(low->changes.empty());
}

TEST(HeldAfterUse, AStepThatWasHeldAtAGateOrWroteACheckpointIsNotRead) {
  for (const bool checkpoint : {false, true}) {
    // For half a millisecond of ten: nothing to report, but for a stop of 300 ms in it.
    const HeldRun run{.pause_ns = 300 * kUnitNs, .checkpoint = checkpoint, .held_ns = kUnitNs / 2};
    EXPECT_FALSE(held(run)) << checkpoint;
    HeldRun longer = run;
    longer.held_ns = 5 * kUnitNs;
    const auto found = held(longer);
    ASSERT_TRUE(found) << checkpoint;
    EXPECT_NE(found->evidence.find("for 5.0 of 10.0 ms"), std::string::npos) << found->evidence;
    EXPECT_NE(found->evidence.find("step 4"), std::string::npos) << found->evidence;
  }
}

TEST(HeldAfterUse, WhatIsNotReshardedIsSetAsItsFrameworkHasIt) {
  const Reasons off{KeepReason::reshard_off};
  EXPECT_TRUE(
      advises(held({.framework = "FSDP2 (PyTorch 2.8)", .reasons = off}), "reshard_after_forward=True"));
  const auto fsdp1 = held({.framework = "FSDP1 (PyTorch 2.8)", .reasons = off});
  EXPECT_TRUE(advises(fsdp1, "FULL_SHARD"));
  EXPECT_FALSE(advises(fsdp1, "fully_shard"));
}

TEST(HeldAfterUse, SaysOfAReasonWhatIsKnown) {
  EXPECT_TRUE(advises(held({}), "No reason for it was recorded"));
  EXPECT_TRUE(advises(held({.reasons = {KeepReason::in_use}}), "Another module that was running"));
  EXPECT_TRUE(advises(held({.reasons = {KeepReason::in_use, KeepReason::reused_soon}}),
                      "which of them belongs to this time is not known"));
}

TEST(HeldAfterUse, AReasonBelongsToWhatWasKeptForANextUse) {
  HeldRun run{.reasons = {KeepReason::reused_soon}};
  // Until the next use, and from its end to the release, which has no length.
  auto stretches = stretches_of(run);
  ASSERT_EQ(stretches.size(), 1U);
  EXPECT_TRUE(stretches[0].used_again);
  EXPECT_EQ(stretches[0].reason, KeepReason::reused_soon);
  run.late_ns = kUnitNs;
  stretches = stretches_of(run);
  ASSERT_EQ(stretches.size(), 2U);
  EXPECT_EQ(stretches[0].reason, KeepReason::reused_soon);
  EXPECT_FALSE(stretches[1].used_again);
  EXPECT_FALSE(stretches[1].reason) << "the one that was recorded is the other's";
  EXPECT_FALSE(stretches[1].unassigned);
  run.used_again = false;
  stretches = stretches_of(run);
  ASSERT_EQ(stretches.size(), 1U);
  EXPECT_FALSE(stretches[0].used_again);
  EXPECT_EQ(stretches[0].reason, KeepReason::reused_soon) << "no next use accounts for it";
  run.reasons = {KeepReason::reused_soon, KeepReason::external};
  stretches = stretches_of(run);
  ASSERT_EQ(stretches.size(), 1U);
  EXPECT_FALSE(stretches[0].reason);
  EXPECT_TRUE(stretches[0].unassigned);
}

/// The parameter is 4000 bytes, and that much of what is gathered at the peak is held after a use.
TEST(HeldAfterUse, ExplainsGatheredParametersThatAreMostlyItsOwn) {
  for (const std::int64_t gathered : {7900, 8100}) {
    const auto findings = findings_of({.gathered_bytes = gathered, .other_bytes = 100});
    const auto found = with("held_after_use", findings);
    ASSERT_TRUE(found) << gathered;
    EXPECT_EQ(found->cost_bytes, 4000);
    const auto peak = with("gathered_peak", findings);
    EXPECT_EQ(peak.has_value(), gathered > 8000) << gathered;
    EXPECT_EQ(found->explains.empty(), gathered > 8000) << gathered;
    if (peak) {
      EXPECT_EQ(peak->cost_bytes, gathered);
    }
  }
}

}  // namespace
}  // namespace shardscope::analysis
