// Why the last rank of each step was late, over the measured steps of made runs.
#include "app/analysis/late_causes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

enum class Late : std::uint8_t { computes, waits_for_data, does_nothing, not_late };

/// Eleven steps of 16 ms on three ranks, of which ten are measured: all compute for 6 ms, then reduce. The
/// last rank of a step, another in each, enters 8 ms after the others, for the reason given for the step.
void add_steps(RunBuilder& run, const std::function<Late(std::uint32_t step)>& reason) {
  for (std::uint32_t step = 0; step < 11; ++step) {
    const std::int64_t at = step * 17 * kMs;
    const Late why = reason(step);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      const bool late = rank == step % 3 && why != Late::not_late;
      const bool computes = late && why == Late::computes, waits = late && why == Late::waits_for_data;
      const std::int64_t computed = at + (computes ? 14 : 6) * kMs;
      const std::int64_t entered = late ? at + 14 * kMs + 1 : computed;
      if (waits) {
        run.span(rank, at, at + 8 * kMs, EventKind::data_wait_begin, StreamId::compute, 0, step);
        run.span(rank, at + 8 * kMs, at + 14 * kMs, EventKind::module_begin, StreamId::compute, 1, step);
      } else {
        run.span(rank, at, computed, EventKind::module_begin, StreamId::compute, 1, step);
      }
      run.span(rank, entered, at + 15'500'000, EventKind::collective_begin, StreamId::reduce, step, 0,
               kGatherOp, 1000, 4000);
      run.span(rank, at, at + 16 * kMs, EventKind::step_begin, StreamId::host, step);
    }
  }
}

Summary run_of(const std::function<Late(std::uint32_t step)>& reason) {
  RunBuilder run(3, 2);
  add_steps(run, reason);
  return summarize(run.build());
}

TEST(LateCauses, RanksThatAreLateInTurnsHaveOneCause) {
  const Summary summary = run_of([](std::uint32_t) { return Late::computes; });
  const auto why = why_late(summary);
  ASSERT_TRUE(why);
  EXPECT_EQ(why->reason, LateReason::compute);
  EXPECT_EQ(why->steps, 10U);
  EXPECT_EQ(why->ranks, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(
      text_of(summary.late_causes, *why),
      "in 10 of 10 steps the last one (ranks 0, 1, 2) was late because it computed longer than they did: 8.0 "
      "of 8.0 ms that each other rank waited for it in a step");
}

TEST(LateCauses, TheCauseOfMostOfTheWaitingIsNamed) {
  const Summary summary =
      run_of([](std::uint32_t step) { return step % 3 == 0 ? Late::computes : Late::waits_for_data; });
  const auto why = why_late(summary);
  ASSERT_TRUE(why);
  EXPECT_EQ(why->reason, LateReason::data);
  EXPECT_EQ(why->steps, 7U);
  EXPECT_EQ(why->ranks, (std::vector<std::uint32_t>{1, 2})) << "rank 0 comes last in every third step";
  ASSERT_EQ(summary.late_causes.causes.size(), 2U);
  EXPECT_EQ(summary.late_causes.causes[1].reason, LateReason::compute);
  EXPECT_EQ(summary.late_causes.causes[1].ranks, (std::vector<std::uint32_t>{0}));
}

TEST(LateCauses, NoneIsNamedWhereNoneHasMostOfIt) {
  EXPECT_FALSE(why_late(run_of([](std::uint32_t step) {
    return step % 2 == 0 ? Late::computes : Late::waits_for_data;
  }))) << "the halves are equal, and each would be as good";
  const Summary no_one = run_of([](std::uint32_t) { return Late::not_late; });
  EXPECT_TRUE(no_one.late_causes.causes.empty());
  EXPECT_FALSE(why_late(no_one));
}

TEST(LateCauses, ARankThatDoesNothingBeforeItEnters) {
  const auto why = why_late(run_of([](std::uint32_t) { return Late::does_nothing; }));
  ASSERT_TRUE(why);
  EXPECT_EQ(why->reason, LateReason::idle);
}

TEST(LateCauses, TheFindingOfRanksInTurnsHasTheirCause) {
  for (const Late late : {Late::computes, Late::waits_for_data}) {
    RunBuilder run(3, 2);
    add_steps(run, [&](std::uint32_t) { return late; });
    const store::Store& store = run.build();
    const std::vector<Finding> all = find(store, summarize(store));
    const auto found = std::ranges::find(all, "exposed_communication", &Finding::id);
    ASSERT_NE(found, all.end());
    const bool data = late == Late::waits_for_data;
    EXPECT_NE(found->evidence.find(data ? "because it waited for its data" : "because it computed longer"),
              std::string::npos)
        << found->evidence;
    EXPECT_EQ(found->next_step.find("data in turns") != std::string::npos, data) << found->next_step;
  }
}

}  // namespace
}  // namespace shardscope::analysis
