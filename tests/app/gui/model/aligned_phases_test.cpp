// A step of two runs phase by phase.
#include "app/gui/model/aligned_phases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "instrumentation/event.h"
#include "tests/app/store/event_builder.h"

namespace shardscope::gui {
namespace {

namespace ev = shardscope::instrumentation;
using Kind = ev::EventKind;

struct Phased {
  ev::Phase phase;
  std::int64_t begin_ms, end_ms;
};

/// One step from 0 to `end_ms`.
store::Store run_of(const std::vector<Phased>& phases, std::int64_t end_ms) {
  constexpr std::int64_t kMs = 1'000'000;
  store::Store store;
  store::ChunkBuilder events(0);
  events.host(0, Kind::step_begin, 7);
  for (const Phased& one : phases) {
    const auto code = static_cast<std::uint8_t>(one.phase);
    events.compute(one.begin_ms * kMs, Kind::phase_begin, ev::kNoId, code);
    events.compute(one.end_ms * kMs, Kind::phase_end, ev::kNoId, code);
  }
  events.host(end_ms * kMs, Kind::step_end, 7);
  store.ingest(events.chunk);
  return store;
}

std::string text_of(const std::vector<AlignedPart>& parts) {
  std::string out;
  const auto range = [](const TimeRange& of) {
    return std::to_string(of.begin_ns / 1'000'000) + "-" + std::to_string(of.end_ns / 1'000'000);
  };
  for (const AlignedPart& part : parts)
    out += std::to_string(part.at_ns / 1'000'000) + " " + (part.name.empty() ? "between" : part.name) +
           " A " + range(part.a) + " B " + range(part.b) + "\n";
  return out;
}

TEST(AlignedPhases, ATimeOfAHasAPositionOnTheScaleAndWhereOnlyBGoesOnThereIsNone) {
  constexpr std::int64_t kMs = 1'000'000;
  using enum ev::Phase;
  const store::Store a = run_of({{forward, 0, 10}, {backward, 10, 30}}, 30);
  const store::Store b = run_of({{forward, 0, 20}, {backward, 20, 30}}, 30);
  const std::vector<AlignedPart> parts = align_steps(a, a.steps()[0], b, b.steps()[0], AlignBy::phase);
  EXPECT_EQ(position_of(parts, AlignedRun::a, 4 * kMs), 4 * kMs);
  EXPECT_EQ(position_of(parts, AlignedRun::a, 12 * kMs), 22 * kMs)
      << "its backward begins where that of B does";
  EXPECT_EQ(position_of(parts, AlignedRun::a, 31 * kMs), std::nullopt) << "after the step";
  EXPECT_EQ(time_of(parts, AlignedRun::a, 22 * kMs), 12 * kMs);
  EXPECT_EQ(time_of(parts, AlignedRun::a, 4 * kMs), 4 * kMs);
  EXPECT_EQ(time_of(parts, AlignedRun::a, 15 * kMs), std::nullopt) << "only B is still in its forward";
  EXPECT_EQ(time_of(parts, AlignedRun::a, -1), std::nullopt);
}

TEST(AlignedPhases, EachBeginsAtTheSamePlaceHoweverLongTheOnesBeforeTook) {
  using enum ev::Phase;
  const store::Store a = run_of({{forward, 0, 10}, {backward, 10, 30}, {optimizer, 32, 40}}, 41);
  const store::Store b = run_of({{forward, 1, 21}, {backward, 21, 31}, {optimizer, 31, 36}}, 36);
  EXPECT_EQ(text_of(align_steps(a, a.steps()[0], b, b.steps()[0], AlignBy::phase)),
            "0 between A 0-0 B 0-1\n"
            "1 forward A 0-10 B 1-21\n"
            "21 backward A 10-30 B 21-31\n"
            "41 between A 30-32 B 31-31\n"
            "43 optimizer A 32-40 B 31-36\n"
            "51 between A 40-41 B 36-36\n");
  EXPECT_EQ(text_of(align_steps(a, a.steps()[0], b, b.steps()[0], AlignBy::step)),
            "0 between A 0-41 B 0-36\n");
}

/// A accumulates over two micro-steps and B does not.
TEST(AlignedPhases, WhatIsInOneRunOnlyLiesBetween) {
  using enum ev::Phase;
  const store::Store a = run_of(
      {{forward, 0, 10}, {backward, 10, 20}, {forward, 20, 30}, {backward, 30, 40}, {optimizer, 40, 45}}, 45);
  const store::Store b = run_of({{forward, 0, 10}, {backward, 10, 20}, {optimizer, 20, 25}}, 25);
  EXPECT_EQ(text_of(align_steps(a, a.steps()[0], b, b.steps()[0], AlignBy::phase)),
            "0 forward A 0-10 B 0-10\n"
            "10 backward A 10-20 B 10-20\n"
            "20 between A 20-40 B 20-20\n"
            "40 optimizer A 40-45 B 20-25\n");
}

/// B evaluates first: that does not cost A's forward its partner.
TEST(AlignedPhases, AsManyAsPossibleAreAligned) {
  using enum ev::Phase;
  const store::Store a = run_of({{forward, 0, 10}, {backward, 10, 20}}, 20);
  const store::Store b = run_of({{evaluation, 0, 5}, {forward, 5, 15}, {backward, 15, 25}}, 25);
  EXPECT_EQ(text_of(align_steps(a, a.steps()[0], b, b.steps()[0], AlignBy::phase)),
            "0 between A 0-0 B 0-5\n"
            "5 forward A 0-10 B 5-15\n"
            "15 backward A 10-20 B 15-25\n");
}

struct Moduled {
  std::uint32_t module;
  ev::Pass pass;
  std::int64_t begin_ms, end_ms;
};

/// One step from 0 to `end_ms`; modules are "m0", "m1"...
store::Store run_of_modules(const std::vector<Moduled>& modules, std::int64_t end_ms) {
  constexpr std::int64_t kMs = 1'000'000;
  store::Store store;
  ev::RunTables tables;
  tables.world = tables.local_world = 1;
  for (std::uint32_t i = 0; i < 2000; ++i)
    tables.modules.push_back({i, ev::kNoId, "m" + std::to_string(i), "Block", {}, true});
  store.set_tables(0, tables);
  struct Edge {
    std::int64_t at_ms;
    bool begins;
    const Moduled* of;
  };
  std::vector<Edge> edges;
  for (const Moduled& one : modules) {
    edges.push_back({one.begin_ms, true, &one});
    edges.push_back({one.end_ms, false, &one});
  }
  // Ends before begins of the same time; given in order of nesting.
  std::ranges::stable_sort(edges, [](const Edge& a, const Edge& b) {
    return a.at_ms != b.at_ms ? a.at_ms < b.at_ms : !a.begins && b.begins;
  });
  store::ChunkBuilder events(0);
  events.host(0, Kind::step_begin, 7);
  for (const Edge& edge : edges)
    events.compute(edge.at_ms * kMs, edge.begins ? Kind::module_begin : Kind::module_end, edge.of->module,
                   static_cast<std::uint8_t>(edge.of->pass));
  events.host(end_ms * kMs, Kind::step_end, 7);
  store.ingest(events.chunk);
  return store;
}

/// m0 holds m1 and m2; m3 stands beside it. Forward, then backward: what took longer in A's m1 does not shift
/// the others.
TEST(AlignedModules, TheInnermostBeginAtTheSamePlaceWithTheirPass) {
  using enum ev::Pass;
  const store::Store a = run_of_modules({{0, forward, 0, 11},
                                         {1, forward, 0, 8},
                                         {2, forward, 8, 10},
                                         {3, forward, 12, 14},
                                         {3, backward, 14, 18}},
                                        20);
  const store::Store b = run_of_modules(
      {{0, forward, 0, 7}, {1, forward, 1, 3}, {2, forward, 3, 6}, {3, forward, 7, 9}, {3, backward, 9, 11}},
      11);
  EXPECT_EQ(text_of(align_steps(a, a.steps()[0], b, b.steps()[0], AlignBy::module)),
            "0 between A 0-0 B 0-1\n"
            "1 m1 forward A 0-8 B 1-3\n"
            "9 m2 forward A 8-10 B 3-6\n"
            "12 between A 10-12 B 6-7\n"
            "14 m3 forward A 12-14 B 7-9\n"
            "16 m3 backward A 14-18 B 9-11\n"
            "20 between A 18-20 B 11-11\n");
}

/// More inner modules than can be paired: those around them are.
TEST(AlignedModules, OfTooManyTheOnesFurtherOutAreAligned) {
  const auto run = [](std::int64_t each_ms) {
    std::vector<Moduled> modules;
    const auto inner = static_cast<std::int64_t>(kMostAligned + 1);
    for (std::uint32_t outer = 0; outer < 2; ++outer) {
      const std::int64_t from = outer * inner * each_ms;
      modules.push_back({outer, ev::Pass::forward, from, from + inner * each_ms});
      for (std::int64_t i = 0; i < inner; ++i)
        modules.push_back({static_cast<std::uint32_t>(10 + i), ev::Pass::forward, from + i * each_ms,
                           from + (i + 1) * each_ms});
    }
    return run_of_modules(modules, 2 * inner * each_ms);
  };
  const store::Store a = run(2), b = run(1);
  EXPECT_EQ(text_of(align_steps(a, a.steps()[0], b, b.steps()[0], AlignBy::module)),
            "0 m0 forward A 0-1002 B 0-501\n"
            "1002 m1 forward A 1002-2004 B 501-1002\n");
}

/// A names the inner modules and B those around them alone.
TEST(AlignedModules, OfTheLevelAtWhichTheMostAreInBoth) {
  using enum ev::Pass;
  const store::Store a = run_of_modules({{9, forward, 0, 1},
                                         {0, forward, 1, 11},
                                         {1, forward, 1, 8},
                                         {2, forward, 11, 15},
                                         {3, forward, 11, 15}},
                                        15);
  const store::Store b = run_of_modules({{9, forward, 0, 2}, {0, forward, 2, 9}, {2, forward, 9, 12}}, 12);
  std::string why_not;
  EXPECT_EQ(text_of(align_steps(a, a.steps()[0], b, b.steps()[0], AlignBy::module, &why_not)),
            "0 m9 forward A 0-1 B 0-2\n"
            "2 m0 forward A 1-11 B 2-9\n"
            "12 m2 forward A 11-15 B 9-12\n");
  EXPECT_EQ(why_not, "");
}

TEST(AlignedModules, WhereNothingCanBeAlignedItSaysWhy) {
  std::vector<Moduled> many;
  for (std::uint32_t i = 0; i <= kMostAligned; ++i) many.push_back({i, ev::Pass::forward, i, i + 1});
  const store::Store none = run_of({}, 10), some = run_of_modules({{0, ev::Pass::forward, 0, 4}}, 10),
                     other = run_of_modules({{1, ev::Pass::forward, 0, 4}}, 10),
                     crowded = run_of_modules(many, 600);
  const auto why_not = [](const store::Store& a, const store::Store& b, AlignBy by) {
    std::string why;
    EXPECT_EQ(align_steps(a, a.steps()[0], b, b.steps()[0], by, &why).size(), 1U);
    return why;
  };
  EXPECT_EQ(why_not(none, none, AlignBy::module), "neither run has a module in this step");
  EXPECT_EQ(why_not(none, some, AlignBy::module), "A has no module in this step");
  EXPECT_EQ(why_not(some, none, AlignBy::module), "B has no module in this step");
  EXPECT_EQ(why_not(some, other, AlignBy::module), "no module of this step is in both runs");
  EXPECT_EQ(why_not(crowded, crowded, AlignBy::module), "more than 500 modules in this step");
  EXPECT_EQ(why_not(some, some, AlignBy::phase), "neither run has a phase in this step");
  EXPECT_EQ(why_not(some, some, AlignBy::step), "") << "from its begin, as shown";
}

TEST(AlignedPhases, APieceOfTheScaleShowsAPieceOfEachPart) {
  const std::vector<AlignedPart> parts{{"forward", {100, 110}, {500, 520}, 0, 20},
                                       {"backward", {110, 140}, {520, 530}, 20, 30}};
  const auto seen = visible_parts(parts, {15, 35});
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].at_ns, 15);
  EXPECT_EQ(seen[0].length_ns, 5);
  EXPECT_EQ(seen[0].a, (TimeRange{110, 110})) << "A has nothing there: its forward is shorter";
  EXPECT_EQ(seen[0].b, (TimeRange{515, 520}));
  EXPECT_EQ(seen[1].a, (TimeRange{110, 125}));
  EXPECT_EQ(seen[1].b, (TimeRange{520, 530}));
  EXPECT_EQ(visible_parts(parts, {0, 50}).size(), 2U);
  EXPECT_TRUE(visible_parts(parts, {60, 70}).empty());
}

}  // namespace
}  // namespace shardscope::gui
