// The first parameter whose gradient was not finite, over the ranks of a step, and what findings say of it.
#include "app/analysis/not_finite.h"

#include <gtest/gtest.h>

#include <bit>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/summary.h"
#include "app/store/block.h"
#include "app/store/recorded_run.h"
#include "instrumentation/capability.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using ev::EventKind;
using ev::StreamId;
using test::RunBuilder;

constexpr std::uint8_t kInfinite = 1, kNan = 2;

/// `ranks` ranks with 3 parameters, of which only the last two are of a module with a path.
struct NotFiniteRun {
  explicit NotFiniteRun(std::uint32_t world, bool recorded = true) : ranks(world), run(world) {
    run.change_tables([&](ev::RunTables& tables) {
      tables.modules = {{}, {}};
      tables.modules[1].id = 1;
      tables.modules[1].path = "mlp.out";
      tables.params.clear();
      for (const char* name : {"embed", "mlp.out.weight", "mlp.out.bias"}) {
        ev::ParamInfo param;
        param.id = static_cast<std::uint32_t>(tables.params.size());
        param.name = name;
        if (param.id > 0) param.modules = {1};
        tables.params.push_back(param);
      }
      tables.config_json = R"({"fp16": {"enabled": true, "loss_scale": 0}})";
    });
    if (!recorded) run.without(ev::Capability::not_finite_gradients, "the device is not waited for");
  }
  /// A step that takes from 1000 * step to 1000 * step + 900 on each rank.
  void step(std::uint32_t number, bool skipped, double scale = 65536) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const std::int64_t at = number * 1000;
      run.instant(rank, at, EventKind::step_begin, StreamId::host, number);
      run.instant(rank, at + 1, EventKind::loss_scale, StreamId::host, number, ev::kNoId, ev::kNoId, 0,
                  std::bit_cast<std::int64_t>(scale));
      run.instant(rank, at + 900, EventKind::step_end, StreamId::host, number, ev::kNoId, ev::kNoId, skipped);
    }
  }
  void not_finite(std::uint32_t rank, std::uint32_t step, std::uint32_t param, std::uint32_t position,
                  std::uint8_t what, std::int64_t elems, std::int64_t others) {
    run.instant(rank, step * 1000 + 800, EventKind::gradient_not_finite, StreamId::host, step, param,
                position, what, elems, others);
  }
  [[nodiscard]] Finding finding(const std::string& id) {
    const store::Store& store = run.build();
    for (const Finding& one : find(store, summarize(store))) {
      if (one.id == id) return one;
    }
    return {};
  }
  std::uint32_t ranks;
  RunBuilder run;
};

bool ends_with(const std::string& text, const std::string& end) { return text.ends_with(end); }

TEST(FirstNotFinite, IsTheLeastPositionOverTheRanks) {
  NotFiniteRun made(3);
  made.step(0, true);
  made.not_finite(0, 0, 0, 2, kNan, 5, 0);
  made.not_finite(1, 0, 1, 1, kInfinite, 7, 1);
  made.not_finite(2, 0, 1, 1, kInfinite | kNan, 9, 0);
  const std::vector<FirstNotFinite> found = first_not_finite(made.run.build());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rank, 1U);
  EXPECT_EQ(found[0].at_ns, 800);
  EXPECT_EQ(found[0].fields.param, 1U);
  EXPECT_EQ(found[0].fields.elems, 7);
  EXPECT_EQ(found[0].more_ranks, 1U);
  EXPECT_EQ(found[0].other_params, 1);
  EXPECT_TRUE(found[0].ordered());
}

TEST(FirstNotFinite, WithoutAnOrderIsTheLastParameter) {
  NotFiniteRun made(3);
  made.step(0, true);
  made.not_finite(0, 0, 0, ev::kNoId, kInfinite, 0, -1);
  made.not_finite(1, 0, 2, ev::kNoId, 0, 0, -1);
  const store::Store& store = made.run.build();
  const std::vector<FirstNotFinite> found = first_not_finite(store);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].other_params, -1);
  EXPECT_EQ(
      text_of(store, found[0]),
      "In step 0 the first gradient that was not finite, taken for the one that is last in the model, was "
      "that of mlp.out.bias (module mlp.out) on rank 1: at least one element not finite in its "
      "partition.");
}

// That there is no further parameter takes what every rank of the step has found.
TEST(FirstNotFinite, SaysNothingOfOthersWhereAnAnswerIsMissing) {
  /// In step 1 of three, of a run of `world` ranks of which three are recorded.
  const auto others = [](std::uint32_t world, std::uint64_t dropped, std::int64_t counted, bool ended) {
    NotFiniteRun made(3);
    made.run.change_tables([&](ev::RunTables& tables) { tables.world = world; });
    made.step(0, false);
    made.run.build();
    made.not_finite(0, 1, 1, 1, kInfinite, 5, 0);
    made.not_finite(1, 1, 1, 1, kNan, 2, counted);
    made.run.drop(2, dropped);
    if (ended) made.step(1, true);
    const store::Store& store = made.run.build();
    const std::vector<FirstNotFinite> found = first_not_finite(store);
    if (found.size() != 1) return std::int64_t{-2};
    const bool says_none = text_of(store, found[0]).find("no other parameter was") != std::string::npos;
    EXPECT_EQ(says_none, found[0].other_params == 0);
    return found[0].other_params;
  };
  EXPECT_EQ(others(3, 0, 0, true), 0);
  EXPECT_EQ(others(4, 0, 0, true), -1) << "of a fourth rank nothing is recorded";
  EXPECT_EQ(others(3, 10, 0, true), -1) << "rank 2 dropped events";
  EXPECT_EQ(others(3, 0, -1, true), -1) << "rank 1 did not count";
  EXPECT_EQ(others(3, 0, 0, false), -1) << "the step has not ended";
  EXPECT_EQ(others(4, 10, 2, true), 2) << "two were found whatever else there was";
}

TEST(Findings, AnOverflowNamesItsFirstParameter) {
  NotFiniteRun made(3);
  for (std::uint32_t step = 0; step < 8; ++step) made.step(step, step == 2 || step == 5 || step == 6);
  made.not_finite(0, 2, 0, 2, kNan, 5, 0);
  made.not_finite(2, 5, 1, 1, kInfinite, 7, 1);
  made.not_finite(1, 6, 1, 1, kInfinite, 1, 0);
  made.not_finite(0, 7, 2, 0, kInfinite, 3, 0);  // not skipped: its gradients were used
  const Finding finding = made.finding("overflow");
  EXPECT_TRUE(ends_with(finding.evidence,
                        " In step 5 the first gradient that was not finite, in the order of backward, was "
                        "that of mlp.out.weight "
                        "(module mlp.out) on rank 2: 7 elements infinite in its partition; at least 1 "
                        "further parameter was not "
                        "finite. It was first in 2 of 3 steps in which one is named."))
      << finding.evidence;
  EXPECT_EQ(finding.rank, 2U);
  EXPECT_EQ(finding.at_ns, 5800);
  EXPECT_NE(findings_json({finding}, false).find("mlp.out.weight (module mlp.out) on rank 2"),
            std::string::npos);
}

TEST(Findings, ALossScaleAtItsLeastNamesTheFirstParameterOfItsSteps) {
  NotFiniteRun made(2);
  for (std::uint32_t step = 0; step < 4; ++step) made.step(step, step != 1, step == 0 ? 2 : 1);
  made.not_finite(0, 0, 2, 0, kInfinite, 3, 0);  // at scale 2, not the least
  made.not_finite(1, 3, 0, 2, kNan, 1, 0);
  const Finding finding = made.finding("loss_scale_floor");
  EXPECT_TRUE(
      ends_with(finding.evidence,
                " In step 3 the first gradient that was not finite, in the order of backward, was that "
                "of embed on rank 1: 1 element NaN in its partition; no other parameter was."))
      << finding.evidence;
}

// bf16 or fp32: such a step is applied, and what follows is of it.
TEST(Findings, AStepThatIsAppliedAlthoughNotFiniteIsDivergence) {
  NotFiniteRun made(2);
  for (std::uint32_t step = 0; step < 4; ++step) made.step(step, step == 1);
  made.not_finite(0, 1, 0, 2, kInfinite, 2, 0);  // skipped
  made.not_finite(1, 2, 1, 1, kNan, 4, 0);
  const Finding finding = made.finding("divergence");
  EXPECT_EQ(finding.evidence,
            "The gradients of step 2 were not finite, and it was not skipped. In step 2 the first gradient "
            "that was not finite, in the order of backward, was that of mlp.out.weight (module mlp.out) on "
            "rank 1: 4 elements NaN in its partition; no other parameter was.");
  EXPECT_EQ(finding.rank, 1U);
  EXPECT_EQ(finding.at_ns, 2800);
  EXPECT_NEAR(finding.cost_once_ms.value_or(0), 0.0018, 1e-9) << "steps 2 and 3, of 900 ns";
}

TEST(Findings, AStepThatIsSkippedIsNoDivergence) {
  NotFiniteRun made(2);
  for (std::uint32_t step = 0; step < 4; ++step) made.step(step, step == 1);
  made.not_finite(0, 1, 0, 2, kInfinite, 2, 0);
  EXPECT_EQ(made.finding("divergence").title, "");
}

TEST(Findings, SayWhyNoParameterIsNamed) {
  NotFiniteRun made(1, false);
  made.step(0, true);
  EXPECT_TRUE(ends_with(made.finding("overflow").evidence,
                        " Which parameter was first is not known: the device is not waited for."));
}

TEST(Findings, AHealthyRunNamesNoParameter) {
  NotFiniteRun made(2);
  for (std::uint32_t step = 0; step < 4; ++step) made.step(step, false);
  EXPECT_TRUE(first_not_finite(made.run.build()).empty());
  EXPECT_EQ(made.finding("overflow").title, "");
}

TEST(FirstNotFinite, TheSummaryHasHowManyAndTheFirst) {
  NotFiniteRun made(2);
  made.step(0, false);
  made.step(1, true);
  made.step(2, true);
  made.not_finite(1, 1, 2, 0, kNan, 4, 0);
  made.not_finite(0, 2, 1, 1, kInfinite, 7, 0);
  made.not_finite(1, 2, 1, 1, kInfinite, 7, 0);
  const nlohmann::json json =
      nlohmann::json::parse(to_json(summarize(made.run.build())))["not_finite_gradients"];
  EXPECT_EQ(json["events"], 3);
  EXPECT_EQ(json["first"]["step"], 1);
  EXPECT_EQ(json["first"]["rank"], 1);
  EXPECT_EQ(json["first"]["param"], "mlp.out.bias");
  EXPECT_NE(json["first"]["text"].get<std::string>().find("4 elements NaN"), std::string::npos);
  NotFiniteRun none(1), unknown(1, false);
  none.step(0, false);
  unknown.step(0, true);
  const auto of = [](NotFiniteRun& run) {
    return nlohmann::json::parse(to_json(summarize(run.run.build())))["not_finite_gradients"];
  };
  EXPECT_EQ(of(none)["events"], 0);
  EXPECT_TRUE(of(none)["first"].is_null());
  EXPECT_TRUE(of(unknown).is_null()) << "missing, and not none";
}

/// Of a stretch that was deleted a rank has its first alone: of a later step it is not known which rank's was
/// first.
TEST(FirstNotFinite, OfDeletedStepsOnlyTheFirstOfAllIsNamed) {
  store::Store store;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    std::uint64_t sequence = 0;
    for (std::uint32_t step = rank; step < 2; ++step) {
      store::Block sum;
      sum.rank = rank;
      sum.sequence = sequence++;
      sum.parts = 1;
      sum.begin_ns = step * 1000;
      sum.end_ns = step * 1000 + 900;
      sum.counts = {{.kind = EventKind::gradient_not_finite, .code = 0, .count = 1}};
      ev::Event event;
      event.kind = EventKind::gradient_not_finite;
      event.ticks = static_cast<std::uint64_t>(sum.begin_ns + 1);
      event.a = step;
      event.b = 7;
      store::RecordedRun run(store);
      if (rank == 0 && step == 0) {
        store::StepRow first, second;
        first.end_ns = 900;
        second.step = 1;
        second.begin_ns = 1000;
        second.end_ns = 1900;
        run.restore_steps({first, second}, 1, 0);
      }
      run.append_sum(std::move(sum), 10, {&event, 1}, true);
    }
    store::RankRow row;
    row.rank = rank;
    store.set_rank(row);
  }
  const std::vector<FirstNotFinite> found = first_not_finite(store);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].fields.step, 0U);
}

}  // namespace
}  // namespace shardscope::analysis
