// Every reason of a decision, word for word: with the recorded limits, and without them.
#include "app/analysis/decision_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "app/analysis/quantity_text.h"
#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;
using plan::FlushReason;
using plan::KeepReason;
using plan::PrefetchStop;

DecisionLimits all_limits() {
  return {.gathers_one_by_one = false,
          .prefetch_bucket_elems = 50'000'000,
          .max_live_elems = 60'000,
          .max_reuse_elems = 1'000'000'000,
          .param_persistence_elems = 100'000,
          .reduce_bucket_elems = 20'000,
          .select_interval_steps = 100,
          .update_interval_steps = 1,
          .feedback_reset_steps = 1024};
}

TEST(Figures, HaveTheirSpreadWhereThereIsOne) {
  EXPECT_EQ(with_spread(std::nullopt, 1), "—");
  EXPECT_EQ(with_spread(12.345, 0), "12.35");
  EXPECT_EQ(with_spread(12.345, 0.25), "12.35 ± 0.25");
  EXPECT_EQ(with_spread(1'234'567, 89), "1\u202f234\u202f567 ± 89");
}

TEST(ElementsText, HasThreeDigitsAndNoTrailingZeros) {
  EXPECT_EQ(elements_text(0), "0");
  EXPECT_EQ(elements_text(999), "999");
  EXPECT_EQ(elements_text(1000), "1k");
  EXPECT_EQ(elements_text(16'384), "16.4k");
  EXPECT_EQ(elements_text(48'123'456), "48.1M");
  EXPECT_EQ(elements_text(50'000'000), "50M");
  EXPECT_EQ(elements_text(100'000'000), "100M") << "zeros before the point are kept";
  EXPECT_EQ(elements_text(999'600), "1M");
  EXPECT_EQ(elements_text(-1'234'567), "-1.23M");
}

TEST(PrefetchStopText, SaysWhatStoppedAndHowFar) {
  const DecisionLimits limits = all_limits();
  EXPECT_EQ(explain(PrefetchStop::disabled, {}, limits),
            "prefetching is off: stage3_prefetch_bucket_size is 0");
  EXPECT_EQ(explain(PrefetchStop::no_trace, {}, limits),
            "nothing prefetched: no complete trace says yet which parameters come next");
  EXPECT_EQ(
      explain(PrefetchStop::end_of_trace, {}, limits),
      "prefetching stopped at the end of the trace: every parameter of this iteration has been fetched");
  EXPECT_EQ(explain(PrefetchStop::bucket_full, 51'234'567, limits),
            "prefetching stopped at stage3_prefetch_bucket_size: 51.2M of 50M elements");
  EXPECT_EQ(explain(PrefetchStop::live_limit, 59'200, limits),
            "prefetching stopped at stage3_max_live_parameters: 59.2k of 60k elements are live");
  EXPECT_EQ(explain(PrefetchStop::offloaded, {}, limits),
            "prefetching stopped at a shard that is still on NVMe");
  EXPECT_EQ(explain(PrefetchStop::returned, {}, limits),
            "nothing prefetched: a module returned a parameter, which fetches no other");
  EXPECT_EQ(explain(PrefetchStop::live_limit, {}, limits),
            "prefetching stopped at stage3_max_live_parameters of 60k elements");
  EXPECT_EQ(explain(PrefetchStop::bucket_full, 51'234'567, {}),
            "prefetching stopped at stage3_prefetch_bucket_size: 51.2M elements");
  EXPECT_EQ(explain(static_cast<PrefetchStop>(200), {}, limits), "unknown reason");
}

TEST(PrefetchStopText, NamesTheSettingThatMakesTheBucketOneElement) {
  DecisionLimits limits = all_limits();
  limits.gathers_one_by_one = true;
  EXPECT_EQ(explain(PrefetchStop::bucket_full, 768, limits),
            "prefetching stopped after one parameter: stage3_allgather_sequential");
}

TEST(KeepReasonText, SaysWhyAParameterStays) {
  const DecisionLimits limits = all_limits();
  EXPECT_EQ(explain(KeepReason::persistent, 768, limits),
            "persistent: 768 elements are within stage3_param_persistence_threshold of 100k elements");
  EXPECT_EQ(explain(KeepReason::persistent, 1, {}),
            "persistent: 1 element is within stage3_param_persistence_threshold");
  EXPECT_EQ(explain(KeepReason::reused_soon, 768, limits),
            "needed again within stage3_max_reuse_distance of 1G elements");
  EXPECT_EQ(explain(KeepReason::already_fetched, 768, limits),
            "a prefetch already counts on it for a later module");
  EXPECT_EQ(explain(KeepReason::in_use, 768, limits), "another running module uses it");
  EXPECT_EQ(explain(KeepReason::external, 768, limits),
            "its module returned it: it is an external parameter of the module around it");
  EXPECT_EQ(explain(KeepReason::not_available, 768, limits), "it was not available: nothing to release");
  EXPECT_EQ(explain(KeepReason::reshard_off, 768, limits),
            "its group is not resharded after the forward pass");
}

TEST(FlushReasonText, SaysWhyABucketIsReducedNow) {
  const DecisionLimits limits = all_limits();
  EXPECT_EQ(
      explain(FlushReason::full, 17'000, "fc1.weight (16.4k elements)", limits),
      "fc1.weight (16.4k elements) does not fit reduce_bucket_size of 20k elements beside the 17k in the "
      "bucket");
  EXPECT_EQ(explain(FlushReason::full, 17'000, "", {}),
            "the next gradient does not fit reduce_bucket_size beside the 17k in the bucket");
  EXPECT_EQ(explain(FlushReason::extra_large, 38'000'000, "", limits),
            "one gradient of 38M elements is larger than reduce_bucket_size of 20k elements");
  EXPECT_EQ(explain(FlushReason::epilogue, 1, "", limits), "backward has ended with 1 element in the bucket");
  EXPECT_EQ(explain(FlushReason::boundary, 17'000, "", limits),
            "gradient accumulation has ended with 17k elements to reduce");
  EXPECT_EQ(explain(FlushReason::group_changed, 17'000, "fc1.weight", limits),
            "fc1.weight is of another group than the 17k elements in the bucket");
  EXPECT_EQ(explain(FlushReason::group_complete, 17'000, "", limits),
            "every gradient of its group is there: 17k elements");
}

TEST(UpdateText, SaysWhyColumnsAreChosenAndSumsApplied) {
  const DecisionLimits limits = all_limits();
  EXPECT_EQ(explain(plan::SelectionCause::not_recorded, limits), "");
  EXPECT_EQ(explain(plan::SelectionCause::first, limits), "the warm-up is over");
  EXPECT_EQ(explain(plan::SelectionCause::interval, limits), "select_interval of 100 steps is over");
  EXPECT_EQ(explain(plan::SelectionCause::interval, {}), "select_interval is over");
  EXPECT_EQ(explain(plan::UpdateCause::warm_up, limits), "warm-up: nothing is chosen yet");
  EXPECT_EQ(explain(plan::UpdateCause::interval, limits), "update_interval of 1 step is over");
  EXPECT_EQ(explain(plan::UpdateCause::votes, limits), "enough matrices voted for it in the step before");
  EXPECT_EQ(explain(plan::UpdateCause::before_selection, limits), "the next step chooses columns anew");
}

TEST(DecisionLimits, AreThoseOfTheRecordedConfiguration) {
  ev::RunTables tables;
  tables.stage = 3;
  tables.config_json =
      R"({"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 4000, "stage3_max_live_parameters": 5000,
          "stage3_max_reuse_distance": 6000, "stage3_param_persistence_threshold": 70, "reduce_bucket_size": 8000,
          "zenflow": {"select_strategy": "step", "select_interval": 9, "update_interval": "auto"}}})";
  const DecisionLimits limits = limits_of(tables);
  EXPECT_FALSE(limits.gathers_one_by_one);
  EXPECT_EQ(limits.prefetch_bucket_elems, 4000);
  EXPECT_EQ(limits.max_live_elems, 5000);
  EXPECT_EQ(limits.max_reuse_elems, 6000);
  EXPECT_EQ(limits.param_persistence_elems, 70);
  EXPECT_EQ(limits.reduce_bucket_elems, 8000);
  EXPECT_EQ(limits.select_interval_steps, 9);
  EXPECT_FALSE(limits.update_interval_steps) << "auto is no number";
  EXPECT_FALSE(limits.feedback_reset_steps);
  tables.config_json = R"({"train_batch_size": 8})";
  EXPECT_FALSE(limits_of(tables).prefetch_bucket_elems)
      << "a program without ZeRO settings has no such limit";
  tables.config_json = "no JSON";
  EXPECT_FALSE(limits_of(tables).reduce_bucket_elems);
}

TEST(ReasonOf, TakesNumbersFromTheEventAndNamesFromTheTables) {
  RunBuilder run(1);
  const store::Store& store = run.build();
  const DecisionLimits limits = all_limits();
  const auto reason = [&](EventKind kind, std::uint8_t code, std::uint32_t a, std::uint32_t b,
                          std::int64_t v0, std::int64_t v1) {
    return reason_of(store, {0, kind, StreamId::host, code, a, b, ev::kNoId, v0, v1}, limits);
  };
  const auto code = [](auto value) { return static_cast<std::uint8_t>(value); };
  EXPECT_EQ(reason(EventKind::fetch_decision, code(PrefetchStop::bucket_full), 1, 7, 48'100'000, 3),
            "prefetching stopped at stage3_prefetch_bucket_size: 48.1M of 50M elements");
  EXPECT_EQ(reason(EventKind::fetch_decision, code(PrefetchStop::live_limit), 1, 7, 3, 59'200),
            "prefetching stopped at stage3_max_live_parameters: 59.2k of 60k elements are live");
  EXPECT_EQ(reason(EventKind::fetch_decision, code(PrefetchStop::returned), 1, 7, 0, 0),
            "an external parameter of layer, which keeps it while it runs");
  EXPECT_EQ(reason(EventKind::release_kept, code(KeepReason::persistent), 1, 0, 1000, 0),
            "persistent: 1k elements are within stage3_param_persistence_threshold of 100k elements");
  EXPECT_EQ(
      reason(EventKind::bucket_flush, code(FlushReason::full), 3, 0, 19'500, 0),
      "layer.weight (1k elements) does not fit reduce_bucket_size of 20k elements beside the 19.5k in the "
      "bucket");
  EXPECT_EQ(
      reason(EventKind::bucket_flush, code(FlushReason::full), 3, 99, 19'500, 0),
      "the next gradient does not fit reduce_bucket_size of 20k elements beside the 19.5k in the bucket");
  EXPECT_EQ(reason(EventKind::in_flight_limit, 0, 5, ev::kNoId, 5, 4),
            "5 gathers are in flight, the limit is 4");
  EXPECT_EQ(reason(EventKind::in_flight_limit, 1, 5, ev::kNoId, 3, 2),
            "3 reductions are in flight, the limit is 2");
  EXPECT_EQ(reason(EventKind::trace_invalidated, 0, 1, 0, 40, 0),
            "expected layer but ran hand-made (trace of 40 modules)");
  EXPECT_EQ(reason(EventKind::feedback_reset, 0, 9, 2, 500, 0), "reset_T of 1024 steps is over");
  EXPECT_EQ(reason(EventKind::loss, 0, 0, 0, 0, 0), "") << "no decision";
}

/// Gathers that are exposed although the link was free before: what stopped the prefetch is what to change.
TEST(ShortPrefetchFinding, NamesTheLimitOfTheRunAndNothingWhereItIsNot) {
  for (const std::int64_t limit : {600, 60000}) {
    RunBuilder run(2);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      for (std::uint32_t step = 0; step < 3; ++step) {
        const std::int64_t at = step * 1'000'000;
        run.span(rank, at, at + 990'000, EventKind::step_begin, StreamId::host, step);
        run.span(rank, at, at + 500'000, EventKind::module_begin, StreamId::compute, 0, step);
        run.span(rank, at + 500'000, at + 700'000, EventKind::collective_begin, StreamId::gather, step, 0,
                 kGatherOp, 100, 400);
        run.span(rank, at + 700'000, at + 990'000, EventKind::module_begin, StreamId::compute, 1, step);
        run.instant(
            rank, at + 10, EventKind::fetch_decision, StreamId::host, 1, 2, 3,
            static_cast<std::uint8_t>(step < 2 ? PrefetchStop::live_limit : PrefetchStop::bucket_full), 10,
            20);
      }
    }
    store::Store& store = run.build();
    ev::RunTables tables = store.tables();
    tables.config_json =
        R"({"zero_optimization": {"stage3_prefetch_bucket_size": 100, "stage3_max_live_parameters": )" +
        std::to_string(limit) + "}}";
    store.set_tables(0, tables);
    const auto findings = find(store, summarize(store));
    const auto found = std::ranges::find(findings, "short_prefetch", &Finding::id);
    // A limit of more than the model holds nothing back.
    ASSERT_EQ(found != findings.end(), limit == 600);
    if (limit != 600) continue;
    EXPECT_NE(
        found->evidence.find(
            "At 4 module boundaries prefetching stopped at stage3_max_live_parameters of 600 elements."),
        std::string::npos)
        << found->evidence;
    ASSERT_EQ(found->changes.size(), 1U);
    EXPECT_EQ(found->changes[0].key, "zero_optimization.stage3_max_live_parameters");
    EXPECT_EQ(found->changes[0].value, "2000");  // two modules of 1000 and the bucket, rounded
  }
}

/// The same gathers, and what stops them is the bucket, or that prefetching is off.
TEST(ShortPrefetchFinding, NamesTheBucketOrThatPrefetchingIsOff) {
  for (const PrefetchStop stop : {PrefetchStop::bucket_full, PrefetchStop::disabled}) {
    const bool off = stop == PrefetchStop::disabled;
    RunBuilder run(2);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      for (std::uint32_t step = 0; step < 3; ++step) {
        const std::int64_t at = step * 1'000'000;
        run.span(rank, at, at + 990'000, EventKind::step_begin, StreamId::host, step);
        run.span(rank, at, at + 500'000, EventKind::module_begin, StreamId::compute, 0, step);
        run.span(rank, at + 500'000, at + 700'000, EventKind::collective_begin, StreamId::gather, step, 0,
                 kGatherOp, 100, 400);
        run.span(rank, at + 700'000, at + 990'000, EventKind::module_begin, StreamId::compute, 1, step);
        run.instant(rank, at + 10, EventKind::fetch_decision, StreamId::host, 1, 2, 3,
                    static_cast<std::uint8_t>(stop), 10, 20);
      }
    }
    store::Store& store = run.build();
    ev::RunTables tables = store.tables();
    tables.config_json =
        std::string(R"({"zero_optimization": {"stage3_prefetch_bucket_size": )") + (off ? "0}}" : "100}}");
    store.set_tables(0, tables);
    const auto findings = find(store, summarize(store));
    const auto found = std::ranges::find(findings, "short_prefetch", &Finding::id);
    ASSERT_NE(found, findings.end());
    EXPECT_NE(found->evidence.find(
                  off ? "At 6 module boundaries prefetching is off: stage3_prefetch_bucket_size is 0."
                      : "At 6 module boundaries prefetching stopped at stage3_prefetch_bucket_size of 100 "
                        "elements."),
              std::string::npos)
        << found->evidence;
    ASSERT_EQ(found->changes.size(), 1U);
    EXPECT_EQ(found->changes[0].key, "zero_optimization.stage3_prefetch_bucket_size");
  }
}

}  // namespace
}  // namespace shardscope::analysis
