// What `watch` reports of an interval, and what it treats as a trigger.
#include "app/analysis/watch.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

/// Steps of one rank, one after the other, with the values of a step.
class Steps {
 public:
  void add(std::int64_t ms, std::optional<double> loss = 2.0, double grad_norm = 1.0, bool skipped = false) {
    run_.instant(0, at_, EventKind::step_begin, StreamId::host, step_);
    if (loss) value(EventKind::loss, *loss);
    value(EventKind::grad_norm, grad_norm);
    run_.instant(0, at_ + 2, EventKind::tokens, StreamId::host, step_, ev::kNoId, ev::kNoId, 0, 512);
    at_ += ms * kMs;
    run_.instant(0, at_, EventKind::step_end, StreamId::host, step_, ev::kNoId, ev::kNoId, skipped ? 1 : 0);
    ++step_;
  }
  /// The next step has this number, a second later.
  void restart_at(std::uint32_t step) {
    step_ = step;
    at_ += 1000 * kMs;
  }
  /// Of the step before the one that begins next.
  void evaluate(double loss) {
    run_.instant(0, at_ + 1, EventKind::eval_loss, StreamId::host, step_ - 1, 8, ev::kNoId, 0,
                 std::bit_cast<std::int64_t>(loss));
    at_ += kMs;
  }
  /// Allocated more, and not freed.
  void hold(ev::MemoryPool pool, std::int64_t bytes) {
    held_[pool] += bytes;
    run_.instant(0, ++at_, EventKind::memory_alloc, StreamId::host, 0, ev::kNoId, ev::kNoId,
                 static_cast<std::uint8_t>(static_cast<unsigned>(pool) << 4U |
                                           static_cast<unsigned>(ev::MemoryCategory::temporary)),
                 bytes, held_[pool]);
  }
  WatchInterval look(std::chrono::nanoseconds quiet = {}, bool paused = false) {
    store::Store& store = run_.build();
    digest_.update(store);
    return watcher_.look(store, digest_, quiet, paused);
  }
  WatchInterval look_at_totals() { return watcher_.look_at_totals(run_.build(), {}, false); }
  store::Store& store() { return run_.build(); }
  void drop(std::uint64_t events) { run_.drop(0, events); }
  Watcher& watcher() { return watcher_; }

 private:
  void value(EventKind kind, double number) {
    run_.instant(0, at_ + 1, kind, StreamId::host, step_, ev::kNoId, ev::kNoId, 0,
                 std::bit_cast<std::int64_t>(number));
  }
  RunBuilder run_{1};
  Digest digest_;
  Watcher watcher_{{.memory_limit_bytes = 1000}};
  std::map<ev::MemoryPool, std::int64_t> held_;
  std::int64_t at_ = 0;
  std::uint32_t step_ = 0;
};

std::vector<TriggerKind> kinds(const WatchInterval& interval) {
  std::vector<TriggerKind> out;
  for (const Trigger& trigger : interval.triggers) out.push_back(trigger.kind);
  return out;
}
using Kinds = std::vector<TriggerKind>;

/// As a recorder looks, that has no events: without a digest, one step behind, NaN where there was always a
/// loss.
TEST(Watch, TotalsAreEnoughForWhatStepsSay) {
  Steps steps;
  for (int i = 0; i < 12; ++i) steps.add(10);
  EXPECT_EQ(kinds(steps.look_at_totals()), Kinds{});
  steps.add(40);
  EXPECT_EQ(kinds(steps.look_at_totals()), Kinds{}) << "the newest row may lack a value";
  steps.add(10, std::nan(""));
  const WatchInterval slow = steps.look_at_totals();
  EXPECT_EQ(kinds(slow), Kinds{TriggerKind::slow_step});
  EXPECT_EQ(slow.triggers[0].end_ns - slow.triggers[0].at_ns, 40 * kMs) << "all of the step";
  steps.add(10, std::nan(""));
  EXPECT_EQ(kinds(steps.look_at_totals()), Kinds{TriggerKind::loss_not_finite});
  steps.add(10, 2.0, 1.0, true);
  EXPECT_EQ(kinds(steps.look_at_totals()), Kinds{}) << "NaN again, as after divergence";
  steps.add(10);
  EXPECT_EQ(kinds(steps.look_at_totals()), Kinds{TriggerKind::skipped_step});
}

TEST(Watch, ALossThatIsOftenNotRecordedIsNoTriggerInTotals) {
  Steps steps;
  for (int i = 0; i < 40; ++i) steps.add(10, i % 5 == 0 ? std::optional(2.0) : std::nullopt);
  EXPECT_EQ(kinds(steps.look_at_totals()), Kinds{});
  steps.add(10, std::nan(""));
  steps.add(10, std::nullopt);
  EXPECT_EQ(kinds(steps.look_at_totals()), Kinds{TriggerKind::loss_not_finite})
      << "the one that was recorded";
}

TEST(Watch, SaysWhatTheStepsOfAnIntervalWere) {
  Steps steps;
  for (int i = 0; i < 4; ++i) steps.add(10);
  WatchInterval interval = steps.look();
  EXPECT_EQ(interval.steps, 4U);
  EXPECT_EQ(interval.step, 3U);
  EXPECT_DOUBLE_EQ(*interval.step_ms_median, 10);
  EXPECT_DOUBLE_EQ(*interval.tokens_per_s, 512 / 0.010);
  EXPECT_FALSE(interval.loss_before);
  steps.add(20, 1.5);
  steps.add(30, 1.25);
  interval = steps.look();
  EXPECT_EQ(interval.steps, 2U);
  EXPECT_DOUBLE_EQ(*interval.step_ms_median, 25);
  EXPECT_DOUBLE_EQ(*interval.step_ms_max, 30);
  EXPECT_DOUBLE_EQ(*interval.step_ms_before, 10);
  EXPECT_DOUBLE_EQ(*interval.loss, 1.25);
  EXPECT_DOUBLE_EQ(*interval.loss_before, 2.0);
  EXPECT_NE(
      watch_line(interval).find("step 5 (+2)  25.0 ms (+150.0 %, longest 30.0 ms)  loss 1.2500 (-0.7500)"),
      std::string::npos)
      << watch_line(interval);
  interval = steps.look();
  EXPECT_EQ(interval.steps, 0U);
  EXPECT_EQ(interval.step, 5U);
  EXPECT_FALSE(interval.step_ms_median);
}

TEST(Watch, AStepBeyondTheSpreadOfThoseBeforeIsSlow) {
  Steps steps;
  for (int i = 0; i < 20; ++i) steps.add(100 + i % 3);
  EXPECT_EQ(kinds(steps.look()), Kinds{});
  steps.add(119);  // beyond the spread, but not 1.2 times the median
  EXPECT_EQ(kinds(steps.look()), Kinds{});
  steps.add(125);
  const WatchInterval interval = steps.look();
  ASSERT_EQ(kinds(interval), Kinds{TriggerKind::slow_step});
  EXPECT_EQ(interval.triggers[0].step, 21U);
  EXPECT_EQ(interval.triggers[0].text,
            "step 21 took 125 ms: 1.24 times the median of the 20 steps before (101 ms)");
}

TEST(Watch, TheSpreadOfUnevenStepsIsWide) {
  Steps steps;
  for (int i = 0; i < 20; ++i) steps.add(50 + 10 * (i % 11));
  steps.add(160);  // m = 100, s = 1.4826 * 30: below m + 6 s
  EXPECT_EQ(kinds(steps.look()), Kinds{});
}

TEST(Watch, NoStepIsJudgedBeforeEightOthers) {
  Steps steps;
  steps.add(900);  // warm-up
  for (int i = 0; i < 7; ++i) steps.add(10);
  steps.add(500);
  EXPECT_EQ(kinds(steps.look()), Kinds{});
}

TEST(Watch, LossesAndNormsThatJumpOrAreNotNumbers) {
  Steps steps;
  for (int i = 0; i < 10; ++i) steps.add(10, 2.0 - 0.01 * i, 1.0 + 0.01 * i);
  steps.add(10, 5.0, 1.0);
  EXPECT_EQ(kinds(steps.look()), Kinds{TriggerKind::loss_jump});
  steps.add(10, 2.0, 40.0);
  EXPECT_EQ(kinds(steps.look()), Kinds{TriggerKind::grad_norm_jump});
  steps.add(10, std::nan(""), std::numeric_limits<double>::infinity());
  EXPECT_EQ(kinds(steps.look()), (Kinds{TriggerKind::loss_not_finite, TriggerKind::grad_norm_jump}));
  steps.add(10, std::nan(""), std::nan(""));
  EXPECT_EQ(kinds(steps.look()), Kinds{}) << "as the step before";
  steps.add(10, 2.0, 1.0);
  steps.add(10, 2.0, std::nan(""));
  EXPECT_EQ(kinds(steps.look()), Kinds{TriggerKind::grad_norm_jump});
  steps.add(10, 2.0, std::numeric_limits<double>::infinity(), true);
  EXPECT_EQ(kinds(steps.look()), Kinds{TriggerKind::skipped_step});
}

// Factors of what is next to nothing: a jump is one by what the loss of this run was, 1 % of it at least.
TEST(Watch, ALossThatIsNextToNothingHasNoJumps) {
  Steps steps;
  for (int i = 0; i < 150; ++i) steps.add(10, std::max(4.0 * std::exp(-0.4 * i), 1e-9));
  steps.add(10, 5e-9);
  steps.add(10, 0.009);
  EXPECT_EQ(kinds(steps.look()), Kinds{});
  steps.add(10, 0.05);
  EXPECT_EQ(kinds(steps.look()), Kinds{TriggerKind::loss_jump});
}

TEST(Watch, ALossThatWasAlwaysSmallIsJudgedByItsOwnScale) {
  Steps steps;
  for (int i = 0; i < 20; ++i) steps.add(10, 1e-9);
  steps.add(10, 5e-9);
  EXPECT_EQ(kinds(steps.look()), Kinds{TriggerKind::loss_jump});
}

TEST(Watch, AStepWithoutALossIsNotOneThatIsNotFinite) {
  Steps steps;
  for (int i = 0; i < 10; ++i) steps.add(10);
  steps.add(10, std::nullopt);
  EXPECT_EQ(kinds(steps.look()), Kinds{});
  steps.add(10, std::numeric_limits<double>::infinity());
  EXPECT_EQ(kinds(steps.look()), Kinds{TriggerKind::loss_not_finite});
}

TEST(Watch, AStalledRunIsSaidOnceAndNotWhenItIsPaused) {
  using std::chrono::seconds;
  Steps steps;
  for (int i = 0; i < 10; ++i) steps.add(2000);
  EXPECT_EQ(kinds(steps.look(seconds(19))), Kinds{});  // ten median steps are 20 s
  EXPECT_EQ(kinds(steps.look(seconds(21), true)), Kinds{});
  EXPECT_EQ(kinds(steps.look(seconds(21))), Kinds{TriggerKind::stalled});
  EXPECT_EQ(kinds(steps.look(seconds(40))), Kinds{});
  steps.add(2000);
  EXPECT_EQ(kinds(steps.look()), Kinds{});
  EXPECT_EQ(kinds(steps.look(seconds(21))), Kinds{TriggerKind::stalled});
}

/// The limit is 1000 bytes of the device, of which 950 may be held.
TEST(Watch, MemoryNearItsLimitIsATriggerAndAgainWhenThePeakGrows) {
  Steps steps;
  steps.add(10);
  steps.hold(ev::MemoryPool::device, 950);
  EXPECT_EQ(kinds(steps.look()), Kinds{}) << "as much as may be";
  steps.hold(ev::MemoryPool::host, 5000);
  EXPECT_EQ(kinds(steps.look()), Kinds{}) << "of another pool";
  steps.hold(ev::MemoryPool::device, 1);
  const WatchInterval interval = steps.look();
  ASSERT_EQ(kinds(interval), Kinds{TriggerKind::memory_limit});
  EXPECT_EQ(interval.triggers[0].rank, 0U);
  EXPECT_EQ(interval.triggers[0].text, "rank 0 held 951 B of its device's 0.98 KiB");
  steps.hold(ev::MemoryPool::device, 9);
  EXPECT_EQ(kinds(steps.look()), Kinds{}) << "less than 1 % of the limit more";
  steps.hold(ev::MemoryPool::device, 1);
  EXPECT_EQ(kinds(steps.look()), Kinds{TriggerKind::memory_limit});
}

TEST(Watch, RanksThatFailAndEventsThatAreMissing) {
  Steps steps;
  steps.add(10);
  steps.look();
  store::RankRow row = steps.store().ranks().front();
  row.finished = true;
  row.exit_code = 3;
  steps.store().set_rank(row);
  steps.drop(7);
  const WatchInterval interval = steps.look();
  EXPECT_EQ(kinds(interval), (Kinds{TriggerKind::rank_failed, TriggerKind::events_missing}));
  EXPECT_EQ(interval.triggers[0].rank, 0U);
  EXPECT_EQ(interval.ranks_ended, 1U);
  EXPECT_EQ(kinds(steps.look(std::chrono::hours(1))), Kinds{});
}

/// An elastic launcher starts a failed rank again; the next failure is a new one.
TEST(Watch, ARankThatFailsAgainAfterARestartIsATriggerAgain) {
  Steps steps;
  steps.add(10);
  const auto report = [&](std::int32_t exit_code) {
    store::RankRow row = steps.store().ranks().front();
    row.finished = exit_code != 0;
    row.exit_code = exit_code;
    steps.store().set_rank(row);
    return steps.look();
  };
  EXPECT_EQ(kinds(report(3)), Kinds{TriggerKind::rank_failed});
  EXPECT_EQ(kinds(report(3)), Kinds{}) << "the same failure";
  EXPECT_EQ(kinds(report(0)), Kinds{}) << "it runs again";
  EXPECT_EQ(kinds(report(3)), Kinds{TriggerKind::rank_failed});
}

/// At a node's collector they are those of its node.
TEST(Watch, SaysHowManyRanksHaveCome) {
  test::RunBuilder run(2);
  run.change_tables([](ev::RunTables& tables) { tables.world = 4; });
  Watcher watcher;
  const WatchInterval interval = watcher.look_at_totals(run.build(), {}, false);
  EXPECT_NE(watch_line(interval).find("2 of 4 ranks have come"), std::string::npos) << watch_line(interval);
  EXPECT_EQ(nlohmann::json::parse(to_json(interval))["world"], 4);
  Steps steps;
  steps.add(10);
  EXPECT_EQ(watch_line(steps.look()).find("have come"), std::string::npos);
}

/// A watch looks each second and prints a line each interval: the line is as if it had looked once.
TEST(Watch, JoinedIntervalsAreAsOne) {
  Steps often, once;
  for (int i = 0; i < 20; ++i) {
    for (Steps* steps : {&often, &once}) steps->add(100 + i % 3);
  }
  often.look();
  once.look();
  std::optional<WatchInterval> joined;
  const std::vector<std::int64_t> lengths = {90, 300, 100, 130, 101};
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    for (Steps* steps : {&often, &once}) {
      steps->add(lengths[i], 1.9 - 0.01 * static_cast<double>(i), 1.5, i == 3);
      if (i == 2) steps->evaluate(3.5);
    }
    WatchInterval next = often.look();
    if (joined) {
      joined->add(std::move(next));
      joined->add(often.look());  // without a step
    } else {
      joined = std::move(next);
    }
  }
  const WatchInterval whole = once.look();
  EXPECT_EQ(joined->steps, 5U);
  EXPECT_EQ(kinds(*joined),
            (Kinds{TriggerKind::slow_step, TriggerKind::slow_step, TriggerKind::skipped_step}));
  EXPECT_EQ(watch_line(*joined), watch_line(whole));
  EXPECT_EQ(to_json(*joined), to_json(whole));
}

/// As a rank that is started again from a checkpoint does.
TEST(Watch, StepsThatBeginAgainAreWatchedAgain) {
  for (const bool totals : {false, true}) {
    Steps steps;
    for (int i = 0; i < 20; ++i) steps.add(10);
    const auto look = [&] { return totals ? steps.look_at_totals() : steps.look(); };
    EXPECT_GE(look().step, 18U);
    steps.restart_at(12);
    steps.add(500);  // the first after a start is warm-up
    steps.add(10);
    steps.add(10);
    WatchInterval interval = look();
    EXPECT_EQ(kinds(interval), Kinds{});
    EXPECT_EQ(interval.step, totals ? 13U : 14U);
    EXPECT_EQ(interval.steps, totals ? 2U : 3U);
    steps.add(40);
    steps.add(10);
    interval = look();
    EXPECT_EQ(kinds(interval), Kinds{TriggerKind::slow_step}) << totals;
    EXPECT_EQ(interval.triggers[0].step, 15U);
  }
}

TEST(Watch, AFindingIsNewOnce) {
  Steps steps;
  WatchInterval interval;
  Finding finding;
  finding.severity = ev::Severity::warning;
  finding.title = "Something is wrong";
  steps.watcher().take_findings({finding}, interval);
  EXPECT_EQ(kinds(interval), Kinds{TriggerKind::finding});
  interval.triggers.clear();
  finding.title = "12 of 400 prefetches come too late";
  steps.watcher().take_findings({finding}, interval);
  EXPECT_EQ(kinds(interval), Kinds{TriggerKind::finding});
  interval.triggers.clear();
  finding.title = "15 of 480 prefetches come too late";  // the same one, later
  Finding info;
  info.severity = ev::Severity::info;
  info.title = "For your information";
  steps.watcher().take_findings({finding, info}, interval);
  EXPECT_EQ(kinds(interval), Kinds{});
}

TEST(Watch, JsonHasNullForWhatIsNotKnown) {
  Steps steps;
  steps.add(10);
  const auto json = nlohmann::json::parse(to_json(steps.look()));
  EXPECT_EQ(json["step"], 0);
  EXPECT_EQ(json["overlap_pct"], nullptr);
  EXPECT_EQ(json["triggers"], nlohmann::json::array());
  EXPECT_EQ(nlohmann::json::parse(to_json(WatchInterval{}))["step"], nullptr);
}

TEST(Watch, TriggersHaveNames) {
  EXPECT_STREQ(name_of(TriggerKind::slow_step), "slow_step");
  EXPECT_STREQ(name_of(TriggerKind::finding), "finding");
  EXPECT_EQ(static_cast<std::size_t>(TriggerKind::finding) + 1, kTriggerKinds);
}

/// An evaluation is in the line of the look that saw it first, and stays the latest one.
TEST(Watch, AnEvaluationIsSaidOnceAndKept) {
  Steps steps;
  for (int i = 0; i < 3; ++i) steps.add(10);
  EXPECT_FALSE(steps.look().evaluation);
  steps.evaluate(2.5);
  steps.add(10);
  const WatchInterval first = steps.look();
  ASSERT_TRUE(first.evaluation);
  EXPECT_EQ(first.evaluation->step, 2U);
  EXPECT_DOUBLE_EQ(first.evaluation->loss, 2.5);
  EXPECT_NE(watch_line(first).find("  held-out loss 2.5000 after step 2"), std::string::npos)
      << watch_line(first);
  EXPECT_NE(to_json(first).find("\"eval_loss\":2.5,\"eval_step\":2"), std::string::npos) << to_json(first);
  steps.add(10);
  const WatchInterval second = steps.look();
  ASSERT_TRUE(second.evaluation);
  EXPECT_DOUBLE_EQ(second.evaluation->loss, 2.5);
  EXPECT_EQ(watch_line(second).find("held-out"), std::string::npos);
}

}  // namespace
}  // namespace shardscope::analysis
