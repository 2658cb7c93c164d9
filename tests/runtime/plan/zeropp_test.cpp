// Groups, quantization groups and volumes of ZeRO++ and MiCS against closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "runtime/plan/memory_model.h"
#include "runtime/plan/ownership.h"
#include "runtime/plan/quantization.h"
#include "runtime/plan/secondary_shards.h"
#include "runtime/plan/zero_groups.h"
#include "runtime/plan/zero_traffic.h"

namespace shardscope::plan {
namespace {

ZeroConfig stage3_settings() {
  ZeroConfig zero;
  zero.stage = 3;
  return zero;
}

TEST(ZeroGroups, EveryGroupIsTheSameForItsMembersAndTheyCoverTheWorld) {
  for (const Topology topology : {Topology{8, 4}, Topology{8, 2}, Topology{12, 3}, Topology{4, 1}}) {
    for (std::uint32_t size = 1; size <= topology.world; ++size) {
      if (topology.world % size != 0) continue;
      ZeroConfig zero = stage3_settings();
      zero.hpz_partition_size = size;
      zero.mics_shard_size = size;
      zero.mics_hierarchical_params_gather = size % topology.ranks_per_node == 0;
      zero.quantized_gradients = true;
      std::vector<ZeroGroups> all;
      for (std::uint32_t rank = 0; rank < topology.world; ++rank) {
        all.push_back(make_zero_groups(zero, topology, rank));
      }
      for (const auto member :
           {&ZeroGroups::secondary, &ZeroGroups::shard, &ZeroGroups::replica, &ZeroGroups::shard_intra,
            &ZeroGroups::shard_inter, &ZeroGroups::intra_node, &ZeroGroups::inter_node}) {
        for (std::uint32_t rank = 0; rank < topology.world; ++rank) {
          const std::vector<std::uint32_t>& group = all[rank].*member;
          if (group.empty()) continue;
          EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
          EXPECT_TRUE(std::binary_search(group.begin(), group.end(), rank));
          for (const std::uint32_t other : group) EXPECT_EQ(all[other].*member, group);
        }
      }
      // One rank of each shard group holds this rank's shard; within the group all shards are held.
      for (std::uint32_t rank = 0; rank < topology.world; ++rank) {
        std::set<std::uint32_t> shards;
        for (const std::uint32_t r : all[rank].shard) shards.insert(r % size);
        EXPECT_EQ(shards.size(), size);
        EXPECT_EQ(all[rank].replica.size(), topology.world / size);
        for (const std::uint32_t r : all[rank].replica) EXPECT_EQ(r % size, rank % size);
      }
    }
  }
}

TEST(ZeroGroups, SizesThatDoNotFitAreRefused) {
  ZeroConfig zero = stage3_settings();
  zero.hpz_partition_size = 3;
  EXPECT_THROW(static_cast<void>(make_zero_groups(zero, {8, 4}, 0)), std::invalid_argument);
  zero = stage3_settings();
  zero.mics_shard_size = 5;
  EXPECT_THROW(static_cast<void>(make_zero_groups(zero, {8, 4}, 0)), std::invalid_argument);
  zero.mics_shard_size = 6;
  zero.mics_hierarchical_params_gather = true;
  EXPECT_THROW(static_cast<void>(make_zero_groups(zero, {12, 4}, 0)), std::invalid_argument);
  // Below stage 3 there are no groups.
  zero.stage = 2;
  EXPECT_TRUE(make_zero_groups(zero, {12, 4}, 0).shard.empty());
}

// CUDAQuantizer's rule, by hand: the first number of groups from ceil(n / 8000) that divides n into multiples
// of 8, doubled while a group is above 8000 and still divides.
TEST(Quantization, WeightGroupsFollowDeepSpeed) {
  const auto groups = [](std::int64_t n) { return weight_groups(n).groups; };
  EXPECT_EQ(groups(8), 1);
  EXPECT_EQ(groups(8000), 1);
  EXPECT_EQ(groups(16000), 2);
  EXPECT_EQ(groups(8008), 7);            // 8008 = 8 * 7 * 11 * 13; two groups would not be multiples of 8
  EXPECT_EQ(groups(1'048'576), 256);     // from 132 up, the first divisor
  EXPECT_EQ(groups(4096 * 4096), 4096);  // from 2098 up
  for (const std::int64_t n : {24, 4096, 12288, 49152, 589824}) {
    const QuantGroups g = weight_groups(n);
    EXPECT_EQ(g.group_elems * g.groups, n);
    EXPECT_EQ(n % (8 * g.groups), 0);
    EXPECT_LT(g.group_elems, 16000);
  }
  // Sizes that DeepSpeed refuses: at most 8000 a group, the last short.
  EXPECT_EQ(weight_groups(17).groups, 1);
  EXPECT_EQ(weight_groups(17).group_elems, 17);
  EXPECT_EQ(weight_groups(16001).groups, 3);
  EXPECT_EQ(weight_groups(8 * 8009).group_elems, 8);  // 8009 is prime: it finds groups of 8
}

TEST(Quantization, GradientPathNeedsTwoDimensionsEvenSlicesAndNodes) {
  ZeroConfig zero = stage3_settings();
  zero.quantized_gradients = true;
  const Topology two{4, 2};
  EXPECT_EQ(gradient_path(zero, two, {64, 32}), GradientPath::quantized);
  EXPECT_EQ(gradient_path(zero, two, {64}), GradientPath::reduce_scatter);
  EXPECT_EQ(gradient_path(zero, two, {3, 4}), GradientPath::reduce_scatter);  // 12 % 8
  EXPECT_EQ(gradient_path(zero, {4, 4}, {64, 32}), GradientPath::reduce_scatter);
  zero.reduce_scatter = false;
  EXPECT_EQ(gradient_path(zero, two, {64, 32}), GradientPath::reduce_scatter);

  const QuantGroups g = gradient_groups({64, 32}, 4);
  EXPECT_EQ(g.elems, 512);
  EXPECT_EQ(g.groups, 16);  // max(64, 32, 4) over the four slices
  EXPECT_EQ(g.group_elems, 32);
  for (const std::int64_t rows : {2, 6, 10, 30, 96}) {  // groups end within slices and at whole bytes
    const QuantGroups uneven = gradient_groups({rows, 40}, 4);
    EXPECT_EQ(uneven.group_elems % 2, 0);
    EXPECT_EQ(uneven.groups, (uneven.elems + uneven.group_elems - 1) / uneven.group_elems);
  }
}

TEST(Quantization, SwizzlePutsTheSlicesOfOnePlaceTogether) {
  EXPECT_EQ(swizzle({4, 2}), (std::vector<std::uint32_t>{0, 2, 1, 3}));
  EXPECT_EQ(swizzle({6, 3}), (std::vector<std::uint32_t>{0, 3, 1, 4, 2, 5}));
}

TEST(SecondaryShards, ServeTheBackwardAndEndWithTheStep) {
  ZeroConfig zero = stage3_settings();
  zero.hpz_partition_size = 2;
  const ParamId p{0};
  for (const bool compat : {false, true}) {
    zero.compat.hpz_secondary_in_forward = compat;
    SecondaryShards shards({true}, zero);
    shards.begin_iteration();
    shards.enter(Direction::forward);
    EXPECT_EQ(shards.source(p), GatherSource::primary);
    EXPECT_FALSE(shards.held(p));
    EXPECT_TRUE(shards.released(p));
    EXPECT_TRUE(shards.held(p));
    EXPECT_EQ(shards.source(p), GatherSource::secondary) << "a prefetch for the backward";
    shards.enter(Direction::backward);
    EXPECT_EQ(shards.source(p), GatherSource::secondary);
    EXPECT_FALSE(shards.released(p)) << "it exists";
    shards.begin_iteration();  // the second micro-step (docs/zero.md D6)
    EXPECT_EQ(shards.source(p), compat ? GatherSource::secondary : GatherSource::primary);
    EXPECT_FALSE(shards.released(p));
    EXPECT_EQ(shards.weights_change(WeightChange::trainable), std::vector{p});
    EXPECT_FALSE(shards.held(p));
    EXPECT_TRUE(shards.weights_change(WeightChange::trainable).empty());
    shards.enter(Direction::backward);
    EXPECT_EQ(shards.source(p), GatherSource::primary);
  }
  // The notes: by the pass in which it is issued.
  zero.compat = default_switches(Compat::notes);
  SecondaryShards notes({true}, zero);
  notes.begin_iteration();
  notes.enter(Direction::forward);
  EXPECT_TRUE(notes.released(p));
  EXPECT_EQ(notes.source(p), GatherSource::primary) << "a prefetch for the backward";
  notes.enter(Direction::backward);
  EXPECT_EQ(notes.source(p), GatherSource::secondary);
  SecondaryShards off({true}, stage3_settings());
  EXPECT_FALSE(off.released(p));
}

// Bytes that enter one node, as the ZeRO++ paper counts: a collective of all ranks brings its whole once into
// every node (times (nodes - 1) / nodes, which is left out here as there), one between nodes once for each
// rank of the node that takes part, one inside a node nothing.
std::int64_t cross_node_bytes(const ScopeTraffic& traffic, const ZeroConfig& zero, const Topology& topology) {
  if (topology.nodes() < 2) return 0;
  const auto node = static_cast<std::int64_t>(topology.ranks_per_node);
  const auto bytes = [&](TrafficScope scope) { return traffic[static_cast<std::size_t>(scope)].bytes; };
  // A group of neighbours leaves its node only when it is larger.
  const auto of_block = [&](TrafficScope scope, std::int64_t size) { return size > node ? bytes(scope) : 0; };
  std::int64_t sum = bytes(TrafficScope::world);
  sum += of_block(TrafficScope::secondary, zero.hpz_partition_size);
  sum += of_block(TrafficScope::shard, zero.mics_shard_size);
  sum += node * (bytes(TrafficScope::inter_node) + bytes(TrafficScope::replica));
  return sum;
}

// The ZeRO++ paper's table: gathers of the forward M -> 0.5M, of the backward M -> 0, reduce-scatter M ->
// 0.25M, together 3M -> 0.75M between nodes; plus the scales, which it leaves out.
TEST(ZeroTraffic, PaperVolumesBetweenNodes) {
  const Topology topology{16, 8};
  const std::vector<TrafficParam> params{{{4096, 4096}, false}, {{16384, 4096}, false}};
  std::int64_t elems = 0;
  for (const TrafficParam& p : params) elems += p.shape[0] * p.shape[1];
  const double M = 2.0 * static_cast<double>(elems);  // bytes of the 16-bit model
  TrafficInput input;
  input.topology = topology;
  ZeroConfig zero = stage3_settings();
  const auto across = [&](const ScopeTraffic& traffic) {
    return static_cast<double>(cross_node_bytes(traffic, zero, topology)) / M;
  };
  const StepTraffic plain = step_traffic(params, zero, input);
  EXPECT_EQ(across(plain.forward), 1.0);
  EXPECT_EQ(across(plain.backward), 1.0);
  EXPECT_EQ(across(plain.reduce), 1.0);

  zero.hpz_partition_size = 8;
  zero.quantized_weights = true;
  zero.quantized_gradients = true;
  const StepTraffic traffic = step_traffic(params, zero, input);
  // 4 bytes of scale for each group: 0.5 M and 4 bytes per at least 4096 elements; the same per 4096 for
  // int4.
  EXPECT_GE(across(traffic.forward), 0.5);
  EXPECT_LE(across(traffic.forward), 0.5 + 4.0 / 4096);
  EXPECT_EQ(across(traffic.backward), 0.0);
  EXPECT_GE(across(traffic.reduce), 0.25);
  EXPECT_LE(across(traffic.reduce), 0.25 + 4.0 / 4096);
  EXPECT_EQ(traffic_text(zero, topology, 1), "S int8 + S secondary + (S + S/8) int4");
  EXPECT_EQ(traffic_text(zero, topology, 2), "2(S int8 + S secondary + (S + S/8) int4)");
}

TEST(ZeroTraffic, PlainStage3IsThreeSWithPadding) {
  const std::vector<TrafficParam> params{{{7}, false}, {{5, 4}, false}};
  TrafficInput input;
  input.topology = {4, 4};
  const StepTraffic traffic = step_traffic(params, stage3_settings(), input);
  EXPECT_EQ(traffic.total().elems, 3 * (8 + 20));
  VolumeInput volume;
  volume.stage = 3;
  volume.world = 4;
  EXPECT_EQ(traffic.total().elems, step_volume({7, 20}, volume).padded_elems);
  ZeroConfig mics = stage3_settings();
  mics.mics_shard_size = 2;
  // Inside the group 3S, and the gradients of a shard among the two replicas: 2 S/2.
  EXPECT_EQ(step_traffic(params, mics, input).total().elems, 3 * (8 + 20) + 2 * (4 + 10));
  EXPECT_EQ(traffic_text(mics, input.topology, 1), "S + S + S + 2S/2 replicas");
}

TEST(Ownership, MicsRepeatsTheShardsOfAGroup) {
  ZeroConfig zero = stage3_settings();
  zero.mics_shard_size = 2;
  ModelPlan model;
  ParamPlan param;
  param.id = ParamId{0};
  param.elems = 11;
  model.params.push_back(param);
  model.elems = 11;
  const Ownership ownership(model, zero, 6);
  EXPECT_EQ(ownership.shard_world(), 2U);
  EXPECT_EQ(ownership.owned_elems(), 6);
  for (std::uint32_t rank = 0; rank < 6; ++rank) {
    const OwnedSlice slice = ownership.slices(ParamId{0}, rank).front();
    EXPECT_EQ(slice.rank, rank);
    EXPECT_EQ(slice.param_offset, rank % 2 == 0 ? 0 : 6);
    EXPECT_EQ(slice.elems, rank % 2 == 0 ? 6 : 5);
  }
}

}  // namespace
}  // namespace shardscope::plan
