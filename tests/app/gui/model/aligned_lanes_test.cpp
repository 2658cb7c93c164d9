// The lanes under two aligned runs: the spans in a part move with the part, at every depth.
#include "app/gui/model/aligned_lanes.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "app/gui/model/names.h"
#include "app/gui/model/span_pair.h"
#include "tests/app/store/event_builder.h"

namespace shardscope::gui {
namespace {

using AlignedKind = ev::EventKind;
constexpr std::int64_t kAlignedMs = 1'000'000;

/// Forward from 0 to 4 `each_ms`: a block with two leaves, then a leaf; a gather under the second leaf and
/// one that reaches into what follows; backward of 10 ms.
store::Store aligned_run(std::int64_t each_ms) {
  const std::int64_t each = each_ms * kAlignedMs;
  store::Store store;
  ev::RunTables tables;
  tables.world = tables.local_world = 1;
  for (std::uint32_t i = 0; i < 4; ++i)
    tables.modules.push_back({i, ev::kNoId, "m" + std::to_string(i), "Block", {}, true});
  store.set_tables(0, tables);
  store::ChunkBuilder events(0);
  const auto phase = [&](std::int64_t at, AlignedKind kind, ev::Phase which) {
    events.compute(at, kind, ev::kNoId, static_cast<std::uint8_t>(which));
  };
  events.host(0, AlignedKind::step_begin, 7);
  phase(0, AlignedKind::phase_begin, ev::Phase::forward);
  events.compute(0, AlignedKind::module_begin, 0);
  events.compute(0, AlignedKind::module_begin, 1);
  events.compute(each, AlignedKind::module_end, 1);
  events.compute(2 * each, AlignedKind::module_begin, 2);
  events.add(2 * each, AlignedKind::collective_begin, ev::StreamId::gather, 1);
  events.add(3 * each, AlignedKind::collective_end, ev::StreamId::gather, 1);
  events.compute(3 * each, AlignedKind::module_end, 2);
  events.compute(3 * each, AlignedKind::module_end, 0);
  events.compute(3 * each, AlignedKind::module_begin, 3);
  events.add(4 * each - kAlignedMs, AlignedKind::collective_begin, ev::StreamId::gather, 2);
  events.compute(4 * each, AlignedKind::module_end, 3);
  phase(4 * each, AlignedKind::phase_end, ev::Phase::forward);
  phase(4 * each, AlignedKind::phase_begin, ev::Phase::backward);
  events.add(4 * each + 2 * kAlignedMs, AlignedKind::collective_end, ev::StreamId::gather, 2);
  phase(4 * each + 10 * kAlignedMs, AlignedKind::phase_end, ev::Phase::backward);
  events.host(4 * each + 10 * kAlignedMs, AlignedKind::step_end, 7);
  store.ingest(events.chunk);
  return store;
}

struct AlignedRuns {
  store::Store a = aligned_run(2), b = aligned_run(5);
  [[nodiscard]] std::vector<AlignedLane> by(AlignBy by) const {
    return aligned_lanes(a, b, align_steps(a, a.steps()[0], b, b.steps()[0], by));
  }
};

/// Of each row: stream, depth, and of either run what lies where, in ms of the scale.
std::string text_of(const AlignedRuns& runs, const std::vector<AlignedLane>& lanes) {
  std::string out;
  for (const AlignedLane& lane : lanes) {
    out += std::string(word(lane.stream)) + " " + std::to_string(lane.depth);
    for (std::size_t run = 0; run < 2; ++run) {
      out += run == 0 ? ": A" : ", B";
      for (const AlignedBox& box : lane.boxes[run])
        out += " " + label_of(run == 0 ? runs.a : runs.b, 0, box.span) + " " +
               std::to_string(box.at_ns / kAlignedMs) + "-" +
               std::to_string((box.at_ns + box.length_ns) / kAlignedMs);
    }
    out += "\n";
  }
  return out;
}

TEST(AlignedLanes, ModulesInModulesAndCollectivesGoWithThePartTheyLieIn) {
  const AlignedRuns runs;
  // Leaves are aligned, each as long as in B: 0-5 m1, 5-10 between, 10-15 m2, 15-20 m3, 20-30 the rest.
  EXPECT_EQ(text_of(runs, runs.by(AlignBy::module)),
            "compute 0: A forward 0-2 forward 5-7 forward 10-12 forward 15-17 backward 20-30, "
            "B forward 0-5 forward 5-10 forward 10-15 forward 15-20 backward 20-30\n"
            "compute 1: A m0 0-2 m0 5-7 m0 10-12 m3 15-17, B m0 0-5 m0 5-10 m0 10-15 m3 15-20\n"
            "compute 2: A m1 0-2 m2 10-12, B m1 0-5 m2 10-15\n"
            "gather 0: A all-gather 1 10-12 all-gather 2 16-17 all-gather 2 20-22, "
            "B all-gather 1 10-15 all-gather 2 19-20 all-gather 2 20-22\n");
  EXPECT_EQ(text_of(runs, runs.by(AlignBy::step)),
            "compute 0: A forward 0-8 backward 8-18, B forward 0-20 backward 20-30\n"
            "compute 1: A m0 0-6 m3 6-8, B m0 0-15 m3 15-20\n"
            "compute 2: A m1 0-2 m2 4-6, B m1 0-5 m2 10-15\n"
            "gather 0: A all-gather 1 4-6 all-gather 2 7-10, B all-gather 1 10-15 all-gather 2 19-22\n");
}

/// One run has more spans, and fewer depths, than the other.
TEST(AlignedLanes, OfARunWithTooManySpansTheOtherRunsAreStillThere) {
  store::Store many;
  store::ChunkBuilder events(0);
  constexpr std::int64_t kSpans = kMostBoxes + 1;
  events.host(0, AlignedKind::step_begin, 7);
  for (std::int64_t i = 0; i < kSpans; ++i) {
    events.compute(10 * i, AlignedKind::module_begin, 1);
    events.compute(10 * i + 5, AlignedKind::module_end, 1);
  }
  events.host(10 * kSpans, AlignedKind::step_end, 7);
  many.ingest(events.chunk);
  const store::Store few = aligned_run(2);
  const auto parts = align_steps(many, many.steps()[0], few, few.steps()[0], AlignBy::step);
  auto lanes = aligned_lanes(many, few, parts);
  ASSERT_EQ(lanes.size(), 4U);
  EXPECT_TRUE(lanes[0].too_many[0]);
  EXPECT_TRUE(lanes[0].boxes[0].empty());
  EXPECT_FALSE(lanes[0].too_many[1]);
  EXPECT_EQ(lanes[0].boxes[1].size(), 2U);
  EXPECT_FALSE(lanes[1].too_many[0]) << "there is nothing";

  see_crowded(lanes, many, few, visible_parts(parts, {1000, 1050}));
  EXPECT_TRUE(lanes[0].crowded[0]);
  EXPECT_FALSE(lanes[0].too_many[0]) << "zoomed in they are drawn";
  ASSERT_EQ(lanes[0].boxes[0].size(), 5U);
  EXPECT_EQ(lanes[0].boxes[0][1].at_ns, 1010);
  EXPECT_EQ(lanes[0].boxes[1].size(), 2U) << "the other run's are those of the whole step";
  see_crowded(lanes, many, few, parts);
  EXPECT_TRUE(lanes[0].too_many[0]);
}

/// A module with a wait in it, a copy, and the optimizer on the processor; each takes `ms`.
store::Store run_with_waits(std::uint32_t rank, std::int64_t ms) {
  const std::int64_t each = ms * kAlignedMs;
  store::Store store;
  store::ChunkBuilder events(rank);
  events.host(0, AlignedKind::step_begin, 7);
  events.compute(0, AlignedKind::module_begin, 1);
  events.compute(each, AlignedKind::fetch_wait_begin, 1);
  events.compute(2 * each, AlignedKind::fetch_wait_end, 1);
  events.compute(3 * each, AlignedKind::module_end, 1);
  events.add(3 * each, AlignedKind::transfer_begin, ev::StreamId::copy);
  events.add(4 * each, AlignedKind::transfer_end, ev::StreamId::copy);
  events.add(4 * each, AlignedKind::optimizer_begin, ev::StreamId::worker);
  events.add(5 * each, AlignedKind::optimizer_end, ev::StreamId::worker);
  events.host(5 * each, AlignedKind::step_end, 7);
  store.ingest(events.chunk);
  return store;
}

TEST(AlignedLanes, WaitsHaveARowOfTheirOwnAndCopiesAndTheOptimizerToo) {
  const store::Store a = run_with_waits(0, 1), b = run_with_waits(0, 2);
  const auto parts = align_steps(a, a.steps()[0], b, b.steps()[0], AlignBy::step);
  const auto lanes = aligned_lanes(a, b, parts);
  std::string rows;
  for (const AlignedLane& lane : lanes)
    rows += (lane.waits() ? "waits" : word(lane.stream)) + std::string(" ");
  EXPECT_EQ(rows, "compute compute waits copy worker ");
  ASSERT_EQ(lanes[2].boxes[1].size(), 1U);
  EXPECT_EQ(lanes[2].boxes[1][0].at_ns, 2 * kAlignedMs);
  EXPECT_EQ(lanes[2].boxes[1][0].length_ns, 2 * kAlignedMs);
  EXPECT_EQ(lanes_in(lanes, 1).size(), 4U) << "one of each, waits too";
}

TEST(AlignedLanes, AreOfTheChosenRankOfBothRuns) {
  store::Store a = aligned_run(2);
  const store::Store b = run_with_waits(3, 2);
  EXPECT_TRUE(common_ranks(a, b).empty());
  store::ChunkBuilder events(3);
  events.host(0, AlignedKind::step_begin, 7).compute(1000, AlignedKind::module_begin, 1);
  events.compute(2000, AlignedKind::module_end, 1).host(3000, AlignedKind::step_end, 7);
  a.ingest(events.chunk);
  EXPECT_EQ(common_ranks(a, b), std::vector<std::uint32_t>{3});
  const auto parts = align_steps(a, a.steps()[0], b, b.steps()[0], AlignBy::step, nullptr, 3);
  const auto lanes = aligned_lanes(a, b, parts, 3);
  ASSERT_FALSE(lanes.empty());
  ASSERT_EQ(lanes[0].boxes[0].size(), 1U) << "rank 0 of A has two modules";
  EXPECT_EQ(lanes[0].boxes[0][0].length_ns, 1000);
  EXPECT_EQ(rank_or_lowest(a, 3), 3U);
  EXPECT_EQ(rank_or_lowest(a, 9), 0U) << "no such rank: the lowest";
  EXPECT_FALSE(rank_or_lowest(store::Store(), 9));
}

/// The first span of this kind on a stream whose label is `label`.
store::Span span_named(const store::Store& store, ev::StreamId stream, const std::string& label) {
  for (std::uint8_t depth = 0; depth < store.depth_count({0, stream}); ++depth)
    for (const store::Span& span : store.spans({0, stream}, depth))
      if (label_of(store, 0, span) == label) return span;
  return {};
}

TEST(SpanPair, OfAModuleIsTheSameModuleOfTheOtherRun) {
  const AlignedRuns runs;
  const StepSide a{runs.a, runs.a.steps()[0], 0}, b{runs.b, runs.b.steps()[0], 0};
  const store::Span m2 = span_named(runs.a, ev::StreamId::compute, "m2");
  const SpanPair pair = pair_of(a, b, ev::StreamId::compute, m2);
  EXPECT_EQ(pair.name, "m2 forward");
  EXPECT_EQ(pair.own_ns, 2 * kAlignedMs);
  EXPECT_EQ(pair.other_ns, 5 * kAlignedMs);
  const Details tip = pair_details(pair, 0, false);
  EXPECT_EQ(tip.subtitle, "of A, rank 0");
  ASSERT_EQ(tip.fields.size(), 3U);
  EXPECT_EQ(tip.fields[2].value, "+3.00 ms, +150 %");
  // Seen from B the difference is the same: always B minus A.
  const store::Span of_b = span_named(runs.b, ev::StreamId::compute, "m2");
  const Details back = pair_details(pair_of(b, a, ev::StreamId::compute, of_b), 0, true);
  EXPECT_EQ(back.subtitle, "of B, rank 0");
  EXPECT_EQ(back.fields[2].value, "+3.00 ms, +150 %");
}

TEST(SpanPair, CollectivesOfOneSizeArePairedInOrder) {
  const AlignedRuns runs;
  const StepSide a{runs.a, runs.a.steps()[0], 0}, b{runs.b, runs.b.steps()[0], 0};
  const store::Span second = span_named(runs.a, ev::StreamId::gather, "all-gather 2");
  const SpanPair pair = pair_of(a, b, ev::StreamId::gather, second);
  EXPECT_EQ(pair.place, 1U);
  EXPECT_EQ(pair.own_ns, 3 * kAlignedMs);
  EXPECT_EQ(pair.other_ns, 3 * kAlignedMs);
  EXPECT_EQ(pair_details(pair, 0, false).reason, "Number 2 of 2 in this step, paired with the same number.");
  EXPECT_EQ(difference_text(3, 3), "0 ns, 0.0 %");
  EXPECT_EQ(difference_text(4'000'000, 3'000'000), "\u22121.00 ms, \u221225 %");

  const store::Store none = run_with_waits(0, 2);
  const SpanPair alone = pair_of(a, {none, none.steps()[0], 0}, ev::StreamId::gather, second);
  EXPECT_FALSE(alone.other_ns);
  const Details tip = pair_details(alone, 0, false);
  EXPECT_EQ(tip.fields.size(), 2U) << "no difference";
  EXPECT_EQ(tip.fields[1].value, "\u2013");
  EXPECT_EQ(tip.reason, "B has none in this step.");
}

TEST(AlignedLanes, WhereThereIsLittleRoomInnerDepthsOfTheComputationGoFirst) {
  using enum ev::StreamId;
  std::vector<AlignedLane> lanes;
  for (const ev::StreamId stream : {compute, compute, compute, gather, gather, reduce}) {
    const bool outermost = lanes.empty() || lanes.back().stream != stream;
    lanes.push_back(
        {stream, outermost ? std::uint8_t{0} : static_cast<std::uint8_t>(lanes.back().depth + 1)});
  }
  using Rows = std::vector<std::size_t>;
  EXPECT_EQ(lanes_in(lanes, 9), (Rows{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(lanes_in(lanes, 5), (Rows{0, 1, 3, 4, 5}));
  EXPECT_EQ(lanes_in(lanes, 4), (Rows{0, 3, 4, 5}));
  EXPECT_EQ(lanes_in(lanes, 3), (Rows{0, 3, 5}));
  EXPECT_EQ(lanes_in(lanes, 1), (Rows{0, 3, 5})) << "one of each stream stays";
}

}  // namespace
}  // namespace shardscope::gui
