// In which types gradients are summed and exchanged, and what the order of those sums may change.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/engine/gradients.h"
#include "tests/runtime/comm/thread_ranks.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::gradient_types_test {
namespace {

using execution::EventPool;

RunSpec spec_of(int stage, std::uint32_t world, const std::string& type, int accumulation,
                const std::string& sum, const std::string& wire) {
  RunSpec spec;
  spec.model = model_named("mlp");
  spec.config = make_config(stage, accumulation, type);
  if (!sum.empty()) spec.config["data_types"] = {{"grad_accum_dtype", sum}};
  if (!wire.empty()) spec.config["communication_data_type"] = wire;
  spec.world = world;
  spec.steps = 2;
  return spec;
}

// A single micro-step is summed over ranks once, whatever the types, so the stages agree bitwise.
TEST(GradientTypes, StagesAgreeBitwise) {
  for (const auto& [type, sum, wire] : {std::tuple{"bf16", "fp32", ""},
                                        {"bf16", "fp32", "fp32"},
                                        {"bf16", "", "fp32"},
                                        {"fp16", "fp32", "bf16"},
                                        {"fp32", "", "bf16"},
                                        {"fp32", "fp32", "fp16"}}) {
    const TrainingRun reference = train(spec_of(0, 3, type, 1, sum, wire));
    for (const int stage : {1, 2, 3}) {
      EXPECT_EQ(first_difference(reference, train(spec_of(stage, 3, type, 1, sum, wire))), "")
          << type << ' ' << sum << ' ' << wire << " stage " << stage;
    }
    RunSpec legacy = spec_of(1, 3, type, 1, sum, wire);
    legacy.config["zero_optimization"]["legacy_stage1"] = true;
    legacy.config["zero_optimization"]["max_elements_per_comm"] = 9001;
    EXPECT_EQ(first_difference(reference, train(legacy)), "");
    RunSpec whole = spec_of(3, 3, type, 1, sum, wire);
    whole.config["zero_optimization"]["reduce_scatter"] = false;
    EXPECT_EQ(first_difference(reference, train(whole)), "");
  }
}

// Sums over ranks are fp32 and rounded once, at the end: sending fp32 and rounding on arrival is the same.
TEST(GradientTypes, Fp32OnTheWireChangesNoBitOf16BitGradients) {
  for (const int stage : {0, 1, 2, 3}) {
    EXPECT_EQ(first_difference(train(spec_of(stage, 3, "bf16", 1, "", "")),
                               train(spec_of(stage, 3, "bf16", 1, "", "fp32"))),
              "");
  }
}

TEST(GradientTypes, EachKeyDoesSomething) {
  for (const int stage : {0, 2, 3}) {
    const TrainingRun plain = train(spec_of(stage, 2, "fp32", 1, "", ""));
    EXPECT_NE(first_difference(plain, train(spec_of(stage, 2, "fp32", 1, "", "bf16"))), "") << stage;
    const TrainingRun rounded = train(spec_of(stage, 2, "bf16", 3, "", "fp32"));
    const TrainingRun summed = train(spec_of(stage, 2, "bf16", 3, "fp32", "fp32"));
    EXPECT_NE(first_difference(rounded, summed), "") << stage;
    // fp32 sums of micro-steps: 4 bytes per gradient element where the storage type has 2.
    const std::int64_t elems = plan::build_model_plan(model_named("mlp")).elems;
    const std::int64_t held = stage == 0 ? elems : elems / 2;
    EXPECT_NEAR(static_cast<double>(summed.ranks[0].state_bytes_after),
                static_cast<double>(rounded.ranks[0].state_bytes_after) + 2.0 * static_cast<double>(held),
                4000.0);  // alignment of shards to cache lines
  }
}

// ---- Order of sums with accumulation ---------------------------------------------------------------------

/// What each rank owns after one window in which micro-step m of rank r contributes value(r, m, i) to element
/// i of the flat parameters.
using Values = std::function<float(std::uint32_t, std::int64_t, std::int64_t)>;
std::vector<float> reduced_gradient(int stage, std::uint32_t world, int accumulation, const Values& value) {
  const plan::ModelPlan model = plan::build_model_plan(model_named("mlp_span"));
  config::ParseOptions parse;
  parse.world = world;
  const config::TrainingConfig config = config::parse_config(make_config(stage, accumulation).dump(), parse);
  std::vector<float> whole(static_cast<std::size_t>(model.elems));
  const auto body = [&](comm::World& ranks, device::Device& device) {
    const auto gather = ranks.make_communicator("gather");
    const auto reduce = ranks.make_communicator("reduce");
    const auto control = ranks.make_communicator("control");
    instrumentation::GateKeeper gates;
    const Context context{model, config, device, *gather, *reduce, *control, gates};
    const plan::Ownership ownership(model, config.zero, world);
    EventPool events(device);
    const auto gradients = stage < 2 ? make_resident_gradients(context, events, ownership)
                                     : make_sharded_gradients(context, events, ownership);
    for (std::int64_t m = 0; m < accumulation; ++m) {
      gradients->begin_backward({m, accumulation});
      std::int64_t first = 0;
      for (const plan::ParamPlan& param : model.params) {
        const model::GradTarget target = gradients->target(param.id);
        device.compute().run([=, &value, rank = ranks.rank()](const kernels::Exec&) {
          auto* to = static_cast<float*>(target.data.data);
          for (std::int64_t i = 0; i < param.elems; ++i) {
            to[i] = (target.accumulate ? to[i] : 0.0F) + value(rank, m, first + i);
          }
        });
        gradients->ready(param.id);
        first += param.elems;
      }
      gradients->end_backward();
    }
    gradients->drain();
    device.synchronize();
    const auto* owned = static_cast<const float*>(gradients->owned().device.data);
    std::int64_t first = 0;
    for (const plan::ParamPlan& param : model.params) {
      if (stage > 0 || ranks.rank() == 0) {
        for (const plan::OwnedSlice& slice : ownership.slices(param.id, ranks.rank())) {
          std::copy_n(owned + slice.owned_offset, slice.elems, whole.data() + first + slice.param_offset);
        }
      }
      first += param.elems;
    }
    control->barrier_host();
  };
  for (const auto& outcome : shardscope::testing::run_ranks(world, {}, body)) EXPECT_EQ(outcome.error, "");
  return whole;
}

/// Uniform in [-1, 1), the same on every call.
float noise(std::uint32_t rank, std::int64_t micro, std::int64_t element) {
  auto x = static_cast<std::uint64_t>(element) * 0x9E3779B97F4A7C15U + rank * 0xBF58476D1CE4E5B9U +
           static_cast<std::uint64_t>(micro) * 0x94D049BB133111EBU;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<float>(static_cast<double>((x ^ (x >> 31U)) >> 11U) * 0x1p-52 - 1);
}

// Stages 0 and 1 add a rank's k micro-steps and reduce once; 2 and 3, which may not hold whole gradients
// until then, reduce each micro-step and add k results (docs/zero.md S15). Both add the same k*n numbers,
// in different order. Each of at most (k-1) + (n-1) additions along a path, and the factor 1/n, rounds by
// 2^-24, so each order is within (k + n - 1) * 2^-24 * sum|g| / n of the exact mean, and they within twice
// that of one another. Where every sum is exact they agree bitwise: nothing but rounding is different.
TEST(OrderOfSums, MovesAnElementByRoundingOnly) {
  for (const std::uint32_t world : {1U, 2U, 3U, 4U, 5U}) {
    for (const int k : {1, 3}) {
      std::vector<std::vector<float>> random, exact;
      for (const int stage : {0, 1, 2, 3}) {
        random.push_back(reduced_gradient(stage, world, k, noise));
        exact.push_back(reduced_gradient(stage, world, k, [](auto rank, auto micro, auto i) {
          return std::round(noise(rank, micro, i) * 1024);  // sums of these need 11 + 4 bits
        }));
      }
      EXPECT_EQ(random[0], random[1]);
      EXPECT_EQ(random[2], random[3]);
      EXPECT_EQ(exact[0], exact[1]);
      EXPECT_EQ(exact[2], exact[3]);
      if (k == 1) {
        EXPECT_EQ(random[0], random[2]) << "one micro-step leaves one order";
      }
      // 1/n is exact for a power of two only; otherwise the mean of a sum and the sum of means differ.
      if ((world & (world - 1)) == 0) {
        EXPECT_EQ(exact[0], exact[2]) << world;
      }
      std::size_t differ = 0;
      for (std::size_t i = 0; i < random[0].size(); ++i) {
        double magnitude = 0;
        for (std::uint32_t rank = 0; rank < world; ++rank) {
          for (int m = 0; m < k; ++m) {
            magnitude += std::abs(noise(rank, m, static_cast<std::int64_t>(i)));
          }
        }
        const double bound = 2.0 * (k + static_cast<double>(world) - 1) * 0x1p-24 * magnitude / world;
        ASSERT_LE(std::abs(static_cast<double>(random[0][i]) - static_cast<double>(random[2][i])), bound)
            << "world " << world << " element " << i;
        differ += random[0][i] != random[2][i] ? 1 : 0;
      }
      if (k > 1 && world > 1) {
        EXPECT_GT(differ, 0U) << "the bound is for something";
      }
    }
  }
}

// ---- ignore_unused_parameters -----------------------------------------------------------------------------

TEST(UnusedParameters, AreNamedWhereTheyAreNotIgnored) {
  RunSpec spec;
  spec.model = plan::parse_model_spec(R"({
    "name": "sometimes", "input": {"kind": "vectors", "width": 10}, "loss": {"kind": "mse", "width": 1},
    "root": {"kind": "sequential", "children": [
      {"kind": "linear", "name": "in", "in": 10, "out": 8},
      {"kind": "conditional", "skip_iterations": [3],
       "children": [{"kind": "linear", "name": "maybe", "in": 8, "out": 8}]},
      {"kind": "linear", "name": "out", "in": 8, "out": 1}]}})");
  spec.world = 2;
  for (const int stage : {0, 1, 2, 3}) {
    spec.config = make_config(stage);
    EXPECT_EQ(train(spec).ranks[1].error, "") << stage;
    spec.config["zero_optimization"]["ignore_unused_parameters"] = false;
    const TrainingRun refused = train(spec);
    EXPECT_NE(refused.ranks[0].error.find("no gradient reached maybe.weight, maybe.bias"), std::string::npos)
        << refused.ranks[0].error;
    EXPECT_NE(refused.ranks[0].error.find("ignore_unused_parameters is false; set it to true"),
              std::string::npos)
        << "what to do";
    EXPECT_EQ(refused.ranks[0].steps.size(), 3U);
    // A window that uses it once is enough.
    spec.config = make_config(stage, 2);
    spec.config["zero_optimization"]["ignore_unused_parameters"] = false;
    EXPECT_EQ(train(spec).ranks[1].error, "") << stage;
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::gradient_types_test
