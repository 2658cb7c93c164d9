// Virtual times against closed forms: one layer, one collective, overlap, stragglers; and what must hold of
// any simulation: determinism, and memory and volume as the plan says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "instrumentation/bus_factor.h"
#include "runtime/plan/memory_model.h"
#include "runtime/plan/ownership.h"
#include "runtime/plan/zero_traffic.h"
#include "tests/instrumentation/packed_codes.h"
#include "tests/runtime/engine/support.h"
#include "tests/runtime/simulate/support.h"

namespace shardscope::simulate::testing {
namespace {

using engine::testing::make_config;
using engine::testing::model_named;
using instrumentation::CollectiveOp;
using instrumentation::EventKind;

plan::ModelSpec one_layer(std::int64_t in, std::int64_t out) {
  return plan::parse_model_spec(Json{
      {"name", "layer"},
      {"input", {{"kind", "vectors"}, {"width", in}}},
      {"loss", {{"kind", "mse"}, {"width", out}}},
      {"root",
       {{"kind", "sequential"},
        {"children", {{{"kind", "linear"}, {"name", "fc"}, {"in", in}, {"out", out}, {"bias", false}}}}}}}
                                    .dump());
}

/// Spans of `kind` with `code` on `rank`: begin and end.
std::vector<std::pair<std::int64_t, std::int64_t>> spans(const Play& play, std::uint32_t rank, EventKind kind,
                                                         int code = -1) {
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  std::vector<std::int64_t> open;
  for (const Event& e : play.events[rank]) {
    if (code >= 0 && e.code != code) continue;
    if (e.kind == kind) open.push_back(static_cast<std::int64_t>(e.ticks));
    if (e.kind == instrumentation::end_of(kind) && !open.empty()) {
      found.emplace_back(open.back(), static_cast<std::int64_t>(e.ticks));
      open.pop_back();
    }
  }
  return found;
}

class TimesTest : public ::testing::Test {
 protected:
  DetailGuard detail{instrumentation::Detail::params};
};

TEST_F(TimesTest, ForwardOfOneLayerIsItsRoofline) {
  // 10^12 operations and 10^9 bytes per second: memory decides.
  const std::int64_t N = 4, in = 1000, out = 500;
  Play play(one_layer(in, out), make_config(0), 1, on_round_hardware());
  play.run(2);
  const auto forward = spans(play, 0, EventKind::phase_begin, 0);
  ASSERT_EQ(forward.size(), 2U);
  // Three matrices; then the loss reads the output and the labels and writes the gradient.
  const std::int64_t layer = 4 * (N * in + in * out + N * out);
  const std::int64_t loss = 4 * (3 * N * out);
  for (const auto& [begin, end] : forward) EXPECT_EQ(end - begin, layer + loss);
}

TEST_F(TimesTest, ArithmeticDecidesWhereMemoryIsFast) {
  const std::int64_t N = 4, in = 1000, out = 500;
  SimulationOptions options = on_round_hardware();
  options.hardware.memory_gb_per_s = 1e12;
  options.hardware.matrix_efficiency = 0.5;
  options.hardware.kernel_us = 2;
  Play play(one_layer(in, out), make_config(0), 1, options);
  play.run(1);
  const auto modules = spans(play, 0, EventKind::module_begin, 0);
  ASSERT_FALSE(modules.empty());
  // The innermost ends first: the layer. 2 N in out operations at half of 10^3 per nanosecond, and its start.
  EXPECT_EQ(modules.front().second - modules.front().first, 2 * N * in * out / 500 + 2000);
}

/// Each takes its latency and `factor` times its traffic, on rank 0.
void expect_closed_form(const Play& play, std::uint32_t world, double factor) {
  std::map<std::uint32_t, Event> begun;
  std::size_t seen = 0;
  for (const Event& e : play.events[0]) {
    if (e.kind == EventKind::collective_entered) begun[e.a] = e;
    if (e.kind != EventKind::collective_end || begun.count(e.a) == 0) continue;
    const double bytes =
        static_cast<double>(e.v1) * instrumentation::bus_factor(static_cast<CollectiveOp>(e.code), world);
    EXPECT_NEAR(static_cast<double>(e.ticks - begun[e.a].ticks),
                1000 * std::ceil(std::log2(world)) + factor * bytes,
                std::max(1.0, factor));  // rounded to whole nanoseconds
    ++seen;
  }
  EXPECT_GE(seen, 2U) << "world " << world;
}

TEST_F(TimesTest, ACollectiveTakesLatencyAndItsTraffic) {
  for (const std::uint32_t world : {2U, 4U, 8U}) {
    Play play(one_layer(1000, 500), make_config(3), world, on_round_hardware());
    play.run(1);
    expect_closed_form(play, world, 1);
  }
}

/// Also on ranks whose own links are not slow: the bytes pass the slow one.
TEST_F(TimesTest, ASlowLinkStretchesTheTrafficOfItsGroupsOnly) {
  SimulationOptions options = on_round_hardware();
  options.variation.link_slowness = {1, 1, 2.5, 1};
  Play all(one_layer(1000, 500), make_config(3), 4, options);
  all.run(1);
  expect_closed_form(all, 4, 2.5);
  // MiCS: ranks 0 and 1 gather without rank 2.
  Json apart = make_config(3);
  apart["zero_optimization"]["mics_shard_size"] = 2;
  Play groups(one_layer(1000, 500), apart, 4, options);
  groups.run(1);
  const auto first_gather = [&](std::uint32_t rank) {
    std::uint64_t entered = 0;
    for (const Event& e : groups.events[rank]) {
      if (e.stream != StreamId::gather) continue;
      if (e.kind == EventKind::collective_entered) entered = e.ticks;
      if (e.kind == EventKind::collective_end) return static_cast<double>(e.ticks - entered) - 1000;
    }
    return 0.0;
  };
  EXPECT_GT(first_gather(0), 0);
  EXPECT_EQ(first_gather(0), first_gather(1));
  EXPECT_NEAR(first_gather(2), 2.5 * first_gather(0), 2.5);
  EXPECT_EQ(first_gather(2), first_gather(3));
}

TEST_F(TimesTest, ATransferToADiskTakesLatencyAndItsBytes) {
  Json config = make_config(3, 1, "bf16");
  config["zero_optimization"]["offload_optimizer"] = {{"device", "nvme"}, {"nvme_path", "/nowhere"}};
  SimulationOptions options = on_round_hardware();
  options.hardware.nvme = {0.5, 3};
  Play play(model_named("mlp"), config, 2, options);
  play.run(2);
  std::map<instrumentation::TransferKind, int> seen;
  std::optional<Event> begun;
  for (const Event& e : play.events[0]) {
    if (e.stream != StreamId::nvme) continue;
    if (e.kind == EventKind::transfer_begin) begun = e;
    if (e.kind != EventKind::transfer_end) continue;
    ASSERT_TRUE(begun.has_value());
    EXPECT_EQ(static_cast<std::int64_t>(e.ticks - begun->ticks), 3000 + 2 * e.v0);
    ++seen[static_cast<instrumentation::TransferKind>(e.code)];
  }
  EXPECT_GT(seen[instrumentation::TransferKind::nvme_read], 0);
  EXPECT_GT(seen[instrumentation::TransferKind::nvme_write], 0);
}

TEST_F(TimesTest, GroupsAcrossNodesShareTheNodesLinks) {
  const CostModel cost([] {
    Hardware h = round_hardware();
    h.inside = {100, 0};
    h.between = {40, 0};  // of a node
    return h;
  }());
  constexpr std::int64_t kBytes = 1'000'000;
  const auto ns = [&](std::uint32_t ranks, std::uint32_t nodes) {
    return cost.collective_moving_ns(CollectiveOp::all_gather, kBytes, {ranks, nodes});
  };
  EXPECT_EQ(ns(1, 1), 0);
  EXPECT_EQ(ns(8, 1), std::llround(kBytes * (7.0 / 8) / 100));
  EXPECT_EQ(ns(16, 2), std::llround(kBytes * (15.0 / 16) / 40));  // whole nodes have all links
  EXPECT_EQ(ns(2, 2), std::llround(kBytes * 0.5 / 5));            // one rank of eight: an eighth of them
}

/// A collective of one rank while it moves.
struct Moving {
  std::int64_t begin_ns = 0, end_ns = 0;
  double alone_ns = 0;     ///< what it would take with links of its own
  double progress_ns = 0;  ///< what equal shares of them give
  bool inside = false;
  bool shared = false;
};

std::vector<Moving> moving_of(const Play& play, std::uint32_t world) {
  std::vector<Moving> found;
  std::map<std::pair<StreamId, std::uint32_t>, std::int64_t> entered;
  for (const Event& e : play.events[0]) {
    if (e.kind == EventKind::collective_entered)
      entered[{e.stream, e.a}] = static_cast<std::int64_t>(e.ticks);
    if (e.kind != EventKind::collective_end || entered.count({e.stream, e.a}) == 0) continue;
    const std::uint32_t group = instrumentation::ranks_of(e.c) == 0 ? world : instrumentation::ranks_of(e.c);
    const double bytes =
        static_cast<double>(e.v1) * instrumentation::bus_factor(static_cast<CollectiveOp>(e.code), group);
    const auto latency = static_cast<std::int64_t>(1000 * std::ceil(std::log2(group)));
    found.push_back({entered[{e.stream, e.a}] + latency, static_cast<std::int64_t>(e.ticks), bytes, 0,
                     instrumentation::scope_of(e.c) == instrumentation::CollectiveScope::secondary});
  }
  return found;
}

TEST_F(TimesTest, CollectivesAtOnceShareTheLinksThatTheyBothUse) {
  Json config = make_config(3, 2);
  config["zero_optimization"]["reduce_bucket_size"] = 20000;
  config["zero_optimization"]["stage3_prefetch_bucket_size"] = 20000;
  config["zero_optimization"]["stage3_param_persistence_threshold"] = 0;
  config["zero_optimization"]["stage3_max_reuse_distance"] = 0;
  for (const bool hpz : {false, true}) {
    if (hpz) config["zero_optimization"]["zero_hpz_partition_size"] = 2;
    SimulationOptions options = on_round_hardware();
    options.hardware.ranks_per_node = hpz ? 2 : 8;
    options.hardware.between = {2, 1};  // of a node of two ranks: each has as much as inside
    Play play(model_named("mlp"), config, 4, options);
    play.run(3);
    std::vector<Moving> all = moving_of(play, 4);
    std::vector<std::int64_t> instants;
    for (const Moving& m : all) instants.insert(instants.end(), {m.begin_ns, m.end_ns});
    std::sort(instants.begin(), instants.end());
    for (std::size_t i = 1; i < instants.size(); ++i) {
      for (const bool inside : {false, true}) {
        std::vector<Moving*> now;
        for (Moving& m : all) {
          if (m.inside == inside && m.begin_ns <= instants[i - 1] && m.end_ns >= instants[i])
            now.push_back(&m);
        }
        if (instants[i] == instants[i - 1]) continue;
        for (Moving* m : now) {
          m->progress_ns +=
              static_cast<double>(instants[i] - instants[i - 1]) / static_cast<double>(now.size());
          m->shared |= now.size() > 1;
        }
      }
    }
    for (const Moving& m : all)
      EXPECT_NEAR(m.progress_ns, m.alone_ns, 2) << "from " << m.begin_ns << " to " << m.end_ns;
    // Some shared; with hpZ the gathers of the backward are inside, and no reduction disturbed them.
    EXPECT_GT(std::ranges::count_if(all, hpz ? &Moving::inside : &Moving::shared), 3);
  }
}

TEST_F(TimesTest, RanksMeetAtTheLastArrival) {
  SimulationOptions options = on_round_hardware();
  options.variation.slowness = {1, 1, 3, 1};
  Play play(model_named("mlp"), make_config(2), 4, options);
  play.run(2);
  Play even(model_named("mlp"), make_config(2), 4, on_round_hardware());
  even.run(2);
  EXPECT_GT(play.step_ns[1], even.step_ns[1]);
  // Same collective: everybody's transfer begins when the last has come, which is the straggler.
  std::map<std::uint32_t, std::vector<std::int64_t>> begin, entered;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    for (const Event& e : play.events[rank]) {
      if (e.stream != StreamId::reduce) continue;
      if (e.kind == EventKind::collective_begin) begin[e.a].push_back(static_cast<std::int64_t>(e.ticks));
      if (e.kind == EventKind::collective_entered) entered[e.a].push_back(static_cast<std::int64_t>(e.ticks));
    }
  }
  ASSERT_FALSE(entered.empty());
  for (const auto& [sequence, times] : entered) {
    ASSERT_EQ(times.size(), 4U);
    EXPECT_EQ(*std::min_element(times.begin(), times.end()), *std::max_element(times.begin(), times.end()));
    EXPECT_EQ(times[0], *std::max_element(begin[sequence].begin(), begin[sequence].end()));
    EXPECT_EQ(times[0], begin[sequence][2]) << "rank 2 is the slow one";
  }
}

TEST_F(TimesTest, OverlapHidesWhatTheCriticalPathSays) {
  // Stage 2, one bucket for each layer. Without overlap compute waits for each reduction; with it, only for
  // what is not done when backward ends.
  const auto run = [&](bool overlap) {
    Json config = make_config(2);
    config["zero_optimization"]["overlap_comm"] = overlap;
    config["zero_optimization"]["reduce_bucket_size"] = 9000;
    auto play = std::make_unique<Play>(model_named("mlp"), config, 2, on_round_hardware());
    play->run(3);
    return play;
  };
  const auto with = run(true);
  const auto without = run(false);
  ASSERT_LT(with->step_ns[2], without->step_ns[2]);
  // Times of the reduce lane inside the third step's backward that compute did not wait for are what overlap
  // saves: all of them without overlap are waits.
  const auto waited = [](const Play& play) {
    std::int64_t ns = 0;
    const auto backward = spans(play, 0, EventKind::phase_begin, 1);
    for (const auto& [begin, end] : spans(play, 0, EventKind::reduce_wait_begin)) {
      if (begin >= backward[2].first) ns += end - begin;
    }
    return ns;
  };
  EXPECT_EQ(without->step_ns[2] - with->step_ns[2], waited(*without) - waited(*with));
}

TEST_F(TimesTest, ZenFlowsUpdateRunsBesideTheStepsOfTheNextInterval) {
  constexpr std::int64_t kInterval = 3;
  const auto run = [&](bool overlap) {
    Json config = make_config(2);
    config["zero_optimization"].update(
        {{"offload_optimizer", {{"device", "cpu"}}},
         {"zenflow", {{"topk_ratio", 0.25}, {"update_interval", kInterval}, {"overlap_step", overlap}}}});
    SimulationOptions options = on_round_hardware();
    options.hardware.host = {1000, 0};  // copies are next to nothing
    auto play = std::make_unique<Play>(model_named("mlp"), config, 1, options);
    play->run(3 * kInterval);
    return play;
  };
  const auto on_worker = [](const Play& play) {
    std::int64_t begin = 0, ns = 0;
    for (const Event& e : play.events[0]) {
      if (e.stream != StreamId::worker) continue;
      if (e.kind == EventKind::optimizer_begin) begin = static_cast<std::int64_t>(e.ticks);
      if (e.kind == EventKind::optimizer_end) ns += static_cast<std::int64_t>(e.ticks) - begin;
    }
    return ns;
  };
  const auto beside = run(true);
  const auto at_once = run(false);
  // Of every element the gradient and three states are read, and the states written.
  const plan::Ownership owned(at_once->model(), at_once->config().zero, 1);
  const std::int64_t update_ns = owned.owned_elems() * 7 * 4;
  EXPECT_EQ(on_worker(*at_once), 3 * update_ns);
  const auto waits = [](const Play& play) { return spans(play, 0, EventKind::deferred_wait_begin); };
  ASSERT_EQ(waits(*at_once).size(), 3U);
  // Published are two; the third is on its way. Computation waits for the last gradients to be added either
  // way, for the update only where it is made at once.
  EXPECT_GE(on_worker(*beside), 2 * update_ns);
  ASSERT_EQ(waits(*beside).size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto [begin, end] = waits(*at_once)[i + 1];
    const auto [begin_beside, end_beside] = waits(*beside)[i];
    EXPECT_NEAR(static_cast<double>((end - begin) - (end_beside - begin_beside)),
                static_cast<double>(update_ns), 0.001 * static_cast<double>(update_ns));
  }
}

TEST_F(TimesTest, SameSeedSameTimes) {
  const auto run = [&](std::uint64_t seed, SimulationOptions::Engines engines) {
    SimulationOptions options = on_round_hardware();
    options.variation = {seed, 0.1, {}};
    options.engines = engines;
    Play play(model_named("mlp"), make_config(3), 3, options);
    play.run(3);
    return std::pair(play.events, play.step_ns);
  };
  using enum SimulationOptions::Engines;
  const auto [events, steps] = run(7, shared);
  const auto [again, steps_again] = run(7, one_each);
  EXPECT_EQ(steps, steps_again);
  ASSERT_EQ(events.size(), again.size());
  for (std::size_t rank = 0; rank < events.size(); ++rank) {
    ASSERT_EQ(events[rank].size(), again[rank].size());
    for (std::size_t i = 0; i < events[rank].size(); ++i) {
      ASSERT_EQ(events[rank][i].ticks, again[rank][i].ticks) << "rank " << rank << " event " << i;
      ASSERT_EQ(events[rank][i].kind, again[rank][i].kind);
    }
  }
  EXPECT_NE(steps, run(8, shared).second);
}

TEST_F(TimesTest, EventsOfARankComeInOrderOfTime) {
  SimulationOptions options = on_round_hardware();
  options.hardware.launch_us = 3;
  options.variation = {1, 0.2, {}};
  Play play(model_named("gpt"), make_config(3, 2), 4, options);
  play.run(3);
  for (const auto& events : play.events) {
    ASSERT_GT(events.size(), 1000U);  // more than are held at a time
    for (std::size_t i = 1; i < events.size(); ++i) ASSERT_LE(events[i - 1].ticks, events[i].ticks);
  }
}

TEST_F(TimesTest, VolumeAndMemoryAreThePlans) {
  for (const std::uint32_t world : {4U, 96U}) {
    Json config = make_config(3, 2, "bf16");
    config["zero_optimization"]["stage3_prefetch_bucket_size"] = 0;
    Play play(model_named("mlp"), config, world, on_round_hardware());
    play.run(1);
    std::vector<plan::TrafficParam> params;
    for (const plan::ParamPlan& param : play.model().params) params.push_back({param.shape, false});
    plan::TrafficInput input;
    input.topology = {world, std::min(world, 8U)};
    input.micro_steps = 2;
    input.param_bytes = input.gradient_bytes = input.sum_bytes = 2;
    input.shard_alignment = plan::kShardAlignmentBytes / 2;
    const plan::StepTraffic expected = plan::step_traffic(params, play.config().zero, input);
    const auto sum = [](const plan::ScopeTraffic& traffic) {
      std::int64_t bytes = 0;
      for (const plan::Traffic& t : traffic) bytes += t.bytes;
      return bytes;
    };
    for (const std::uint32_t rank : {0U, world / 2, world - 1}) {
      std::int64_t gathered = 0, reduced = 0, master = 0;
      bool in_step = false;
      for (const Event& e : play.events[rank]) {
        if (e.kind == EventKind::step_begin) in_step = true;
        if (e.kind == EventKind::memory_alloc &&
            e.code == shardscope::test::memory_code(instrumentation::MemoryPool::device,
                                                    instrumentation::MemoryCategory::master_weight)) {
          master += e.v0;
        }
        if (!in_step || e.kind != EventKind::collective_end) continue;
        (e.stream == StreamId::gather ? gathered : reduced) += e.v1;
      }
      EXPECT_EQ(gathered, sum(expected.gathers())) << "rank " << rank << " of " << world;
      EXPECT_EQ(reduced, sum(expected.reduce)) << "rank " << rank << " of " << world;
      const plan::ShardLayout layout =
          plan::make_shard_layout(play.model(), world, plan::kShardAlignmentBytes / 2);
      EXPECT_EQ(master, (layout.elems * 4 + 255) / 256 * 256);
    }
  }
}

}  // namespace
}  // namespace shardscope::simulate::testing
