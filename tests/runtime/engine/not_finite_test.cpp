// The first gradient that was not finite, by name: in the partition of the rank that has it, and in a run
// that overflows by itself the same parameter however its gradients are partitioned.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "instrumentation/event_fields.h"
#include "runtime/plan/ownership.h"
#include "tests/runtime/engine/rank_events.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing {
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

// At stage 0 every rank has all gradients and checks its part: what is found is in the parts of all together.
// In stages 1 to 3 in one partition each. The first of all ranks, and where it stands in the order of
// backward, do not depend on it; nor do its elements. Whether they are looked for changes no weight.
TEST(NotFinite, TheFirstOfARunThatOverflowsIsTheSameInEveryStage) {
  std::optional<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>> expected;
  for (const int stage : {0, 1, 2, 3}) {
    for (const std::uint32_t world : {1U, 2U}) {
      SCOPED_TRACE(::testing::Message() << "stage " << stage << " world " << world);
      // With it stage 3 has weights before biases.
      RunSpec spec = fp16_spec(stage, world, {{"memory_efficient_linear", false}});
      spec.config["train_micro_batch_size_per_gpu"] = 8 / world;
      spec.config["fp16"]["initial_scale_power"] = 30;
      spec.steps = 1;
      const ObservedRun observed = train_observed(spec);
      ASSERT_TRUE(observed.run.ranks[0].steps.at(0).skipped);
      std::uint32_t position = std::numeric_limits<std::uint32_t>::max(), param = 0;
      std::int64_t elems = 0;
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        for (const NotFinite& found : not_finite_of(observed, rank)) {
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
      EXPECT_EQ(first_difference(observed.run, train(spec)), "");
    }
  }
}

// Backward goes from the last module to the first: where several are not finite the last one's is first.
TEST(NotFinite, FirstIsInTheOrderOfBackward) {
  RunSpec spec = fp16_spec(2, 1);
  spec.overflows_on = 0;
  const plan::ModelPlan model = plan::build_model_plan(spec.model);
  for (const NotFinite& found : not_finite_of(train_observed(spec), 0)) {
    EXPECT_EQ(found.position, 0U);
    EXPECT_EQ(model.params.at(found.param).modules.front(), model.params.back().modules.front());
    EXPECT_EQ(found.other_params, static_cast<std::int64_t>(model.params.size()) - 1);
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
}  // namespace shardscope::engine::testing
