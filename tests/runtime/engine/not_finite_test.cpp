// The first gradient that was not finite, by name: in the partition of the rank that has it, and in a run
// that overflows by itself the same parameter however its gradients are partitioned.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "instrumentation/event_fields.h"
#include "runtime/plan/ownership.h"
#include "tests/runtime/engine/rank_events.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::not_finite_test {
namespace {

using instrumentation::Event;
using instrumentation::EventKind;

using NotFinite = instrumentation::Fields<EventKind::gradient_not_finite>;

std::vector<NotFinite> not_finite_of(const ObservedRun& observed, std::uint32_t rank) {
  std::vector<NotFinite> found;
  for (const Event& event : observed.events.at(rank)) {
    if (event.kind == EventKind::gradient_not_finite)
      found.push_back(instrumentation::as<EventKind::gradient_not_finite>(event));
  }
  return found;
}

RunSpec fp16_spec(int stage, std::uint32_t world, const Json& zero = Json::object()) {
  RunSpec spec;
  spec.model = model_named("mlp");
  spec.world = world;
  spec.steps = 2;
  spec.config = make_config(stage, 1, "fp16");
  spec.config["fp16"]["initial_scale_power"] = 8;  // nothing overflows by itself
  spec.config["zero_optimization"].update(zero);
  return spec;
}

const Json kZeroSettings[] = {
    Json::object(),
    {{"offload_optimizer", {{"device", "cpu"}}}},
    {{"offload_optimizer", {{"device", "cpu"}, {"ratio", 0.5}}}, {"sub_group_size", 50}},
};

// One parameter of one rank's partition, whose elements in it are all infinite: that one, and no other rank.
TEST(NotFinite, TheParameterOfTheRankThatHasItIsNamed) {
  for (const int stage : {1, 2, 3}) {
    for (const Json& zero : kZeroSettings) {
      if (stage < 3 && zero.contains("sub_group_size")) continue;
      RunSpec spec = fp16_spec(stage, 3, zero);
      const plan::ModelPlan model = plan::build_model_plan(spec.model);
      plan::ZeroConfig layout;
      layout.stage = static_cast<std::uint32_t>(stage);
      const plan::Ownership ownership(model, layout, 3);
      const auto last = static_cast<std::uint32_t>(model.params.size() - 1);
      for (const std::uint32_t param : {0U, last / 2, last}) {
        for (const std::uint32_t rank : {0U, 1U, 2U}) {
          SCOPED_TRACE(::testing::Message() << "stage " << stage << ' ' << zero.dump() << " parameter "
                                            << param << " rank " << rank);
          std::int64_t elems = 0;
          for (const plan::OwnedSlice& slice : ownership.slices(plan::ParamId{param}, rank))
            elems += slice.elems;
          spec.overflows_on = rank;
          spec.overflows_in = plan::ParamId{param};
          const ObservedRun observed = train_observed(spec);
          for (std::uint32_t other = 0; other < 3; ++other) {
            const std::vector<NotFinite> found = not_finite_of(observed, other);
            if (other != rank || elems == 0) {
              EXPECT_TRUE(found.empty());
              continue;
            }
            ASSERT_EQ(found.size(), 2U);
            for (std::uint32_t step = 0; step < 2; ++step) {
              EXPECT_EQ(found[step].step, step);
              EXPECT_EQ(found[step].param, param);
              EXPECT_EQ(found[step].elems, elems);
              EXPECT_EQ(found[step].other_params, 0);
              EXPECT_TRUE(found[step].infinite);
              EXPECT_FALSE(found[step].nan);
            }
          }
        }
      }
    }
  }
}

/// What a step reports: from the bits, because the norm of a skipped step is NaN.
std::vector<std::array<std::uint64_t, 3>> norms_and_scales(const TrainingRun& run) {
  std::vector<std::array<std::uint64_t, 3>> out;
  for (const RankRun& rank : run.ranks) {
    for (const StepResult& step : rank.steps)
      out.push_back({std::bit_cast<std::uint64_t>(step.grad_norm),
                     std::bit_cast<std::uint64_t>(step.loss_scale), step.skipped ? 1U : 0U});
  }
  return out;
}

// At stage 0 every rank has all gradients and checks its part: what is found is in the parts of all together.
// In stages 1 to 3 in one partition each. The first of all ranks, and where it stands in the order of
// backward, do not depend on it; nor do its elements. Whether they are looked for changes nothing in the
// steps that are skipped, nor in those after them.
TEST(NotFinite, TheFirstOfARunThatOverflowsIsTheSameInEveryStage) {
  std::optional<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>> expected;
  for (const int stage : {0, 1, 2, 3}) {
    for (const std::uint32_t world : {1U, 2U}) {
      SCOPED_TRACE(::testing::Message() << "stage " << stage << " world " << world);
      // With it stage 3 has weights before biases.
      RunSpec spec = fp16_spec(stage, world, {{"memory_efficient_linear", false}});
      spec.config["train_micro_batch_size_per_gpu"] = 8 / world;
      spec.config["fp16"]["initial_scale_power"] = 30;
      spec.config["fp16"]["hysteresis"] = 1;  // the scale falls with every skipped step
      spec.steps = 20;
      const ObservedRun observed = train_observed(spec);
      const std::vector<StepResult>& steps = observed.run.ranks[0].steps;
      ASSERT_TRUE(steps.at(0).skipped);
      ASSERT_GE(std::ranges::count(steps, false, &StepResult::skipped), 2);
      std::uint32_t position = std::numeric_limits<std::uint32_t>::max(), param = 0;
      std::int64_t elems = 0;
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        for (const NotFinite& found : not_finite_of(observed, rank)) {
          EXPECT_TRUE(steps.at(found.step).skipped);
          if (found.step > 0) continue;
          if (found.position < position) {
            position = found.position;
            param = found.param;
            elems = 0;
          }
          if (found.position == position) elems += found.elems;
        }
      }
      ASSERT_GT(elems, 0);
      if (!expected) expected = {param, position, elems};
      EXPECT_EQ(expected, std::tuple(param, position, elems));
      const TrainingRun unobserved = train(spec);
      EXPECT_EQ(first_difference(observed.run, unobserved), "");
      EXPECT_EQ(norms_and_scales(observed.run), norms_and_scales(unobserved));
    }
  }
}

// Backward goes from the last module to the first: where several are not finite the last one's is first.
TEST(NotFinite, FirstIsInTheOrderOfBackward) {
  RunSpec spec = fp16_spec(2, 1);
  spec.overflows_on = 0;
  const plan::ModelPlan model = plan::build_model_plan(spec.model);
  const std::vector<NotFinite> all = not_finite_of(train_observed(spec), 0);
  ASSERT_EQ(all.size(), 2U);
  for (const NotFinite& found : all) {
    EXPECT_EQ(found.position, 0U);
    EXPECT_EQ(model.params.at(found.param).modules.front(), model.params.back().modules.front());
    EXPECT_EQ(found.other_params, static_cast<std::int64_t>(model.params.size()) - 1);
  }
}

// A leaf module's gradients are reduced together, in the order of parameters, when its backward ends. They
// were complete one after the other before, and that is the order in which the first is.
TEST(NotFinite, ALeafModuleChangesNoOrder) {
  RunSpec spec = fp16_spec(3, 1, {{"memory_efficient_linear", false}});
  spec.steps = 1;
  RunSpec leaf = spec;
  leaf.config["zero_optimization"]["leaf_module"] = {{"name_suffixes", {"blk.1"}}};
  const plan::ModelPlan model = plan::build_model_plan(spec.model);
  spec.overflows_on = leaf.overflows_on = 0;
  std::vector<std::uint32_t> positions;
  for (std::uint32_t param = 0; param < model.params.size(); ++param) {
    SCOPED_TRACE(::testing::Message() << "parameter " << param);
    spec.overflows_in = leaf.overflows_in = plan::ParamId{param};
    const std::vector<NotFinite> plain = not_finite_of(train_observed(spec), 0);
    const std::vector<NotFinite> found = not_finite_of(train_observed(leaf), 0);
    ASSERT_EQ(plain.size(), 1U);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].param, param);
    EXPECT_EQ(found[0].position, plain[0].position);
    positions.push_back(found[0].position);
  }
  std::ranges::sort(positions);
  EXPECT_EQ(std::ranges::adjacent_find(positions), positions.end());
}

// MiCS: two shard groups hold the same elements. One infinite element is found by one rank.
TEST(NotFinite, AReplicaOfAnElementIsNoFurtherElement) {
  RunSpec spec = fp16_spec(3, 4, {{"mics_shard_size", 2}});
  spec.steps = 1;
  const plan::ModelPlan model = plan::build_model_plan(spec.model);
  ASSERT_EQ(model.params.back().elems, 1);  // all of it is in the first shard: of ranks 0 and 2
  spec.overflows_in = model.params.back().id;
  for (const std::uint32_t rank : {0U, 2U}) {
    SCOPED_TRACE(::testing::Message() << "from rank " << rank);
    spec.overflows_on = rank;
    const ObservedRun observed = train_observed(spec);
    EXPECT_TRUE(observed.run.ranks[0].steps.at(0).skipped);
    const std::vector<NotFinite> found = not_finite_of(observed, 0);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].param, plan::raw(model.params.back().id));
    EXPECT_EQ(found[0].elems, 1);
    for (const std::uint32_t other : {1U, 2U, 3U}) EXPECT_TRUE(not_finite_of(observed, other).empty());
  }
}

// Where such a step is not skipped its gradients are applied, and every later step is not finite: the first
// alone says where it came from.
TEST(NotFinite, ARunThatDoesNotSkipLooksOnce) {
  for (const char* type : {"bf16", "fp32"}) {
    SCOPED_TRACE(type);
    RunSpec spec = fp16_spec(2, 2);
    spec.config = make_config(2, 1, type);
    if (spec.config.contains("bf16")) spec.config["bf16"]["check_grad_overflow"] = false;
    spec.steps = 4;
    const plan::ModelPlan model = plan::build_model_plan(spec.model);
    // Of rank 1's partition alone at first; of both once the weights are NaN.
    spec.overflows_on = 1;
    spec.overflows_in = model.params.back().id;
    const ObservedRun observed = train_observed(spec);
    for (const StepResult& step : observed.run.ranks[0].steps) {
      EXPECT_FALSE(step.skipped);
      EXPECT_TRUE(std::isnan(step.grad_norm));
    }
    EXPECT_TRUE(not_finite_of(observed, 0).empty());
    const std::vector<NotFinite> found = not_finite_of(observed, 1);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].step, 0U);
    EXPECT_EQ(found[0].param, plan::raw(model.params.back().id));
  }
}

TEST(NotFinite, IsNotEmittedByAHealthyRun) {
  for (const int stage : {0, 3}) {
    const ObservedRun observed = train_observed(fp16_spec(stage, 2));
    for (const std::uint32_t rank : {0U, 1U}) {
      EXPECT_TRUE(not_finite_of(observed, rank).empty());
      EXPECT_FALSE(observed.run.ranks[rank].steps.at(0).skipped);
    }
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::not_finite_test
