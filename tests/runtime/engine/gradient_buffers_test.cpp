// compat.gradient_buffers: gradients as DeepSpeed holds them (docs/zero.md S9, S13, S18, V5). No bit changes,
// and what is held is what the closed forms of the documents say, allocation by allocation.
#include <gtest/gtest.h>

#include "runtime/plan/memory_model.h"
#include "runtime/plan/ownership.h"
#include "tests/runtime/engine/rank_events.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::gradient_buffers_test {
namespace {

using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::MemoryCategory;

constexpr std::int64_t kBucket = 20'000;  // more than the largest matrix

RunSpec spec_of(int stage, std::uint32_t world, const std::string& type = "bf16", int accumulation = 1,
                const Json& zero = Json::object()) {
  RunSpec spec;
  spec.model = model_named("mlp");
  spec.config = make_config(stage, accumulation, type);
  spec.config["zero_optimization"]["reduce_bucket_size"] = kBucket;
  spec.config["zero_optimization"].update(zero);
  spec.world = world;
  spec.steps = 3;
  return spec;
}

RunSpec buffered(RunSpec spec, Json switches = Json::object()) {
  switches["gradient_buffers"] = true;
  spec.config["shardscope"]["compat"] = switches;
  return spec;
}

std::int64_t block(std::int64_t bytes) {
  const auto unit = static_cast<std::int64_t>(device::Arena::kAlignment);
  return (bytes + unit - 1) / unit * unit;
}

/// What a rank took (above 0) and gave back of one category, in the order of time.
std::vector<std::int64_t> changes(const ObservedRun& observed, std::uint32_t rank, MemoryCategory category) {
  std::vector<std::int64_t> out;
  for (const Event& event : observed.events.at(rank)) {
    if (event.code != static_cast<std::uint8_t>(category)) continue;
    if (event.kind == EventKind::memory_alloc) out.push_back(event.v0);
    if (event.kind == EventKind::memory_free) out.push_back(-event.v0);
  }
  return out;
}

std::int64_t most_of(const std::vector<std::int64_t>& changes) {
  std::int64_t held = 0, most = 0;
  for (const std::int64_t change : changes) most = std::max(most, held += change);
  EXPECT_EQ(held, 0) << "kept from step to step";
  return most;
}

TEST(GradientBuffers, ChangeNoBit) {
  const Json overlap{{"overlap_comm", true}}, apart{{"overlap_comm", false}};
  for (const int stage : {1, 2, 3}) {
    for (const Json& zero :
         {overlap, apart, Json{{"contiguous_gradients", false}},
          Json{{"reduce_bucket_size", 9000}, {"overlap_comm", true}},  // matrices are larger
          Json{{"reduce_scatter", false}}, Json{{"offload_optimizer", {{"device", "cpu"}}}}}) {
      SCOPED_TRACE("stage " + std::to_string(stage) + " " + zero.dump());
      const RunSpec spec = spec_of(stage, 3, "bf16", 2, zero);
      EXPECT_EQ(first_difference(train(spec), train(buffered(spec))), "");
    }
  }
}

TEST(GradientBuffers, ChangeNoBitWithOtherTypesGroupsAndPresets) {
  for (const int stage : {1, 2, 3}) {
    SCOPED_TRACE("stage " + std::to_string(stage));
    RunSpec types = spec_of(stage, 2, "bf16", 3, {{"overlap_comm", true}});
    types.config["data_types"] = {{"grad_accum_dtype", "fp32"}};
    EXPECT_EQ(first_difference(train(types), train(buffered(types))), "") << "sums in fp32";
    types.config["communication_data_type"] = "fp16";
    EXPECT_EQ(first_difference(train(types), train(buffered(types))), "") << "on the way in fp16";
    RunSpec groups = spec_of(stage, 3, "fp32");
    groups.config["shardscope"]["param_groups"] = {
        {{"name", "no_decay"}, {"max_dims", 1}, {"weight_decay", 0}}, {{"name", "decay"}}};
    const TrainingRun reference = train(groups);
    EXPECT_EQ(first_difference(reference, train(buffered(groups))), "") << "groups";
    for (const char* preset : {"deepspeed", "notes"}) {
      for (const Json& zero : {Json::object(), Json{{"offload_optimizer", {{"device", "cpu"}}}}}) {
        RunSpec spec = spec_of(stage, 3, "bf16", 2, zero);
        spec.config["shardscope"]["compat"] = preset;
        EXPECT_EQ(first_difference(train(spec), train(buffered(spec, {{"preset", preset}}))), "")
            << preset << zero;
      }
    }
  }
}

/// A skipped step frees what it had and the next one is that of a run without buffers.
TEST(GradientBuffers, AreFreedByASkippedStep) {
  for (const int stage : {1, 2}) {
    RunSpec spec = spec_of(stage, 2, "fp16");
    spec.config["fp16"]["initial_scale_power"] = 32;
    const TrainingRun plain = train(spec);
    EXPECT_TRUE(plain.ranks[0].steps[0].skipped);
    EXPECT_EQ(first_difference(plain, train(buffered(spec))), "") << stage;
  }
}

// V5: owned 16-bit gradients 2S/n, their fp32 copies 4S/n, then the 16-bit ones are gone and the copies after
// the update. The bucket is one buffer of reduce_bucket_size elements, or with overlap_comm two, and gone
// with the backward; so are whole gradients, in stage 1 as well.
TEST(GradientBuffers, HoldWhatTheDocumentsSay) {
  for (const int stage : {1, 2}) {
    for (const bool overlap : {false, true}) {
      SCOPED_TRACE("stage " + std::to_string(stage) + (overlap ? " overlap" : ""));
      const RunSpec spec = buffered(spec_of(stage, 3, "bf16", 1, {{"overlap_comm", overlap}}));
      const ObservedRun observed = train_observed(spec);
      const plan::ModelPlan model = plan::build_model_plan(spec.model);
      const plan::Ownership ownership(model, config::parse_config(spec.config.dump(), {.world = 3}).zero, 3);
      const std::int64_t owned = ownership.owned_elems();
      std::int64_t whole = 0;
      for (const plan::ParamPlan& param : model.params) whole += block(2 * param.elems);
      for (std::uint32_t rank = 0; rank < spec.world; ++rank) {
        std::vector<std::int64_t> expected;
        for (std::int64_t step = 0; step < spec.steps; ++step) {
          expected.insert(expected.end(),
                          {block(2 * owned), block(4 * owned), -block(2 * owned), -block(4 * owned)});
        }
        EXPECT_EQ(changes(observed, rank, MemoryCategory::grad_shard), expected);
        EXPECT_EQ(most_of(changes(observed, rank, MemoryCategory::reduce_bucket)),
                  (overlap ? 2 : 1) * block(2 * kBucket));
        const std::int64_t gradients = most_of(changes(observed, rank, MemoryCategory::grad_full));
        if (stage == 1 && !overlap) {
          EXPECT_EQ(gradients, whole) << "all of them are there when the backward ends";
        } else {
          EXPECT_LT(gradients, whole / 2) << "copied into the bucket as they arrive";
        }
      }
    }
  }
}

/// Stage 3: grad_shard stays, as DeepSpeed's flat buffer of partitions does; the copies are of a sub-group.
TEST(GradientBuffers, AreCopiedBySubGroupInStageThree) {
  RunSpec spec = buffered(spec_of(3, 2, "bf16", 1, {{"sub_group_size", 20'000}}));
  const ObservedRun observed = train_observed(spec);
  const plan::ModelPlan model = plan::build_model_plan(spec.model);
  const plan::Ownership ownership(model, config::parse_config(spec.config.dump(), {.world = 2}).zero, 2,
                                  plan::kShardAlignmentBytes / 2);
  ASSERT_GT(ownership.sub_groups().size(), 2U);
  const std::int64_t owned = block(2 * ownership.owned_elems());  // from the engine's beginning to its end
  std::vector<std::int64_t> expected{owned};
  for (std::int64_t step = 0; step < spec.steps; ++step) {
    for (const plan::Range& group : ownership.sub_groups()) {
      expected.push_back(block(4 * group.size()));
      expected.push_back(-expected.back());
    }
  }
  expected.push_back(-owned);
  EXPECT_EQ(changes(observed, 0, MemoryCategory::grad_shard), expected);
  // One buffer, whatever overlap_comm says, from the first backward on.
  EXPECT_EQ(changes(observed, 0, MemoryCategory::reduce_bucket),
            (std::vector<std::int64_t>{block(2 * kBucket), -block(2 * kBucket)}));
}

/// V6 with buffers: of a gradient that spans ranks what others own stays to the step, what is owned is in the
/// owned range: together the whole, as in DeepSpeed's grads_in_partition.
TEST(GradientBuffers, KeepSpanningGradientsWholeWhereAsked) {
  for (const int stage : {1, 2}) {
    RunSpec spec = spec_of(stage, 2, "bf16");
    spec.model = model_named("mlp_span");
    const RunSpec keeping = buffered(spec, {{"keep_spanning_gradients", true}});
    const ObservedRun observed = train_observed(keeping);
    EXPECT_EQ(first_difference(train(spec), observed.run), "");
    const plan::ModelPlan model = plan::build_model_plan(keeping.model);
    const plan::Ownership ownership(model, config::parse_config(keeping.config.dump(), {.world = 2}).zero, 2);
    std::int64_t rest = 0;
    for (const plan::ParamPlan& param : model.params) {
      std::int64_t own = 0;
      for (const plan::OwnedSlice& slice : ownership.slices(param.id, 0)) own += slice.elems;
      if (own > 0 && own < param.elems) rest += block(2 * (param.elems - own));
    }
    ASSERT_GT(rest, 0);
    // Held at the end of the last step's backward: what comes back after the last allocation of that kind.
    const std::vector<std::int64_t> all = changes(observed, 0, MemoryCategory::grad_full);
    ASSERT_FALSE(all.empty());
    EXPECT_EQ(all.back(), -rest) << "one parameter spans the two ranks, stage " << stage;
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::gradient_buffers_test
