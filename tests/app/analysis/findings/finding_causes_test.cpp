// Findings name causes before symptoms, and advise only what this run has: of stores made by hand, whose
// times are in units of 1 ms.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "app/analysis/summary.h"
#include "app/store/silences.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

constexpr std::uint32_t kSteps = 12;

/// What a rank does in a step, in milliseconds. All ranks gather behind the backward.
struct Shape {
  std::int64_t compute = 80, transfer = 10, data = 0;
};

/// Steps of `world` ranks; each computes, then all meet in a collective as late as the last one comes.
class MadeRun {
 public:
  explicit MadeRun(std::uint32_t world, std::int32_t stage = 2, const std::string& framework = {})
      : world_(world), builder_(world, stage, framework) {}
  void step(const std::vector<Shape>& shapes, StreamId lane = StreamId::reduce, bool skipped = false) {
    std::int64_t come = 0, end = 0;
    for (const Shape& shape : shapes) come = std::max(come, at_ + (shape.data + shape.compute) * kMs);
    for (std::uint32_t rank = 0; rank < world_; ++rank) {
      const Shape& shape = shapes[rank];
      const std::int64_t compute = at_ + shape.data * kMs, done = compute + shape.compute * kMs;
      if (shape.data > 0)
        builder_.span(rank, at_, compute, EventKind::data_wait_begin, StreamId::compute, 0, step_);
      builder_.span(rank, compute, done, EventKind::module_begin, StreamId::compute, 1, step_);
      end = come + shape.transfer * kMs;
      builder_.instant(rank, done, EventKind::collective_begin, lane, step_, 0, ev::kNoId, kGatherOp, 1000,
                       4000);
      if (world_ > 1)
        builder_.instant(rank, come, EventKind::collective_entered, lane, step_, 0, ev::kNoId, kGatherOp);
      builder_.instant(rank, end, EventKind::collective_end, lane, step_, 0, ev::kNoId, kGatherOp, 1000,
                       4000);
      builder_.span(rank, at_, end + kMs, EventKind::step_begin, StreamId::host, step_, ev::kNoId,
                    static_cast<std::uint8_t>(skipped));
    }
    ++step_;
    at_ = end + 2 * kMs;
  }
  store::Store& build(const std::string& config = {}) {
    store::Store& store = builder_.build();
    if (!config.empty()) {
      ev::RunTables tables = store.tables();
      tables.config_json = config;
      store.set_tables(0, tables);
    }
    return store;
  }
  RunBuilder& builder() { return builder_; }
  [[nodiscard]] std::int64_t now() const { return at_; }

 private:
  std::uint32_t world_, step_ = 0;
  std::int64_t at_ = 0;
  RunBuilder builder_;
};

std::vector<Finding> findings_of(const store::Store& store) { return find(store, summarize(store)); }
const Finding* with_id(const std::vector<Finding>& findings, const std::string& id) {
  const auto found = std::ranges::find(findings, id, &Finding::id);
  return found == findings.end() ? nullptr : &*found;
}
std::string ids(const std::vector<Finding>& findings) {
  std::string out;
  for (const Finding& one : findings) out += one.id + " ";
  return out;
}

TEST(FindingCauses, AHealthyRunHasNoWarning) {
  for (const std::uint32_t world : {1U, 2U, 4U}) {
    MadeRun run(world);
    for (std::uint32_t step = 0; step < kSteps; ++step) run.step(std::vector<Shape>(world, {90, 1, 0}));
    const auto findings = findings_of(run.build());
    EXPECT_TRUE(std::ranges::none_of(findings, [](const Finding& f) {
      return f.severity >= ev::Severity::warning;
    })) << ids(findings);
  }
}

/// The median of all ranks includes the slow one: 1.4 times at 2 ranks and 1.15 times at 4 must be found.
TEST(FindingCauses, AStragglerIsComparedWithTheOthers) {
  for (const auto& [world, slow] : {std::pair(2U, 140), std::pair(4U, 115)}) {
    MadeRun run(world);
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      std::vector<Shape> shapes(world, {100, 5, 0});
      shapes[1].compute = slow;
      run.step(shapes);
    }
    const auto findings = findings_of(run.build());
    const Finding* straggler = with_id(findings, "straggler");
    ASSERT_NE(straggler, nullptr) << world << ": " << ids(findings);
    EXPECT_EQ(straggler->rank, 1U);
    EXPECT_EQ(straggler->severity, ev::Severity::warning);
    EXPECT_NEAR(*straggler->cost_ms, slow - 100, 0.5);
    EXPECT_TRUE(straggler->changes.empty());  // no setting makes it faster
    EXPECT_EQ(&findings.front(), straggler);
    // Its victims' exposed communication follows from it.
    EXPECT_EQ(with_id(findings, "exposed_communication"), nullptr) << ids(findings);
  }
}

// The waiting for it is the straggler's cost; what moves beside it is a finding of its own.
TEST(FindingCauses, ExposedTransfersBesideAStragglerAreCountedWithoutTheWaiting) {
  MadeRun run(2);
  for (std::uint32_t step = 0; step < kSteps; ++step) run.step({{100, 15, 0}, {140, 15, 0}});
  const auto findings = findings_of(run.build());
  const Finding* straggler = with_id(findings, "straggler");
  const Finding* exposed = with_id(findings, "exposed_communication");
  ASSERT_NE(straggler, nullptr) << ids(findings);
  ASSERT_NE(exposed, nullptr) << ids(findings);
  EXPECT_NEAR(*straggler->cost_ms, 40, 1);
  EXPECT_NEAR(*exposed->cost_ms, 15, 1);
  EXPECT_NE(exposed->title.find("besides waiting for the straggler"), std::string::npos) << exposed->title;
  EXPECT_NE(exposed->evidence.find("(finding straggler) and not counted here"), std::string::npos);
  EXPECT_EQ(&findings.front(), straggler);
}

// It computes longer because it has more to compute: no processor is to blame.
TEST(FindingCauses, AStragglerWithLongerMicroBatchesIsToldSo) {
  for (const std::int64_t more : {40, 4}) {
    MadeRun run(2);
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        run.builder().instant(rank, run.now() + kMs, EventKind::micro_batch, StreamId::host, step, step, 4, 0,
                              rank == 1 ? 90 + more : 90, 10);
      }
      run.step({{100, 5, 0}, {140, 5, 0}});
    }
    const auto findings = findings_of(run.build());
    const Finding* straggler = with_id(findings, "straggler");
    ASSERT_NE(straggler, nullptr) << ids(findings);
    const bool named =
        straggler->evidence.find("Its micro-batches have 40 % more positions") != std::string::npos;
    EXPECT_EQ(named, more == 40) << straggler->evidence;
    EXPECT_EQ(straggler->next_step.rfind("Give ranks micro-batches of like lengths", 0) == 0, more == 40);
  }
}

/// Rank 1 is late by more, in a third of the steps; rank 2 in every one.
TEST(FindingCauses, AStragglerIsFoundBehindARankThatIsLateByChance) {
  MadeRun run(4);
  for (std::uint32_t step = 0; step < kSteps; ++step)
    run.step({{80, 5, 0}, {step % 3 == 2 ? 130 : 80, 5, 0}, {100, 5, 0}, {80, 5, 0}});
  const auto findings = findings_of(run.build());
  const Finding* found = with_id(findings, "straggler");
  ASSERT_NE(found, nullptr) << ids(findings);
  EXPECT_EQ(found->rank, 2U) << found->evidence;
}

TEST(FindingCauses, RanksThatTakeTurnsInComingLastAreNoStragglers) {
  MadeRun run(2);
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    std::vector<Shape> shapes(2, {100, 5, 0});
    shapes[step % 2].compute = 112;
    run.step(shapes);
  }
  EXPECT_EQ(with_id(findings_of(run.build()), "straggler"), nullptr);
}

TEST(FindingCauses, OneStopIsAnEventAndNoLastingCause) {
  for (const std::int64_t stop : {1000, 5000}) {
    MadeRun run(2);
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      std::vector<Shape> shapes(2, {90, 1, 0});
      if (step == 7) shapes[1].compute += stop;
      run.step(shapes);
    }
    const auto findings = findings_of(run.build());
    const Finding* found = with_id(findings, "single_stop");
    ASSERT_NE(found, nullptr) << ids(findings);
    EXPECT_EQ(found->rank, 1U);
    EXPECT_NE(found->title.find("step 7"), std::string::npos) << found->title;
    EXPECT_NEAR(*found->cost_once_ms, static_cast<double>(stop), 1);
    EXPECT_FALSE(found->cost_ms);
    EXPECT_GT(found->at_ns, 0);
    EXPECT_EQ(findings.size(), 1U) << ids(findings);  // not a straggler, nothing exposed
  }
}

/// The silence began before the long step: only the part within the step made it longer.
TEST(FindingCauses, AStopIsSilentForNoLongerThanItsStep) {
  MadeRun run(2);
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    std::vector<Shape> shapes(2, {90, 1, 0});
    if (step == 7) shapes[1].compute += 5000;
    run.step(shapes);
  }
  store::Store& store = run.build();
  store.add_message({.at_ns = 5500 * kMs,
                     .rank = 1,
                     .severity = ev::Severity::warning,
                     .text = store::resumption_message(1, 5.1, store::Resumption::on_this_host),
                     .stands_for = 0});
  const auto findings = findings_of(store);
  const Finding* found = with_id(findings, "single_stop");
  ASSERT_NE(found, nullptr) << ids(findings);
  EXPECT_NE(found->evidence.find("sent nothing for 4.8 s of it"), std::string::npos) << found->evidence;
}

TEST(FindingCauses, DataThatDoesNotComeIsNamedWithItsCost) {
  MadeRun run(2);
  for (std::uint32_t step = 0; step < kSteps; ++step) run.step(std::vector<Shape>(2, {20, 1, 80}));
  const auto findings = findings_of(run.build());
  const Finding* found = with_id(findings, "data_starvation");
  ASSERT_NE(found, nullptr) << ids(findings);
  EXPECT_NEAR(*found->cost_ms, 80, 0.5);
  EXPECT_EQ(found->severity, ev::Severity::warning);
  ASSERT_TRUE(found->gain_ms);
  EXPECT_NEAR(*found->gain_ms, 80, 0.5);
}

/// Without its wait of 60 ms rank 1 is there after 90 ms, when the other rank still computes for 40.
TEST(FindingCauses, WhatDataCostsIsNotAllGained) {
  MadeRun run(2);
  for (std::uint32_t step = 0; step < kSteps; ++step) run.step({{130, 1, 0}, {90, 1, 60}});
  const auto findings = findings_of(run.build());
  const Finding* found = with_id(findings, "data_starvation");
  ASSERT_NE(found, nullptr) << ids(findings);
  EXPECT_NEAR(*found->cost_ms, 60, 0.5);
  ASSERT_TRUE(found->gain_ms);
  EXPECT_NEAR(*found->gain_ms, 20, 0.5);
}

TEST(FindingCauses, ARankWithoutDataIsTheCauseOfTheOthersWaiting) {
  MadeRun run(2);
  for (std::uint32_t step = 0; step < kSteps; ++step) run.step({{90, 1, 0}, {90, 1, 60}});
  const auto findings = findings_of(run.build());
  const Finding* found = with_id(findings, "data_starvation");
  ASSERT_NE(found, nullptr) << ids(findings);
  EXPECT_EQ(found->rank, 1U);
  EXPECT_EQ(with_id(findings, "straggler"), nullptr) << ids(findings);
}

TEST(FindingCauses, OverlapThatIsOffIsTheAdviceAndNothingElse) {
  MadeRun run(2);
  for (std::uint32_t step = 0; step < kSteps; ++step) run.step(std::vector<Shape>(2, {80, 14, 0}));
  const auto findings =
      findings_of(run.build(R"({"zero_optimization": {"stage": 2, "overlap_comm": false}})"));
  const Finding* found = with_id(findings, "overlap_off");
  ASSERT_NE(found, nullptr) << ids(findings);
  ASSERT_EQ(found->changes.size(), 1U);
  EXPECT_EQ(found->changes[0].key, "zero_optimization.overlap_comm");
  EXPECT_EQ(found->changes[0].value, "true");
  EXPECT_NEAR(*found->cost_ms, 14, 0.5);
  for (const Finding& one : findings) {
    EXPECT_EQ(one.next_step.find("stage3_"), std::string::npos) << one.next_step;
    EXPECT_EQ(one.next_step.find("prefetch"), std::string::npos) << one.next_step;
  }
}

TEST(FindingCauses, TheLinkAsTheBoundAdvisesNoBuckets) {
  MadeRun run(2, 3);
  for (std::uint32_t step = 0; step < kSteps; ++step)
    run.step(std::vector<Shape>(2, {40, 150, 0}), StreamId::gather);
  const auto findings = findings_of(run.build(R"({"zero_optimization": {"stage": 3, "overlap_comm": true,
      "stage3_prefetch_bucket_size": 100}})"));
  const Finding* found = with_id(findings, "link_bound");
  ASSERT_NE(found, nullptr) << ids(findings);
  for (const Change& change : found->changes)
    EXPECT_EQ(change.key.find("bucket"), std::string::npos) << change.key;
  EXPECT_EQ(with_id(findings, "short_prefetch"), nullptr);
}

TEST(FindingCauses, ASingleRankIsAdvisedNothingAboutCommunication) {
  MadeRun run(1, 3);
  for (std::uint32_t step = 0; step < kSteps; ++step) run.step({{80, 15, 0}});
  const auto findings = findings_of(run.build());
  for (const Finding& one : findings) EXPECT_TRUE(one.changes.empty()) << one.id;
  EXPECT_EQ(with_id(findings, "exposed_communication"), nullptr);
}

TEST(FindingCauses, ALossThatRunsAwayIsDivergence) {
  const auto of = [](const std::vector<double>& losses) {
    MadeRun run(1);
    std::uint32_t step = 0;
    for (const double loss : losses) {
      run.builder().instant(0, run.now() + 10, EventKind::loss, StreamId::host, step++, 0, ev::kNoId, 0,
                            std::bit_cast<std::int64_t>(loss));
      run.step({{90, 0, 0}});
    }
    return findings_of(
        run.build(R"({"optimizer": {"params": {"lr": 1.0}}, "zero_optimization": {"stage": 2}})"));
  };
  const auto findings = of({5.6, 5.5, 6.1, 40, 1e3, 1e6, 1e9, 2e12, 2.3e14, 2.3e14});
  const Finding* found = with_id(findings, "divergence");
  ASSERT_NE(found, nullptr) << ids(findings);
  EXPECT_EQ(found->severity, ev::Severity::error);
  ASSERT_FALSE(found->changes.empty());
  EXPECT_EQ(found->changes[0].key, "optimizer.params.lr");
  EXPECT_EQ(found->changes[0].value, "0.1");
  // From the step of the least loss on: nine steps of 90 us at the least.
  ASSERT_TRUE(found->cost_once_ms);
  EXPECT_GT(*found->cost_once_ms, 0);
  // From the first update on it is far above where it began, and falls.
  const auto exploded = of({7, 400, 9e9, 2e9, 1e9, 6e8, 2e8, 5e7, 9e6, 8e4});
  const Finding* far = with_id(exploded, "divergence");
  ASSERT_NE(far, nullptr) << ids(exploded);
  EXPECT_NE(far->evidence.find("began at 7, was 9e+09 at the most"), std::string::npos) << far->evidence;
  EXPECT_EQ(with_id(of({7, 400, 9e9, 2e9, 1e9, 6e8, 2e8, 5e7, 90, 65}), "divergence"), nullptr);
  // Neither noise nor a spike that passes is one.
  EXPECT_EQ(with_id(of({5.6, 5.5, 5.7, 5.4, 5.6, 5.5, 5.3, 5.6, 5.5, 5.4}), "divergence"), nullptr);
  EXPECT_EQ(with_id(of({5.6, 5.5, 5.4, 50, 5.3, 5.2, 5.1, 5.0, 4.9, 4.8}), "divergence"), nullptr);
  // A policy's loss begins near 0 and may grow by any factor.
  EXPECT_EQ(with_id(of({0.001, 0.002, 0.004, 0.006, 0.01, 0.012, 0.014, 0.016, 0.018, 0.02}), "divergence"),
            nullptr);
}

TEST(FindingCauses, ALossThatStaysNotFiniteIsDivergence) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                   kInfinite = std::numeric_limits<double>::infinity();
  // `skips`: a step that was skipped. Without a value: a step that recorded no loss.
  const auto of = [](const std::vector<std::optional<double>>& losses,
                     std::optional<std::uint32_t> skips = {}) {
    MadeRun run(1);
    std::uint32_t step = 0;
    for (const std::optional<double> loss : losses) {
      if (loss) {
        run.builder().instant(0, run.now() + 10, EventKind::loss, StreamId::host, step, 0, ev::kNoId, 0,
                              std::bit_cast<std::int64_t>(*loss));
      }
      run.step({{90, 0, 0}}, StreamId::reduce, skips == step);
      ++step;
    }
    return findings_of(run.build());
  };
  for (const double bad : {kNan, kInfinite}) {
    const auto findings = of({5.6, 5.5, 5.4, bad, bad, bad});
    const Finding* found = with_id(findings, "divergence");
    ASSERT_NE(found, nullptr) << ids(findings);
    EXPECT_NE(found->evidence.find("not finite in 3 of 6 steps, and in every one recorded since step 3"),
              std::string::npos)
        << found->evidence;
    EXPECT_NE(with_id(of({bad, bad}), "divergence"), nullptr);
    EXPECT_EQ(with_id(of({5.6, 5.5, bad}), "divergence"), nullptr)
        << "of a run that goes on, whose next loss is to come";
    // One batch whose labels are all ignored.
    EXPECT_EQ(with_id(of({5.6, 5.5, bad, 5.4, 5.4, 5.3}), "divergence"), nullptr);
    EXPECT_EQ(with_id(of({5.6, 5.5, 5.4, 5.4, 5.3, bad}, 5), "divergence"), nullptr);
  }
  EXPECT_EQ(with_id(of({5.6, 5.5, 5.4, 5.4, 5.3, std::nullopt, std::nullopt}), "divergence"), nullptr);
}

/// What costs less than a fiftieth of a step is not worth a line.
TEST(FindingCauses, ASmallCostIsNoWarning) {
  MadeRun run(2);
  for (std::uint32_t step = 0; step < kSteps; ++step) run.step(std::vector<Shape>(2, {97, 1, 0}));
  EXPECT_TRUE(findings_of(run.build()).empty());
}

TEST(FindingCauses, EachHasAnIdAPageAndAPanel) {
  MadeRun run(2);
  for (std::uint32_t step = 0; step < kSteps; ++step) run.step({{90, 1, 0}, {140, 1, 0}});
  for (const Finding& one : findings_of(run.build())) {
    EXPECT_FALSE(one.id.empty()) << one.title;
    EXPECT_EQ(one.page, "docs/findings/" + one.id + ".md");
    EXPECT_FALSE(one.panel.empty()) << one.id;
  }
}

}  // namespace
}  // namespace shardscope::analysis
