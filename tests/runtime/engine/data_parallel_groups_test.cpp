// Copies of a model in data-parallel groups: each is trained as by its ranks alone, and a step is skipped in
// all of them or in none.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "instrumentation/event_fields.h"
#include "runtime/engine/run_tables.h"
#include "tests/runtime/engine/rank_events.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::data_parallel_groups_test {
namespace {

namespace ev = shardscope::instrumentation;

using Groups = std::vector<std::vector<std::uint32_t>>;

RunSpec spec_of(int stage, const std::string& type, const Groups& groups, std::uint32_t world) {
  RunSpec spec;
  spec.model = model_named("gpt_tied");
  spec.data = "golden:gpt";
  spec.config = make_config(stage, 2, type);
  if (!groups.empty()) spec.config["shardscope"]["data_parallel_groups"] = groups;
  spec.world = world;
  spec.steps = 3;
  return spec;
}

/// The ranks of `members` of a run, and the weights of their copy, as a run of their own.
TrainingRun copy_of(const TrainingRun& run, const std::vector<std::uint32_t>& members) {
  TrainingRun copy;
  for (const std::uint32_t rank : members) copy.ranks.push_back(run.ranks[rank]);
  copy.weights = members.front() == 0 ? run.weights : run.ranks[members.front()].weights;
  return copy;
}

void expect_each_as_alone(const RunSpec& together, const RunSpec& alone, const Groups& groups,
                          const std::string& what) {
  const TrainingRun all = train(together);
  const TrainingRun one = train(alone);
  for (const auto& members : groups) {
    const TrainingRun copy = copy_of(all, members);
    EXPECT_EQ(first_difference(one, copy), "") << what;
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      const RankRun& expected = one.ranks[rank];
      EXPECT_EQ(copy.ranks[rank].model_state_peak, expected.model_state_peak) << what;
      EXPECT_EQ(copy.ranks[rank].volume.gathered, expected.volume.gathered) << what;
      EXPECT_EQ(copy.ranks[rank].volume.reduced, expected.volume.reduced) << what;
      EXPECT_EQ(copy.ranks[rank].steps.back().grad_norm, expected.steps.back().grad_norm) << what;
    }
  }
}

TEST(DataParallelGroups, EachCopyIsTrainedAsByItsRanksAlone) {
  for (const Groups& groups : {Groups{{0, 1}, {2, 3}}, Groups{{1, 3}, {0, 2}}}) {
    for (const int stage : {0, 1, 2, 3}) {
      for (const std::string type : {"fp32", "bf16"}) {
        expect_each_as_alone(spec_of(stage, type, groups, 4), spec_of(stage, type, {}, 2), groups,
                             "stage " + std::to_string(stage) + " " + type);
      }
    }
  }
}

TEST(DataParallelGroups, AGroupOfOneRankHoldsItsCopyWhole) {
  const Groups groups{{0}, {1}, {2}};
  expect_each_as_alone(spec_of(3, "fp32", groups, 3), spec_of(3, "fp32", {}, 1), groups, "alone");
}

// ZeRO++'s and MiCS's groups lie inside a copy, and nodes are counted as its ranks are on them.
TEST(DataParallelGroups, SmallerGroupsLieInsideACopy) {
  const Groups groups{{0, 1, 4, 5}, {2, 3, 6, 7}};  // two of each node of four
  for (const Json& zero : {Json{{"zero_hpz_partition_size", 2}}, Json{{"mics_shard_size", 2}},
                           Json{{"zero_quantized_gradients", true}, {"zero_quantized_weights", true}}}) {
    RunSpec together = spec_of(3, "bf16", groups, 8);
    together.config["zero_optimization"].update(zero);
    together.config["shardscope"]["ranks_per_node"] = 4;
    RunSpec alone = spec_of(3, "bf16", {}, 4);
    alone.config["zero_optimization"].update(zero);
    alone.config["shardscope"]["ranks_per_node"] = 2;
    expect_each_as_alone(together, alone, groups, zero.dump());
  }
}

// As DeepSpeed among model-parallel peers: a step that one copy skips is skipped by all.
TEST(DataParallelGroups, AnOverflowInOneCopySkipsTheStepInAll) {
  for (const int stage : {1, 2, 3}) {
    RunSpec spec = spec_of(stage, "fp16", {{0, 1}, {2, 3}}, 4);
    spec.overflows_on = 3;
    const TrainingRun run = train(spec);
    ASSERT_EQ(first_difference(run, run), "");
    for (const RankRun& rank : run.ranks) {
      for (const StepResult& step : rank.steps) EXPECT_TRUE(step.skipped) << "stage " << stage;
      EXPECT_EQ(rank.steps.back().loss_scale, run.ranks.front().steps.back().loss_scale);
    }
    spec.overflows_on.reset();
    const TrainingRun finite = train(spec);
    ASSERT_EQ(first_difference(finite, finite), "");
    EXPECT_FALSE(finite.ranks.front().steps.back().skipped && finite.ranks.front().steps.front().skipped);
  }
}

// A viewer distinguishes the copies' collectives: by the group that a rank's tables describe, and by numbers
// that no other group of the rank has.
TEST(DataParallelGroups, CollectivesNameTheGroup) {
  const ObservedRun observed = train_observed(spec_of(3, "fp32", {{0, 2}, {1, 3}}, 4));
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    std::size_t count = 0;
    for (const ev::Event& event : observed.events.at(rank)) {
      if (event.kind != ev::EventKind::collective_begin) continue;
      const auto collective = ev::as<ev::EventKind::collective_begin>(event);
      EXPECT_EQ(collective.code.group(), kDataParallelGroup);
      EXPECT_EQ(collective.sequence >> 24U, kDataParallelGroup + 1);
      ++count;
    }
    EXPECT_GT(count, 10U);
  }
}

TEST(DataParallelGroups, TablesDescribeGroupsAndTheSlicesOfEveryCopy) {
  const RunSpec spec = spec_of(3, "fp32", {{0, 2}, {1, 3}}, 4);
  config::ParseOptions parse;
  parse.world = 4;
  const config::TrainingConfig config = config::parse_config(spec.config.dump(), parse);
  const plan::ModelPlan model = plan::build_model_plan(spec.model);
  const ev::RunTables tables = make_run_tables(model, config, {"run", "cpu", "", 3, 4, 4});
  ASSERT_EQ(tables.groups.size(), 2U);
  EXPECT_EQ(tables.groups[0].purpose, ev::GroupPurpose::data);
  EXPECT_EQ(tables.groups[0].ranks, (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(tables.groups[1].ranks, (std::vector<std::uint32_t>{2, 3}));
  std::vector<std::int64_t> held(4);
  for (const ev::SliceInfo& slice : tables.slices) held.at(slice.rank) += slice.elems;
  EXPECT_EQ(held[0], held[1]);
  EXPECT_EQ(held[2], held[3]);
  EXPECT_EQ(held[0] + held[2], model.elems) << "a copy is whole";
}

}  // namespace
}  // namespace shardscope::engine::testing::data_parallel_groups_test
