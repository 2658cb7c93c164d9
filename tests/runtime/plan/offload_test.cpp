// Where model states rest and what is read ahead (docs/zero.md P6, P8, C8, C12, O1, O2, O4).
#include "runtime/plan/offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "runtime/plan/memory_model.h"
#include "runtime/plan/placed_states.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/shard_swap.h"
#include "runtime/plan/trace.h"

namespace shardscope::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

ShardLayout layout_of(const std::vector<std::int64_t>& shard_elems) {
  ShardLayout layout;
  for (const std::int64_t elems : shard_elems) {
    layout.partitions.push_back({elems, elems, 0});
    layout.shard_offset.push_back(layout.elems);
    layout.elems += elems;
  }
  return layout;
}

TEST(Placement, NvmeFromOneMebibyteThenPersistentThenHost) {
  ZeroConfig zero;
  zero.stage = 3;
  zero.offload_param.device = OffloadDevice::nvme;
  const std::int64_t mebi = 1 << 20;
  // Of 2-byte elements: just under 1 MiB, exactly, and twice that; the last two are persistent.
  const ShardLayout layout = layout_of({mebi / 2 - 1, mebi / 2, mebi, 100, mebi});
  const std::vector<bool> persistent{false, false, false, true, true};
  using enum ShardPlace;
  EXPECT_THAT(place_shards(layout, zero, 2, persistent), ElementsAre(host, nvme, nvme, device, nvme));
  zero.aio.block_size = 2 * mebi;  // a block is the least that is worth a file
  EXPECT_THAT(place_shards(layout, zero, 2, persistent), ElementsAre(host, host, nvme, device, nvme));
  zero.aio.block_size = 4096;  // and 1 MiB however small the block
  EXPECT_THAT(place_shards(layout, zero, 2, persistent), ElementsAre(host, nvme, nvme, device, nvme));
  zero.offload_param.device = OffloadDevice::cpu;
  EXPECT_THAT(place_shards(layout, zero, 2, persistent), ElementsAre(host, host, host, device, device));
  zero.offload_param.device = OffloadDevice::none;
  EXPECT_THAT(place_shards(layout, zero, 2, persistent), ElementsAre(device, device, device, device, device));
}

TEST(Placement, RatioIsTruncatedAsDeepSpeedDoes) {
  OffloadOptimizerConfig offload;
  EXPECT_EQ(first_offloaded_group(offload, 10), 10U);  // not offloaded at all
  offload.device = OffloadDevice::cpu;
  EXPECT_EQ(first_offloaded_group(offload, 10), 0U);
  offload.ratio = 0.3;
  EXPECT_EQ(first_offloaded_group(offload, 10), 7U);
  EXPECT_EQ(first_offloaded_group(offload, 3), 2U);
  EXPECT_EQ(first_offloaded_group(offload, 1), 0U);
  offload.ratio = 0;
  EXPECT_EQ(first_offloaded_group(offload, 4), 4U);
  offload.ratio = 0.5;
  EXPECT_EQ(first_offloaded_elem(offload, {{0, 8}, {8, 20}, {20, 24}, {24, 30}}), 20);
  offload.ratio = 0;
  EXPECT_EQ(first_offloaded_elem(offload, {{0, 8}, {8, 20}}), 20);
}

TEST(Tiles, CoverTheOffloadedGroupsAndNeverCrossOne) {
  const std::vector<UpdateTile> tiles = make_update_tiles({{0, 8}, {8, 18}, {18, 22}}, 1, 4);
  std::vector<std::vector<std::int64_t>> seen;
  for (const UpdateTile& tile : tiles) seen.push_back({tile.range.begin, tile.range.end, tile.group});
  EXPECT_THAT(seen, ElementsAre(ElementsAre(8, 12, 1), ElementsAre(12, 16, 1), ElementsAre(16, 18, 1),
                                ElementsAre(18, 22, 2)));
  EXPECT_THROW((void)make_update_tiles({{0, 8}}, 0, 0), std::invalid_argument);
}

TEST(Tiles, ShrinkWhereBuffersWouldNotDo) {
  OffloadOptimizerConfig offload;
  offload.device = OffloadDevice::nvme;
  const std::vector<Range> groups{{0, 600}, {600, 1000}};
  OptimizerSwap swap = plan_optimizer_swap(offload, groups, 0);
  EXPECT_EQ(swap.slots, 1U);
  EXPECT_EQ(swap.tile_elems, 600);  // three of the four buffers
  offload.pipeline_read = true;
  swap = plan_optimizer_swap(offload, groups, 0);
  EXPECT_EQ(swap.slots, 2U);
  EXPECT_EQ(swap.tile_elems, 400);  // 2 slots of 3 states in 4 buffers of 600
  offload.buffer_count = 6;
  EXPECT_EQ(plan_optimizer_swap(offload, groups, 0).tile_elems, 600);
  EXPECT_EQ(plan_optimizer_swap(offload, groups, 1).tile_elems, 400);
}

TEST(SwapBuffers, ServeTheLargestShardWithinTheLimits) {
  const ShardLayout layout = layout_of({100, 700, 300});
  using enum ShardPlace;
  OffloadParamConfig offload;
  offload.buffer_size = 700;
  EXPECT_EQ(plan_swap_buffers({nvme, nvme, nvme}, layout, offload).count, 3U);  // one for each is enough
  EXPECT_EQ(plan_swap_buffers({nvme, nvme, nvme}, layout, offload).elems, 700);
  EXPECT_EQ(plan_swap_buffers({nvme, host, nvme}, layout, offload).elems, 300);
  EXPECT_EQ(plan_swap_buffers({host, host, device}, layout, offload).count, 0U);
  offload.max_in_cpu = 1500;
  EXPECT_EQ(plan_swap_buffers({nvme, nvme, nvme}, layout, offload).count, 2U);
  offload.buffer_size = 699;
  EXPECT_THAT(
      [&] {
        (void)plan_swap_buffers({nvme, nvme, nvme}, layout, offload);
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("buffer_size is 699 elements, but the largest "
                                                     "shard on NVMe has 700")));
  offload.buffer_size = 1000;
  offload.max_in_cpu = 10;
  EXPECT_THAT(
      [&] {
        (void)plan_swap_buffers({nvme, nvme, nvme}, layout, offload);
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("max_in_cpu is 10")));
}

// Two ranks: shards of 2 MiB, 1 KiB and 20 bytes. P6 sends the first to NVMe, leaves the persistent one on
// the device and the other on the host; three sub-groups, of which int(0.5 * 3) = 1 stays.
TEST(Memory, PlacedStatesFollowTheDecisionsForShardsAndSubGroups) {
  StateInput input;
  input.param_elems = {2 << 20, 1024, 19};
  input.trainable = {true, true, true};
  input.world = 2;
  ZeroConfig zero;
  zero.stage = 3;
  zero.offload_param.device = OffloadDevice::nvme;
  zero.param_persistence_threshold = 100;
  zero.offload_optimizer.device = OffloadDevice::cpu;
  zero.offload_optimizer.ratio = 0.5;
  zero.sub_group_size = 1;
  const PlacedStates placed = placed_states(zero, input);
  const auto& [device, host, pinned, nvme] = placed.pools;
  EXPECT_EQ(nvme.param_owned, 2 << 20);
  EXPECT_EQ(pinned.param_owned, 1024);
  EXPECT_EQ(device.param_owned, 32);  // 10 elements to a vector's boundary
  EXPECT_EQ(host.total(), 0);
  const std::int64_t kept = 1 << 20, moved = 512 + 16;
  EXPECT_EQ(device.gradient, 2 * kept);
  EXPECT_EQ(device.master + device.momentum + device.variance, 12 * kept);
  EXPECT_EQ(pinned.gradient, 2 * moved);
  EXPECT_EQ(pinned.master + pinned.momentum + pinned.variance, 12 * moved);
  EXPECT_DOUBLE_EQ(placed.offloaded_share, double(moved) / double(kept + moved));
  EXPECT_DOUBLE_EQ(placed.param_share[0] + placed.param_share[2] + placed.param_share[3], 1);
  EXPECT_DOUBLE_EQ(placed.param_share[2], 1024.0 / ((2 << 20) + 1024 + 19));
}

TEST(Memory, PlacedStatesOfTheFirstStage1HaveAnotherCopyOfPiecesOnly) {
  StateInput input;
  input.param_elems = {60, 41};
  input.trainable = {true, true};
  input.world = 2;
  ZeroConfig zero;
  zero.stage = 1;
  zero.legacy_stage1 = true;
  EXPECT_EQ(placed_states(zero, input).pieces, 0);
  EXPECT_EQ(placed_states(zero, input).pools[0].total(), 4 * 102 + 12 * 51);
  zero.max_elements_per_comm = 40;  // three communications of 40: 120 elements, 60 owned
  EXPECT_EQ(placed_states(zero, input).pieces, 2 * 60);
  EXPECT_EQ(placed_states(zero, input).pools[0].total(), 4 * 120 + 12 * 60);
}

TEST(Memory, ExpressionsByPool) {
  const auto texts = [](std::uint32_t stage, const StateBytes& bytes, const ZeroConfig& zero) {
    std::vector<std::string> all;
    for (const PoolExpression& pool : placed_expressions(stage, bytes, state_placement(zero))) {
      all.push_back(pool.text());
    }
    return all;
  };
  ZeroConfig zero;
  EXPECT_THAT(texts(1, kMixedPrecision, zero), ElementsAre("4S + 12S/n", "0", "0", "0"));
  zero.offload_optimizer.device = OffloadDevice::cpu;
  EXPECT_THAT(texts(1, kMixedPrecision, zero), ElementsAre("4S", "0", "14S/n", "0"));
  EXPECT_THAT(texts(2, kMixedPrecision, zero), ElementsAre("2S", "0", "14S/n", "0"));
  EXPECT_THAT(texts(3, kMixedPrecision, zero), ElementsAre("2S/n", "0", "14S/n", "0"));
  EXPECT_THAT(texts(3, kFp32, zero), ElementsAre("4S/n", "0", "16S/n", "0"));  // master weights of its own
  zero.offload_optimizer.ratio = 0.3;
  EXPECT_THAT(texts(3, kMixedPrecision, zero), ElementsAre("11.8S/n", "0", "4.2S/n", "0"));
  zero.offload_optimizer = {};
  zero.offload_param.device = OffloadDevice::cpu;
  zero.offload_param.pin_memory = false;
  EXPECT_THAT(texts(3, kFp32, zero), ElementsAre("16S/n", "4S/n", "0", "0"));
  zero.offload_param.device = OffloadDevice::nvme;
  zero.offload_optimizer.device = OffloadDevice::nvme;
  EXPECT_THAT(texts(3, kMixedPrecision, zero), ElementsAre("0", "0", "2S/n", "14S/n"));
}

std::vector<TracedParam> uses(const std::vector<std::uint32_t>& params) {
  std::vector<TracedParam> queue;
  for (const std::uint32_t param : params) queue.push_back({ParamId{param}, 0});
  return queue;
}

const auto kNothing = [](ParamId) { return false; };  // is resident

// C12: "stop when considered numel > 2*in-flight numel or chosen >= available swap buffers". Everything in
// the queue counts as considered, on NVMe or not.
TEST(ReadAhead, StopsBeyondTwiceWhatIsInFlightOrWithoutBuffers) {
  const std::vector<std::int64_t> elems{10, 10, 10, 10, 10, 10};
  const std::vector<bool> on_nvme{true, false, true, true, true, true};
  {
    ShardSwap swap(on_nvme, 5, Compat::deepspeed);
    // Considered before each: 0, 10, 20, 30: the fourth is beyond 2 x 14.
    EXPECT_THAT(swap.read_ahead(uses({0, 1, 2, 3, 4}), elems, 14, kNothing),
                ElementsAre(ParamId{0}, ParamId{2}));
    EXPECT_EQ(swap.available(), 3U);
    // Those are ready now and count as considered all the same.
    EXPECT_THAT(swap.read_ahead(uses({0, 1, 2, 3, 4}), elems, 15, kNothing), ElementsAre(ParamId{3}));
  }
  {
    ShardSwap swap(on_nvme, 2, Compat::deepspeed);
    EXPECT_THAT(swap.read_ahead(uses({0, 0, 2, 3, 4}), elems, 1000, kNothing),
                ElementsAre(ParamId{0}, ParamId{2}));
    EXPECT_THAT(swap.read_ahead(uses({3}), elems, 1000, kNothing), IsEmpty());
  }
  {
    ShardSwap swap(on_nvme, 2, Compat::shardscope);  // one stays for what a gather misses
    EXPECT_THAT(swap.read_ahead(uses({0, 2, 3}), elems, 1000, kNothing), ElementsAre(ParamId{0}));
  }
  ShardSwap none({false, false}, 5, Compat::deepspeed);
  EXPECT_THAT(none.read_ahead(uses({0, 1}), elems, 1000, kNothing), IsEmpty());
}

// What stays gathered needs no shard; DeepSpeed, which asks for buffers only, reads it again.
TEST(ReadAhead, LeavesWhatIsResident) {
  const std::vector<std::int64_t> elems{10, 10, 10};
  const auto first_two = [](ParamId id) { return raw(id) < 2; };
  ShardSwap ours({true, true, true}, 2, Compat::shardscope);
  EXPECT_THAT(ours.read_ahead(uses({0, 1, 2}), elems, 100, first_two), ElementsAre(ParamId{2}));
  ShardSwap theirs({true, true, true}, 2, Compat::deepspeed);
  EXPECT_THAT(theirs.read_ahead(uses({0, 1, 2}), elems, 100, first_two), ElementsAre(ParamId{0}, ParamId{1}));
}

TEST(ReadAhead, BuffersComeBackAtTheGatherOrAtTheRelease) {
  const std::vector<std::int64_t> elems{10, 10, 10};
  ShardSwap ours({true, true, true}, 2, Compat::shardscope);
  EXPECT_THAT(ours.read_ahead(uses({0, 1, 2}), elems, 100, kNothing), ElementsAre(ParamId{0}));
  EXPECT_TRUE(ours.ready(ParamId{0}));
  ours.gather(ParamId{0});
  EXPECT_FALSE(ours.ready(ParamId{0}));
  ours.gather(ParamId{1});  // missed: read through the buffer that is kept for this
  ours.gather(ParamId{2});
  EXPECT_EQ(ours.available(), 1U);
  // Read ahead: the buffer is taken until that gather, whatever was released before.
  EXPECT_THAT(ours.read_ahead(uses({2}), elems, 100, kNothing), ElementsAre(ParamId{2}));
  ours.release(ParamId{2});
  EXPECT_TRUE(ours.ready(ParamId{2}));
  EXPECT_EQ(ours.available(), 0U);
  ours.gather(ParamId{2});
  EXPECT_EQ(ours.available(), 1U);

  ShardSwap theirs({true, true, true}, 2, Compat::deepspeed);
  theirs.gather(ParamId{0});
  theirs.gather(ParamId{1});
  EXPECT_THAT([&] { theirs.gather(ParamId{2}); },
              ThrowsMessage<std::runtime_error>(HasSubstr("all 2 buffers of offload_param hold shards")));
  theirs.release(ParamId{0});
  theirs.gather(ParamId{2});
  theirs.forget();
  EXPECT_EQ(theirs.available(), 2U);
}

// C8: what is on NVMe alone stops the prefetch; C12 reads it, and the next prefetch takes it.
TEST(ReadAhead, TheSchedulerPrefetchesWhatHasBeenRead) {
  const ModelPlan model = build_model_plan(parse_model_spec(R"({
    "name": "chain", "input": {"kind": "vectors", "width": 4}, "loss": {"kind": "mse", "width": 1},
    "root": {"kind": "sequential", "children": [
      {"kind": "linear", "name": "a", "in": 4, "out": 4, "bias": false},
      {"kind": "linear", "name": "b", "in": 4, "out": 4, "bias": false},
      {"kind": "linear", "name": "c", "in": 4, "out": 4, "bias": false},
      {"kind": "linear", "name": "d", "in": 4, "out": 1, "bias": false}]}})"));
  SchedulerConfig config;
  config.param_persistence_elems = 0;
  config.max_reuse_distance_elems = 0;
  config.prefetch_bucket_elems = 1000;
  config.on_nvme = {false, false, true, false};
  config.swap_buffers = 2;
  FetchScheduler scheduler(model, 2, config);
  const auto iteration = [&](const auto& look) {
    (void)scheduler.begin_iteration();
    for (std::uint32_t module = 1; module <= 4; ++module) {
      look(module, scheduler.fetch(ModuleId{module}, Direction::forward));
      (void)scheduler.release(ModuleId{module}, Direction::forward);
    }
  };
  iteration(
      [](auto, const FetchPlan& plan) { EXPECT_THAT(plan.read_ahead, IsEmpty()) << "while recording"; });
  std::vector<std::vector<ParamId>> prefetched, read;
  std::vector<PrefetchStop> stops;
  iteration([&](auto, const FetchPlan& plan) {
    prefetched.push_back(plan.prefetch.params);
    read.push_back(plan.read_ahead);
    stops.push_back(plan.stop);
  });
  EXPECT_THAT(prefetched[0], ElementsAre(ParamId{1}));
  EXPECT_EQ(stops[0], PrefetchStop::offloaded);
  EXPECT_THAT(read[0], ElementsAre(ParamId{2}));
  EXPECT_THAT(prefetched[1], ElementsAre(ParamId{2}, ParamId{3}));
  EXPECT_THAT(read[1], IsEmpty());
}

// C11a, with one buffer: what stays whole does not keep it.
TEST(ReadAhead, DeepSpeedGivesBackTheBufferOfAPersistentParameter) {
  const ModelPlan model = build_model_plan(parse_model_spec(R"({
    "name": "two", "input": {"kind": "vectors", "width": 6}, "loss": {"kind": "mse", "width": 9},
    "root": {"kind": "sequential", "children": [
      {"kind": "linear", "name": "a", "in": 6, "out": 2, "bias": false},
      {"kind": "linear", "name": "b", "in": 2, "out": 9, "bias": false}]}})"));
  SchedulerConfig config;
  config.compat = Compat::deepspeed;
  config.on_nvme = {true, true};
  config.swap_buffers = 1;
  for (const bool persistent : {true, false}) {
    config.param_persistence_elems = persistent ? 12 : 0;  // a
    FetchScheduler scheduler(model, 2, config);
    (void)scheduler.begin_iteration();
    (void)scheduler.fetch(ModuleId{1}, Direction::forward);
    if (persistent) {
      EXPECT_NO_THROW((void)scheduler.fetch(ModuleId{2}, Direction::forward));
    } else {
      EXPECT_THROW((void)scheduler.fetch(ModuleId{2}, Direction::forward), std::runtime_error);
    }
  }
}

// A persistent parameter on NVMe stays whole: reading its shard ahead would take the one buffer for good, and
// what has to be gathered would be read when it is needed.
TEST(ReadAhead, LeavesItsBuffersToWhatIsGathered) {
  const ModelPlan model = build_model_plan(parse_model_spec(R"({
    "name": "five", "input": {"kind": "vectors", "width": 6}, "loss": {"kind": "mse", "width": 9},
    "root": {"kind": "sequential", "children": [
      {"kind": "linear", "name": "a", "in": 6, "out": 6, "bias": false},
      {"kind": "linear", "name": "b", "in": 6, "out": 2, "bias": false},
      {"kind": "linear", "name": "c", "in": 2, "out": 9, "bias": false},
      {"kind": "linear", "name": "d", "in": 9, "out": 9, "bias": false}]}})"));
  SchedulerConfig config;
  config.param_persistence_elems = 18;  // b and c
  config.max_reuse_distance_elems = 0;
  config.prefetch_bucket_elems = 1;
  config.on_nvme = {true, true, true, true};
  config.swap_buffers = 2;
  FetchScheduler scheduler(model, 2, config);
  const auto iteration = [&] {
    std::vector<ParamId> read;
    (void)scheduler.begin_iteration();
    for (std::uint32_t module = 0; module <= 4; ++module) {
      const FetchPlan plan = scheduler.fetch(ModuleId{module}, Direction::forward);
      read.insert(read.end(), plan.read_ahead.begin(), plan.read_ahead.end());
    }
    for (std::uint32_t module = 5; module-- > 0;)
      (void)scheduler.release(ModuleId{module}, Direction::forward);
    (void)scheduler.begin_update();
    (void)scheduler.end_update(WeightChange::trainable);
    (void)scheduler.gather_persistent();
    return read;
  };
  (void)iteration();  // recorded
  EXPECT_THAT(iteration(), ElementsAre(ParamId{0}, ParamId{3}));
}

}  // namespace
}  // namespace shardscope::plan
