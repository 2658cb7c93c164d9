// The lanes under two aligned runs: what lies in a part goes where the part goes, at every depth.
#include "app/gui/model/aligned_lanes.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "app/gui/model/names.h"
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
    return aligned_lanes(a, a.steps()[0], b, b.steps()[0], align_steps(a, a.steps()[0], b, b.steps()[0], by));
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
  const auto lanes = aligned_lanes(many, many.steps()[0], few, few.steps()[0], parts);
  ASSERT_EQ(lanes.size(), 4U);
  EXPECT_TRUE(lanes[0].too_many[0]);
  EXPECT_TRUE(lanes[0].boxes[0].empty());
  EXPECT_FALSE(lanes[0].too_many[1]);
  EXPECT_EQ(lanes[0].boxes[1].size(), 2U);
  EXPECT_FALSE(lanes[1].too_many[0]) << "there is nothing";
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
