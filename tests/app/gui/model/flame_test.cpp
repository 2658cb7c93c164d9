// The flame tree against sums that are known or taken here by walking all spans.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "app/gui/model/find_spans.h"
#include "app/gui/model/flame_of_range.h"
#include "app/gui/model/flame_text.h"
#include "app/gui/model/names.h"
#include "app/store/lane_name.h"
#include "app/store/span_time.h"
#include "tests/app/gui/model_fixture.h"
#include "tests/app/store/event_builder.h"
#include "tests/app/store/odd_ends.h"
#include "tests/app/store/own_spans.h"
#include "tests/app/store/synthetic_gpu.h"

namespace shardscope::gui {
namespace {

using namespace std::chrono_literals;
using Kind = ev::EventKind;

FlameTree counted(const store::Store& store, TimeRange range, std::size_t most_nodes = 20'000,
                  FlameOf of = FlameOf::compute) {
  FlameTree tree;
  tree.start(store, {range, store.revision(), of, most_nodes});
  while (tree.advance(store, 1h)) {
  }
  return tree;
}

std::uint32_t node_of(const FlameTree& tree, const std::vector<std::string>& path) {
  const std::uint32_t at = tree.at_path(path);
  EXPECT_EQ(tree.path(at), path);
  return at;
}

/// Rank 0: forward 0 to 100 with module 0 from 10 to 90, in it module 1 twice (20 to 40, 50 to 80), in the
/// second of them a wait from 50 to 55. Rank 1: the same, but module 1 once, from 20 to 30.
store::Store by_hand() {
  store::Store store;
  ev::RunTables tables;
  tables.world = 2;
  tables.model = "toy";
  tables.modules = {{0, ev::kNoId, "body", "Body", {}, true}, {1, 0, "body.mlp", "Mlp", {}, true}};
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    tables.rank = rank;
    store.set_tables(rank, tables);
    store::ChunkBuilder events(rank);
    const auto phase = static_cast<std::uint8_t>(ev::Phase::forward);
    const auto pass = static_cast<std::uint8_t>(ev::Pass::forward);
    events.compute(0, Kind::phase_begin, ev::kNoId, phase);
    events.compute(10, Kind::module_begin, 0, pass);
    events.compute(20, Kind::module_begin, 1, pass);
    events.compute(rank == 0 ? 40 : 30, Kind::module_end, 1, pass);
    if (rank == 0) {
      events.compute(50, Kind::module_begin, 1, pass);
      events.compute(50, Kind::fetch_wait_begin, 1);
      events.compute(55, Kind::fetch_wait_end, 1);
      events.compute(80, Kind::module_end, 1, pass);
    }
    events.compute(90, Kind::module_end, 0, pass);
    events.compute(100, Kind::phase_end, ev::kNoId, phase);
    store.ingest(events.chunk);
  }
  return store;
}

TEST(Flame, AddsUpTheSameUnderTheSameWithItsOwnTime) {
  const store::Store store = by_hand();
  const FlameTree tree = counted(store, {0, 1000});
  ASSERT_EQ(tree.ranks(), (std::vector<std::uint32_t>{0, 1}));
  const std::uint32_t forward = node_of(tree, {"forward"});
  const std::uint32_t body = node_of(tree, {"forward", "body forward"});
  const std::uint32_t mlp = node_of(tree, {"forward", "body forward", "body.mlp forward"});
  const std::uint32_t wait =
      node_of(tree, {"forward", "body forward", "body.mlp forward", "waits for parameters"});
  EXPECT_EQ(tree.nodes().size(), 5U);
  EXPECT_EQ(tree.nodes()[0].total_ns, 200);
  EXPECT_EQ(tree.nodes()[forward].self_ns(), 40);
  EXPECT_EQ(tree.nodes()[body].total_ns, 160);
  EXPECT_EQ(tree.nodes()[body].self_ns(), 160 - 60);
  EXPECT_EQ(tree.nodes()[mlp].total_ns, 60);
  EXPECT_EQ(tree.nodes()[mlp].count, 3U);
  EXPECT_EQ(tree.nodes()[wait].total_ns, 5);
  EXPECT_EQ(tree.total_of(mlp, 0), 50);
  EXPECT_EQ(tree.total_of(mlp, 1), 10);
  EXPECT_EQ(tree.self_of(mlp, 0), 45);
  EXPECT_EQ(tree.nodes()[mlp].longest_ns, 30);
  EXPECT_EQ(tree.nodes()[mlp].lane.rank, 0U);
  EXPECT_EQ(tree.nodes()[mlp].longest.begin_ns, 50);
  EXPECT_EQ(folded_stacks(tree),
            "forward 40\nforward;body forward 100\nforward;body forward;body.mlp forward 55\n"
            "forward;body forward;body.mlp forward;waits for parameters 5\n");
}

TEST(Flame, SpansAreCutAtTheEndsOfTheRange) {
  const store::Store store = by_hand();
  const FlameTree tree = counted(store, {25, 60});
  const std::uint32_t mlp = node_of(tree, {"forward", "body forward", "body.mlp forward"});
  EXPECT_EQ(tree.nodes()[0].total_ns, 70);
  EXPECT_EQ(tree.total_of(mlp, 0), 15 + 10);
  EXPECT_EQ(tree.total_of(mlp, 1), 5);
  EXPECT_EQ(tree.nodes()[mlp].count, 3U);
  EXPECT_EQ(tree.nodes()[mlp].longest_ns, 15) << "the part of it within the range";
  EXPECT_EQ(counted(store, {200, 300}).nodes().size(), 1U);
}

/// Two steps of forward and backward.
TEST(Flame, WhatReachesIntoTheRangeFromBeforeDoesNotComeFirst) {
  store::Store store;
  store::ChunkBuilder events(0);
  const auto phase = [](ev::Phase which) { return static_cast<std::uint8_t>(which); };
  for (const std::int64_t step : {0, 100}) {
    events.compute(step, Kind::phase_begin, ev::kNoId, phase(ev::Phase::forward));
    events.compute(step + 30, Kind::phase_end, ev::kNoId, phase(ev::Phase::forward));
    events.compute(step + 40, Kind::phase_begin, ev::kNoId, phase(ev::Phase::backward));
    events.compute(step + 90, Kind::phase_end, ev::kNoId, phase(ev::Phase::backward));
  }
  store.ingest(events.chunk);
  const auto names = [&](TimeRange range) {
    const FlameTree tree = counted(store, range);
    std::string out;
    for (const std::uint32_t child : tree.nodes()[0].children) out += tree.name(child) + " ";
    return out;
  };
  EXPECT_EQ(names({0, 200}), "forward backward ");
  EXPECT_EQ(names({80, 200}), "forward backward ");
  EXPECT_EQ(names({110, 200}), "backward forward ") << "only a rest of forward is in it";
}

TEST(Flame, SpansOfTheProgramsOwnHaveTheNamesOfTheirRank) {
  const FlameTree tree = counted(store::own_spans(), {0, 1000});
  EXPECT_EQ(tree.nodes().size(), 3U);
  EXPECT_EQ(tree.nodes()[node_of(tree, {"load"})].total_ns, 20);
  EXPECT_EQ(tree.nodes()[node_of(tree, {"save"})].total_ns, 6);
}

TEST(Flame, MoreNodesThanAreKeptAreOwnTimeOfWhatTheyLieIn) {
  const store::Store store = by_hand();
  const FlameTree tree = counted(store, {0, 1000}, 3);
  EXPECT_TRUE(tree.cut_short());
  EXPECT_EQ(tree.nodes().size(), 3U);
  const std::uint32_t body = node_of(tree, {"forward", "body forward"});
  EXPECT_EQ(tree.nodes()[body].self_ns(), 160);
  EXPECT_EQ(tree.nodes()[0].total_ns, 200);
  EXPECT_FALSE(counted(store, {0, 1000}).cut_short());
}

class FlameOfARun : public Model {};

/// Time of all spans of a name on the compute streams, and without what lies directly inside.
struct Sums {
  std::int64_t total = 0, self = 0;
  std::uint64_t count = 0;
  friend bool operator==(const Sums&, const Sums&) = default;
};
std::map<std::string, Sums> walked(const store::Store& store) {
  std::map<std::string, Sums> out;
  for (const store::RankRow& row : store.ranks()) {
    const store::LaneId lane{row.rank, ev::StreamId::compute};
    for (std::uint8_t depth = 0; depth < store.depth_count(lane); ++depth) {
      for (const store::Span& span : store.spans(lane, depth)) {
        Sums& sums = out[shared_name(store, row.rank, span)];
        const std::int64_t ns = store::time_of(store, row.rank, span).running_ns;
        sums.total += ns;
        sums.self += ns;
        ++sums.count;
        for (const store::Span& child : store.spans(lane, static_cast<std::uint8_t>(depth + 1))) {
          if (child.begin_ns >= span.begin_ns && child.begin_ns < span.end_ns)
            sums.self -= store::time_of(store, row.rank, child).running_ns;
        }
      }
    }
  }
  return out;
}
std::map<std::string, Sums> summed(const FlameTree& tree) {
  std::map<std::string, Sums> out;
  for (std::uint32_t node = 1; node < tree.nodes().size(); ++node) {
    Sums& sums = out[tree.name(node)];
    sums.total += tree.nodes()[node].total_ns;
    sums.self += tree.nodes()[node].self_ns();
    sums.count += tree.nodes()[node].count;
  }
  return out;
}

TEST_F(FlameOfARun, EverySpanIsInItOnceWithItsTime) {
  const FlameTree tree = counted(data(), {0, data().end_ns() + 1});
  const auto expected = walked(data());
  ASSERT_GT(expected.size(), 15U);
  EXPECT_EQ(summed(tree), expected);
  for (std::uint32_t node = 0; node < tree.nodes().size(); ++node) {
    std::int64_t of_ranks = 0;
    for (std::size_t rank = 0; rank < tree.ranks().size(); ++rank) of_ranks += tree.total_of(node, rank);
    EXPECT_EQ(of_ranks, tree.nodes()[node].total_ns) << tree.name(node);
  }
}

/// A piece ends where a block does, and where there are many spans: what reaches over is in both with its
/// part.
TEST_F(FlameOfARun, PiecesMakeNoDifference) {
  store::Store sealed;
  sealed.seal_after(500);
  store::fill_store(sealed, store::make_synthetic_run());
  ASSERT_GT(sealed.cuts({0, ev::StreamId::compute}).size(), 1U);
  const TimeRange part{data().end_ns() / 3, data().end_ns() * 2 / 3};
  for (const TimeRange& range : {TimeRange{0, data().end_ns() + 1}, part})
    EXPECT_EQ(folded_stacks(counted(sealed, range)), folded_stacks(counted(data(), range)));
}

TEST(Flame, APauseIsInNoTime) {
  const auto computed = [](bool held) {
    const store::Store store = store::odd_ends(held);
    return counted(store, {0, store.end_ns() + 1}).nodes()[0].total_ns;
  };
  EXPECT_LT(computed(true), computed(false) / 5);
}

TEST_F(FlameOfARun, BoxesLieInWhatIsAboveThemAndNarrowOnesAreOne) {
  const FlameTree tree = counted(data(), {0, data().end_ns() + 1});
  const std::uint32_t levels = flame_levels(tree, 0);
  ASSERT_GT(levels, 3U);
  for (const std::optional<std::size_t> rank :
       {std::optional<std::size_t>(), std::optional<std::size_t>(2)}) {
    const auto all = flame_frames(tree, 0, rank, levels, 1);
    std::size_t boxes = 0;
    for (std::uint32_t node = 0; node < tree.nodes().size(); ++node)
      boxes += (rank ? tree.total_of(node, *rank) : tree.nodes()[node].total_ns) > 0 ? 1 : 0;
    EXPECT_EQ(all.size(), boxes);
    std::map<std::uint32_t, FlameFrame> of;
    for (const FlameFrame& frame : all) {
      of[frame.node] = frame;
      if (frame.node == 0) continue;
      const FlameFrame& around = of.at(tree.nodes()[frame.node].parent);
      EXPECT_EQ(frame.level, around.level + 1);
      EXPECT_GE(frame.begin_ns, around.begin_ns);
      EXPECT_LE(frame.begin_ns + frame.width_ns, around.begin_ns + around.width_ns);
    }
    // Their time is not lost where they are folded.
    const auto level_sum = [](const std::vector<FlameFrame>& frames, std::uint32_t level) {
      std::int64_t sum = 0;
      for (const FlameFrame& frame : frames) sum += frame.level == level ? frame.width_ns : 0;
      return sum;
    };
    const std::int64_t wide = all.front().width_ns / 20;
    const auto folded = flame_frames(tree, 0, rank, levels, wide);
    EXPECT_LT(folded.size(), all.size());
    EXPECT_TRUE(std::ranges::any_of(folded, [](const FlameFrame& frame) { return frame.folded > 1; }));
    EXPECT_GT(level_sum(folded, 1), level_sum(all, 1) - wide * 2);
    for (const FlameFrame& frame : folded) EXPECT_GE(frame.width_ns, wide);
  }
  EXPECT_EQ(flame_frames(tree, 0, std::nullopt, 2, 1).back().level, 1U);
}

TEST_F(FlameOfARun, WhatFindLooksForIsCountedOnce) {
  const FlameTree tree = counted(data(), {0, data().end_ns() + 1});
  EXPECT_TRUE(flame_finds("ATTN forward", "h.0.attn forward", "compute"));
  EXPECT_TRUE(flame_finds("attn compute", "h.0.attn forward", "compute"));
  EXPECT_TRUE(flame_finds("\"h.0.attn forward\"", "h.0.attn forward", "compute"));
  EXPECT_FALSE(flame_finds("\"attn\"", "h.0.attn forward", "compute"));
  std::int64_t outermost = 0;
  for (const std::uint32_t child : tree.nodes()[0].children) outermost += tree.nodes()[child].total_ns;
  EXPECT_EQ(found_ns(tree, 0, ""), outermost) << "all of them are found; their children are not added";
  std::int64_t mlp = 0;
  for (std::uint32_t node = 1; node < tree.nodes().size(); ++node)
    mlp += tree.name(node).ends_with(".mlp backward") ? tree.nodes()[node].total_ns : 0;
  ASSERT_GT(mlp, 0);
  EXPECT_EQ(found_ns(tree, 0, "mlp backward"), mlp);
  EXPECT_EQ(found_ns(tree, 0, "nothing is called so"), 0);
}

TEST_F(FlameOfARun, WordsSayWhoseTimeItIsAndHowMuchIsItsOwn) {
  const FlameTree tree = counted(by_hand(), {0, 1000});
  const std::uint32_t mlp = tree.at_path({"forward", "body forward", "body.mlp forward"});
  EXPECT_EQ(flame_times(tree, mlp, std::nullopt).text(), "30 ns, self 27 ns");
  EXPECT_EQ(flame_times(tree, tree.nodes()[mlp].parent, 1).text(), "80 ns, self 70 ns");
  EXPECT_EQ(flame_times(tree, tree.nodes()[mlp].children[0], 0).text(), "5 ns");
  EXPECT_EQ(flame_label(tree, mlp, 40), "mlp") << "body and forward stand above it";
  EXPECT_EQ(flame_label(tree, tree.nodes()[mlp].parent, 40), "body");
  const Details details = flame_details(tree, 0, {mlp, 0, std::nullopt, 0});
  const auto value = [&](const std::string& label) {
    const auto found = std::ranges::find(details.fields, label, &Field::label);
    return found == details.fields.end() ? "no such field" : found->value;
  };
  EXPECT_EQ(value("time, mean of 2 ranks"), "30 ns");
  EXPECT_EQ(value("of its parent"), "37.5");
  EXPECT_EQ(value("of all spans"), "30.0");
  EXPECT_EQ(value("longest on"), "rank 0, 50 ns");
  EXPECT_EQ(value("shortest on"), "rank 1, 10 ns");
}

TEST_F(FlameOfARun, TheTreeFollowsTheRangeAndFindsItsPlaceAgain) {
  FlameOfRange flame;
  const auto settle = [&] {
    while (flame.advance(app_, FlameScope::range, FlameOf::compute, 1h)) {
    }
  };
  settle();
  const std::uint64_t version = flame.version();
  EXPECT_EQ(flame.tree().query().range, app_.time.range());
  const std::vector<std::string> path = flame.tree().path(flame.tree().nodes()[1].children.front());
  settle();
  EXPECT_EQ(flame.version(), version) << "nothing has changed";
  app_.measured = TimeRange{0, data().end_ns() / 2};
  settle();
  EXPECT_GT(flame.version(), version);
  EXPECT_EQ(flame.tree().query().range, *app_.measured);
  EXPECT_EQ(flame.tree().path(flame.tree().at_path(path)), path);
  EXPECT_TRUE(flame_heading(app_, FlameScope::range, FlameSplit::over_ranks, flame.tree())
                  .starts_with("measured range, "));
  while (flame.advance(app_, FlameScope::run, FlameOf::compute, 1h)) {
  }
  EXPECT_EQ(flame.tree().query().range, (TimeRange{0, data().end_ns() + 1}));
}

/// Each kernel and copy once, under its stream and what launched it; streams side by side are added up.
TEST(Flame, WorkOfTheGpuIsByStreamByOwnerAndByName) {
  const store::Store store = store::make_synthetic_gpu_store();
  const TimeRange range{store.end_ns() / 4, store.end_ns() * 3 / 4};
  EXPECT_TRUE(has_gpu_streams(store));
  EXPECT_FALSE(has_gpu_streams(by_hand()));
  const FlameTree tree = counted(store, range, 20'000, FlameOf::gpu);
  std::map<std::vector<std::string>, std::pair<std::int64_t, std::uint64_t>> expected;
  std::int64_t all = 0;
  for (const store::RankRow& row : store.ranks()) {
    for (const store::LaneId lane : store.lanes()) {
      if (lane.rank != row.rank || !ev::is_gpu_stream(lane.stream)) continue;
      for (const store::Span& span : store.spans(lane, 0)) {
        if (span.end_ns <= range.begin_ns || span.begin_ns >= range.end_ns) continue;
        const auto fields = ev::as<Kind::gpu_begin>(span);
        const std::string owner = fields.owner_kind == ev::GpuOwner::collective ? "collectives"
                                  : fields.owner_kind == ev::GpuOwner::none     ? "no recorded launcher"
                                                                                : gpu_owner(store, fields);
        auto& [ns, count] =
            expected[{store::lane_name(store, lane), owner, shared_name(store, row.rank, span)}];
        const std::int64_t within =
            store::time_within(store, row.rank, span, range.begin_ns, range.end_ns).running_ns;
        ns += within;
        all += within;
        ++count;
      }
    }
  }
  ASSERT_GT(expected.size(), 5U);
  std::size_t leaves = 0;
  for (std::uint32_t node = 1; node < tree.nodes().size(); ++node) {
    const FlameNode& of = tree.nodes()[node];
    if (!of.children.empty()) {
      EXPECT_EQ(of.self_ns(), 0) << tree.name(node);
      continue;
    }
    ++leaves;
    const auto [ns, count] = expected.at(tree.path(node));
    EXPECT_EQ(of.total_ns, ns);
    EXPECT_EQ(of.count, count);
    EXPECT_EQ(flame_stream(tree, node), tree.path(node).front());
  }
  EXPECT_EQ(leaves, expected.size());
  EXPECT_EQ(tree.nodes()[0].total_ns, all);
  EXPECT_GT(found_ns(tree, 0, "\"GPU gather\""), 0);
  EXPECT_EQ(found_ns(tree, 0, "\"GPU copy\""), 0);
}

}  // namespace
}  // namespace shardscope::gui
