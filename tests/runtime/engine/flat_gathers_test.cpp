// Ways of DeepSpeed that cost memory and change no bit: the flat tensor of a gather of several parameters
// (compat.flat_gathers, P13), int8 copies of trained parameters for hpZ (compat.hpz_quantized_copies),
// initial weights from rank 0 (compat.broadcast_weights, P2).
#include <gtest/gtest.h>

#include <vector>

#include "instrumentation/event_fields.h"
#include "runtime/plan/quantization.h"
#include "tests/runtime/engine/rank_events.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::flat_gathers_test {
namespace {

using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::MemoryCategory;

RunSpec spec_of(std::uint32_t world, const std::string& type, const Json& zero = Json::object(),
                const Json& switches = Json::object()) {
  RunSpec spec;
  spec.model = model_named("mlp");
  spec.config = make_config(3, 1, type);
  spec.config["zero_optimization"].update(zero);
  spec.config["shardscope"]["compat"] = switches;
  if (world % 2 == 0) spec.config["shardscope"]["ranks_per_node"] = 2;
  spec.world = world;
  spec.steps = 3;
  return spec;
}

std::int64_t most_of(const ObservedRun& observed, MemoryCategory category) {
  std::int64_t held = 0, most = 0;
  for (const Event& event : observed.events.at(0)) {
    if (event.code != static_cast<std::uint8_t>(category)) continue;
    if (event.kind == EventKind::memory_alloc) held += event.v0;
    if (event.kind == EventKind::memory_free) held -= event.v0;
    most = std::max(most, held);
  }
  return most;
}

TEST(FlatGathers, ChangeNoBitAndHoldTheTensorThatTheyCut) {
  for (const std::uint32_t world : {2U, 3U}) {
    for (const Json& zero :
         {Json{{"stage3_prefetch_bucket_size", 40'000}}, Json{{"zero_hpz_partition_size", 2}},
          Json{{"offload_param", {{"device", "cpu"}}}}}) {
      if (zero.contains("zero_hpz_partition_size") && world == 3) continue;
      SCOPED_TRACE(std::to_string(world) + zero.dump());
      const ObservedRun plain = train_observed(spec_of(world, "bf16", zero));
      const ObservedRun flat = train_observed(spec_of(world, "bf16", zero, {{"flat_gathers", true}}));
      EXPECT_EQ(first_difference(plain.run, flat.run), "");
      EXPECT_EQ(most_of(plain, MemoryCategory::gather_buffer), 0);
      // A linear layer's weight and bias at least: 64 x 256 and 256 elements over the ranks.
      EXPECT_GE(most_of(flat, MemoryCategory::gather_buffer), 2 * (64 * 256 + 256));
    }
  }
}

/// Parameters of each collective that gathers persistent parameters after a step.
std::vector<std::size_t> gathered_after_steps(const ObservedRun& observed) {
  std::vector<std::size_t> parts;
  bool inside = false;
  for (const Event& event : observed.lane(0, instrumentation::StreamId::host)) {
    if (event.kind == EventKind::step_end || event.kind == EventKind::micro_step_begin) inside = false;
    if (event.kind == EventKind::overflow) inside = true;
    if (!inside || event.kind != EventKind::collective_submitted) continue;
    const auto collective = instrumentation::as<EventKind::collective_submitted>(event);
    if (collective.op == instrumentation::CollectiveOp::all_gather) parts.push_back(collective.parts);
  }
  return parts;
}

// compat.scheduler deepspeed: in one collective each, of the same elements.
TEST(PersistentParameters, AreGatheredTogetherOrOneByOneAfterTheStep) {
  const Json zero{{"stage3_param_persistence_threshold", 300}};
  const ObservedRun plain = train_observed(spec_of(2, "fp32", zero));
  const ObservedRun deepspeed = train_observed(spec_of(2, "fp32", zero, {{"scheduler", "deepspeed"}}));
  EXPECT_EQ(first_difference(plain.run, deepspeed.run), "");
  const std::vector<std::size_t> together = gathered_after_steps(plain),
                                 apart = gathered_after_steps(deepspeed);
  ASSERT_EQ(together.size(), 3U) << "one after each step";
  EXPECT_GT(together[0], 4U);
  EXPECT_EQ(apart, std::vector<std::size_t>(together[0] + together[1] + together[2], 1));
}

TEST(QuantizedCopies, AreWhatWasGatheredIn16BitsAndTakeAByteAnElement) {
  const Json zero{{"zero_hpz_partition_size", 2}, {"zero_quantized_weights", true}};
  const TrainingRun plain = train(spec_of(4, "bf16", zero));
  const TrainingRun int8 = train(spec_of(4, "bf16", zero, {{"hpz_quantized_copies", true}}));
  EXPECT_EQ(first_difference(plain, int8), "");
  std::int64_t expected = 0, plain_bytes = 0;
  const plan::ModelPlan model = plan::build_model_plan(model_named("mlp"));
  for (const plan::ParamPlan& param : model.params) {
    const std::int64_t shard = plan::partition_param(param.elems, 4).shard_elems;
    expected += plan::packed_shard(shard, 2).bytes();
    plain_bytes += 2 * 2 * shard;
  }
  const std::int64_t rounding =
      static_cast<std::int64_t>(model.params.size()) * static_cast<std::int64_t>(device::Arena::kAlignment);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const auto copied = static_cast<std::int64_t>(int8.ranks[rank].secondary_peak);
    EXPECT_GE(copied, expected / 2) << "copies of most parameters are there at once";
    EXPECT_LE(copied, expected + rounding);
    EXPECT_GT(static_cast<std::int64_t>(plain.ranks[rank].secondary_peak), plain_bytes / 2);
    EXPECT_LT(int8.ranks[rank].volume.gathers[1].bytes, plain.ranks[rank].volume.gathers[1].bytes)
        << "they travel as they rest";
  }
}

/// Each rank would begin with weights of its own: after the broadcast all have rank 0's.
TEST(BroadcastWeights, AreRankZerosEverywhere) {
  for (const int stage : {0, 1, 2, 3}) {
    RunSpec spec = spec_of(3, "bf16");
    spec.config = make_config(stage, 1, "bf16");
    const auto value = [](std::uint32_t rank, plan::ParamId param, std::int64_t at) {
      return 0.01F * static_cast<float>((static_cast<std::int64_t>(plan::raw(param)) + 3 * at) % 17 - 8) +
             static_cast<float>(rank);
    };
    const auto begin = [value](bool broadcast) {
      return [value, broadcast](const Context& context, Engine& engine, data::BatchStream&) {
        const auto fill = [&](plan::ParamId param, plan::Range range, float* to) {
          const std::uint32_t rank = broadcast ? context.rank() : 0;
          for (std::int64_t i = range.begin; i < range.end; ++i) *to++ = value(rank, param, i);
        };
        if (broadcast) {
          engine.broadcast_weights(0, fill);
        } else {
          engine.set_weights(fill);
        }
      };
    };
    spec.begin = begin(false);
    const TrainingRun reference = train(spec);
    spec.begin = begin(true);
    EXPECT_EQ(first_difference(reference, train(spec)), "") << "stage " << stage;
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::flat_gathers_test
