// Where the window goes at a click on a finding: a time, and a rank where there is one, of its evidence.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/digest.h"
#include "app/analysis/finding_kinds.h"
#include "app/analysis/summary.h"
#include "runtime/plan/prefetch_outcome.h"
#include "tests/app/analysis/ten_steps.h"

namespace shardscope::analysis {
namespace {

using namespace test;

constexpr std::uint32_t kOddStep = 6;  ///< in which something is worst
constexpr std::int64_t kOddBegin = kOddStep * kStepLength, kOddEnd = kOddBegin + kStepLength;

/// Where the only finding of an id goes; nullopt: not found.
struct FindingPlace {
  std::int64_t at_ns = 0, until_ns = 0;
  std::uint32_t rank = ev::kNoId;
  friend bool operator==(const FindingPlace&, const FindingPlace&) = default;
};
std::optional<FindingPlace> place_in(const std::vector<Finding>& findings, const std::string& id) {
  const auto found = std::ranges::find(findings, id, &Finding::id);
  if (found == findings.end()) return std::nullopt;
  return FindingPlace{found->at_ns, found->until_ns, found->rank};
}
std::optional<FindingPlace> place_of(RunBuilder& run, const std::string& id) {
  const store::Store& store = run.build();
  return place_in(find(store, summarize(store)), id);
}

/// Two ranks, ten steps, and of some kinds what is worst in one step of rank 1.
RunBuilder ten_steps(const std::string& config = {}) {
  RunBuilder run(2, 2);
  if (!config.empty()) run.change_tables([&](ev::RunTables& tables) { tables.config_json = config; });
  add_steps(run, 2);
  return run;
}

void add_host_late(RunBuilder& run) {
  for (std::uint32_t step = 0; step < kStepCount; ++step) {
    run.instant(1, (step + 1) * kStepLength - 1, EventKind::host_late, StreamId::host, step, ev::kNoId,
                ev::kNoId, 0, step == kOddStep ? 4 * kMs : 2 * kMs);
  }
}

void add_wrong_ends(RunBuilder& run) {
  for (const std::int64_t at : {kOddBegin + 9 * kMs, kOddEnd + 9 * kMs})
    run.instant(1, at, EventKind::phase_end, StreamId::host, 0, 0);
}

void add_unused_prefetches(RunBuilder& run) {
  for (std::uint32_t step = 0; step < kStepCount; ++step) {
    for (std::uint32_t i = 0; i <= (step == kOddStep ? 1U : 0U); ++i) {
      run.instant(1, step * kStepLength + kMs + i, EventKind::prefetch_outcome, StreamId::compute, i, 1, 1,
                  static_cast<std::uint8_t>(plan::PrefetchOutcome::unused));
    }
  }
}

/// Rank 1 waits for rank 0 in each step, longest in one.
void add_waits(RunBuilder& run) {
  for (std::uint32_t step = 0; step < kStepCount; ++step) {
    const std::int64_t at = step * kStepLength + 8 * kMs, late = step == kOddStep ? kMs : kMs / 2;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const std::int64_t begin = rank == 1 ? at : at + late;
      run.instant(rank, begin, EventKind::collective_begin, StreamId::reduce, step, 0, ev::kNoId, kGatherOp,
                  1000, 4000);
      run.instant(rank, at + late, EventKind::collective_entered, StreamId::reduce, step, 0, ev::kNoId,
                  kGatherOp);
      run.instant(rank, at + 3 * kMs / 2, EventKind::collective_end, StreamId::reduce, step, 0, ev::kNoId,
                  kGatherOp, 1000, 4000);
    }
  }
}

/// A scale that is raised in every second step, and overflows again in the next.
RunBuilder oscillating() {
  RunBuilder run(1, 2);
  run.change_tables([](ev::RunTables& tables) {
    tables.config_json = R"({"fp16": {"enabled": true}, "zero_optimization": {"stage": 2}})";
  });
  for (std::uint32_t step = 0; step < 16; ++step) {
    const std::int64_t at = step * kStepLength;
    const bool skipped = step % 2 == 1;
    run.instant(0, at, EventKind::step_begin, StreamId::host, step);
    run.instant(0, at + 1, EventKind::loss_scale, StreamId::host, step, ev::kNoId, ev::kNoId, 0,
                std::bit_cast<std::int64_t>(skipped ? 4.0 : 8.0));
    run.instant(0, at + kStepLength / 2, EventKind::step_end, StreamId::host, step, ev::kNoId, ev::kNoId,
                skipped ? 1 : 0);
  }
  return run;
}

TEST(FindingPlaces, EventsAreMissingWhereMostOfThemAre) {
  RunBuilder run(2, 2);
  // One chunk of a rank for each stretch: an event of it lies behind each gap.
  for (std::uint32_t step = 0; step < kStepCount; ++step) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const std::int64_t at = step * kStepLength;
      if (rank == 1 && (step == 3 || step == kOddStep)) run.drop(1, step == kOddStep ? 40 : 10);
      run.span(rank, at, at + 8 * kMs, EventKind::module_begin, StreamId::compute, 1, step);
      run.span(rank, at, at + kStepLength, EventKind::step_begin, StreamId::host, step);
    }
    static_cast<void>(run.build());
  }
  const auto place = place_of(run, "events_missing");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 1U);
  EXPECT_GE(place->at_ns, kOddBegin - kStepLength);
  EXPECT_GT(place->until_ns, place->at_ns);
  EXPECT_LE(place->until_ns, kOddEnd);
}

TEST(FindingPlaces, TheFirstEndThatNeverBegan) {
  RunBuilder run = ten_steps();
  add_wrong_ends(run);
  EXPECT_EQ(place_of(run, "unmatched_ends"), (FindingPlace{kOddBegin + 9 * kMs, 0, 1}));
}

TEST(FindingPlaces, TheStepInWhichTheRankOfTheBadClockWaitsMost) {
  RunBuilder run = ten_steps();
  add_waits(run);
  const store::Store& store = run.build();
  Summary summary = summarize(store);
  summary.ranks[1].clock_residual_ns = 2 * kMs;
  EXPECT_EQ(place_in(find(store, summary), "clock_residual"), (FindingPlace{kOddBegin, kOddEnd, 1}));
}

TEST(FindingPlaces, TheStepInWhichTheDeviceWaitsMostForItsHost) {
  RunBuilder run = ten_steps();
  add_host_late(run);
  EXPECT_EQ(place_of(run, "host_bound"), (FindingPlace{kOddBegin, kOddEnd, 1}));
}

TEST(FindingPlaces, TheRankAndStepWithMostUnusedPrefetches) {
  RunBuilder run = ten_steps();
  add_unused_prefetches(run);
  EXPECT_EQ(place_of(run, "unused_prefetch"), (FindingPlace{kOddBegin, kOddEnd, 1}));
}

TEST(FindingPlaces, TheFirstStepThatOverflowsAfterTheScaleWasRaised) {
  RunBuilder run = oscillating();
  // It falls in step 1, is raised in step 2 and falls again in step 3.
  EXPECT_EQ(place_of(run, "loss_scale_floor"),
            (FindingPlace{3 * kStepLength, 3 * kStepLength + kStepLength / 2, ev::kNoId}));
}

/// All findings of runs that provoke them. A kind with a reason not to have a place is excused by it alone.
TEST(FindingPlaces, EveryFindingHasOneUnlessItsKindSaysWhyNot) {
  std::map<std::string, std::string> excused;
  for (const FindingKind& kind : finding_kinds()) {
    if (!kind.whole_run.empty()) excused[kind.id] = kind.whole_run;
  }
  EXPECT_LE(excused.size(), 2U) << "these open nothing at a click";
  std::vector<std::vector<Finding>> found;
  const auto add = [&](RunBuilder& run, const auto& change) {
    const store::Store& store = run.build();
    Summary summary = summarize(store);
    change(summary);
    found.push_back(find(store, summary));
  };
  const auto as_it_is = [](Summary&) {};
  RunBuilder late = ten_steps(), ends = ten_steps(), unused = ten_steps(), waits = ten_steps();
  RunBuilder scale = oscillating(),
             other = ten_steps(R"({"zero_optimization": {"stage": 2, "reduce_scatter": false}})");
  add_host_late(late);
  add_wrong_ends(ends);
  add_unused_prefetches(unused);
  add_waits(waits);
  add(late, as_it_is);
  add(ends, as_it_is);
  add(unused, as_it_is);
  add(scale, as_it_is);
  add(waits, [](Summary& summary) { summary.ranks[0].clock_residual_ns = 2 * kMs; });
  // What summaries of other machines and frameworks have, without events that would place it.
  add(other, [](Summary& summary) {
    summary.expected_elements_per_step = 1000;
    summary.volume_parts = {{VolumeCause::all_reduced, 1000}};
    summary.problems = {"chunk 1"};
  });
  RunBuilder late_gathers = ten_steps();
  for (std::uint32_t step = 0; step < kStepCount; ++step) {
    late_gathers.instant(0, step * kStepLength + 4 * kMs, EventKind::prefetch_outcome, StreamId::compute,
                         step, 1, 1, static_cast<std::uint8_t>(plan::PrefetchOutcome::late), -kMs, kMs);
  }
  add(late_gathers, as_it_is);
  std::set<std::string> ids;
  for (const std::vector<Finding>& of_run : found) {
    for (const Finding& one : of_run) {
      ids.insert(one.id);
      EXPECT_TRUE(one.placed() || excused.contains(one.id)) << one.id << ": " << one.title;
      EXPECT_TRUE(one.until_ns == 0 || one.until_ns > one.at_ns) << one.id;
    }
  }
  for (const char* id : {"unmatched_ends", "clock_residual", "host_bound", "unused_prefetch", "volume_above",
                         "loss_scale_floor", "overflow", "late_prefetch", "recording_damaged"})
    EXPECT_TRUE(ids.contains(id)) << id << " was not provoked";
}

}  // namespace
}  // namespace shardscope::analysis
