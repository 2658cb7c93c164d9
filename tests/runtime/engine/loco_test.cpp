// qgZ's error feedback (LoCo, docs/zero.md P19) over several steps of both hops, against the recursion in
// double precision, and what reset_T makes of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/engine/quantized_reduce.h"
#include "runtime/plan/quantization.h"
#include "tests/runtime/comm/thread_ranks.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing::loco_test {
namespace {

constexpr std::uint32_t kLocoRanks = 4, kRanksPerNode = 2, kNodes = 2;
constexpr std::int64_t kElems = 12 * 10;
constexpr int kSteps = 7;

plan::ModelSpec model() {
  return plan::parse_model_spec(R"({
    "name": "one", "input": {"kind": "vectors", "width": 10}, "loss": {"kind": "mse", "width": 12},
    "root": {"kind": "sequential", "children": [
      {"kind": "linear", "name": "a", "in": 10, "out": 12, "bias": false}]}})");
}

/// Gradients of alike size, so that every group has something to lose; the same on every call.
float gradient(std::uint64_t seed, std::uint32_t rank, int step, std::int64_t element) {
  auto x = seed * 0xD6E8FEB86659FD93U + static_cast<std::uint64_t>(element + 1) * 0x9E3779B97F4A7C15U +
           (rank + 1) * 0xBF58476D1CE4E5B9U + static_cast<std::uint64_t>(step + 1) * 0x94D049BB133111EBU;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<float>(static_cast<double>((x ^ (x >> 31U)) >> 11U) * 0x1p-52 - 1);
}

using Doubles = std::vector<double>;

/// Rounding to `largest` steps each side of zero, group by group. fp32 may decide otherwise only where a
/// value lies within its own error of a tie: how many times 2^-24 of the group's largest the nearest is away.
class Rounding {
 public:
  Doubles operator()(const Doubles& x, std::int64_t group, double largest) {
    Doubles q(x.size());
    for (std::size_t begin = 0; begin < x.size(); begin += static_cast<std::size_t>(group)) {
      const std::size_t end = std::min(x.size(), begin + static_cast<std::size_t>(group));
      double top = 0;
      for (std::size_t i = begin; i < end; ++i) top = std::max(top, std::abs(x[i]));
      const double scale = top / largest;
      if (scale == 0) continue;
      for (std::size_t i = begin; i < end; ++i) {
        const double steps = x[i] / scale;
        q[i] = std::nearbyint(steps) * scale;
        const double tie = std::abs(std::abs(steps - std::floor(steps)) - 0.5);
        nearest_tie_ = std::min(nearest_tie_, tie / largest * 0x1p24);
      }
    }
    return q;
  }
  [[nodiscard]] double nearest_tie() const { return nearest_tie_; }

 private:
  double nearest_tie_ = HUGE_VAL;
};

/// One error: h = x + e is rounded to int4, then e <- beta e + (1 - beta)(h - q), itself kept as int8.
class Feedback {
 public:
  Doubles operator()(const Doubles& x, std::int64_t group, double beta, Rounding& rounded) {
    error_.resize(x.size());
    Doubles h = x;
    for (std::size_t i = 0; i < h.size(); ++i) h[i] += error_[i];
    const Doubles q = rounded(h, group, 7);
    for (std::size_t i = 0; i < h.size(); ++i) error_[i] = beta * error_[i] + (1 - beta) * (h[i] - q[i]);
    error_ = rounded(error_, group, 127);
    return q;
  }
  void forget() { error_.clear(); }

 private:
  Doubles error_;
};

/// What rank `owner` of slice `owner` receives in each step: int4 of every rank's gradient, summed within
/// each node, int4 again, the mean over all ranks.
std::vector<Doubles> reference(std::uint64_t seed, double beta, int reset_t, Rounding& rounded) {
  const plan::QuantGroups groups = plan::gradient_groups({12, 10}, kLocoRanks);
  std::vector<Doubles> received(kSteps, Doubles(kElems));
  std::vector<std::vector<Feedback>> first(kLocoRanks, std::vector<Feedback>(kLocoRanks));
  std::vector<std::vector<Feedback>> second(kNodes, std::vector<Feedback>(kLocoRanks));
  for (int step = 0; step < kSteps; ++step) {
    for (std::uint32_t slice = 0; slice < kLocoRanks; ++slice) {
      const std::int64_t begin = slice * groups.elems;
      for (std::uint32_t node = 0; node < kNodes; ++node) {
        Doubles sum(static_cast<std::size_t>(groups.elems));
        for (std::uint32_t rank = node * kRanksPerNode; rank < (node + 1) * kRanksPerNode; ++rank) {
          Doubles x;
          for (std::int64_t i = 0; i < groups.elems; ++i) {
            x.push_back(static_cast<double>(gradient(seed, rank, step, begin + i)));
          }
          const Doubles q = first[rank][slice](x, groups.group_elems, beta, rounded);
          for (std::size_t i = 0; i < q.size(); ++i) sum[i] += q[i];
        }
        const Doubles q = second[node][slice](sum, groups.group_elems, beta, rounded);
        for (std::size_t i = 0; i < q.size(); ++i) {
          received[static_cast<std::size_t>(step)][static_cast<std::size_t>(begin) + i] += q[i] / kLocoRanks;
        }
      }
    }
    if ((step + 1) % reset_t != 0) continue;
    for (auto* errors : {&first, &second}) {
      for (std::vector<Feedback>& of_slices : *errors) {
        for (Feedback& error : of_slices) error.forget();
      }
    }
  }
  return received;
}

/// The same from the engine's collectives, on four ranks of two nodes. `loco` null: no feedback.
std::vector<Doubles> reduced(std::uint64_t seed, const Json& loco) {
  const plan::ModelPlan plan = plan::build_model_plan(model());
  Json json = make_config(3);
  json["zero_optimization"]["zero_quantized_gradients"] = true;
  json["shardscope"] = {{"ranks_per_node", kRanksPerNode}};
  if (!loco.is_null()) json["zero_optimization"]["zeropp_loco_param"] = loco;
  config::ParseOptions parse;
  parse.world = kLocoRanks;
  const config::TrainingConfig config = config::parse_config(json.dump(), parse);
  std::vector<Doubles> received(kSteps, Doubles(kElems));
  const auto body = [&](comm::World& world, device::Device& device) {
    const auto gather = world.make_communicator("gather");
    const auto reduce = world.make_communicator("reduce");
    const auto control = world.make_communicator("control");
    world.set_ranks_per_node(kRanksPerNode);
    instrumentation::GateKeeper gates;
    const comm::ZeroCommunicators groups(config.zero, {kLocoRanks, kRanksPerNode}, world.rank(),
                                         [&](const std::string& name, const comm::Group& group) {
                                           return world.make_communicator(name, group);
                                         });
    const Context context{plan, config, device, *gather, *reduce, *control, gates, &groups};
    QuantizedReduce quantized(context);
    const plan::ParamId param{0};
    ASSERT_TRUE(quantized.takes(param));
    std::vector<float> whole(kElems), own(kElems / kLocoRanks);
    for (int step = 0; step < kSteps; ++step) {
      for (std::int64_t i = 0; i < kElems; ++i) {
        whole[static_cast<std::size_t>(i)] = gradient(seed, world.rank(), step, i);
      }
      const QuantizedReduce::Part part{
          param, {whole.data(), kernels::DType::f32}, {own.data(), kernels::DType::f32}};
      quantized.reduce({&part, 1}, 1.0F / kLocoRanks, {0});
      quantized.end_step(static_cast<std::uint32_t>(step));
      device.synchronize();
      std::copy(own.begin(), own.end(),
                received[static_cast<std::size_t>(step)].begin() +
                    static_cast<std::ptrdiff_t>(world.rank() * own.size()));
    }
    control->barrier_host();
  };
  for (const auto& outcome : shardscope::testing::run_ranks(kLocoRanks, {}, body))
    EXPECT_EQ(outcome.error, "");
  return received;
}

double largest_difference(const Doubles& a, const Doubles& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

class LoCo : public ::testing::TestWithParam<int> {};  // reset_T

TEST_P(LoCo, FollowsTheRecursion) {
  constexpr double kBeta = 0.8;
  // What is rounded is a sum of at most three values, each with a handful of roundings of fp32. The first
  // gradients that are further from every tie are rounded alike by both.
  std::vector<Doubles> expected;
  std::uint64_t seed = 0;
  for (double tie = 0; tie < 8;) {
    Rounding rounded;
    expected = reference(++seed, kBeta, GetParam(), rounded);
    tie = rounded.nearest_tie();
    ASSERT_LT(seed, 1000U);
  }
  const std::vector<Doubles> actual = reduced(seed, {{"err_beta", kBeta}, {"reset_T", GetParam()}});
  for (std::size_t step = 0; step < expected.size(); ++step) {
    // Sums of two values of up to 4 in fp32.
    EXPECT_LT(largest_difference(actual[step], expected[step]), 20 * 4 * 0x1p-24) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Reset, LoCo, ::testing::Values(1, 3, 1024),
                         [](const auto& c) { return "every" + std::to_string(c.param); });

// The step after a reset is one without feedback, and only that one.
TEST(LoCoReset, ForgetsAllErrors) {
  const std::vector<Doubles> plain = reduced(1, nullptr);
  const std::vector<Doubles> fed = reduced(1, {{"err_beta", 0.8}, {"reset_T", 3}});
  for (std::size_t step = 0; step < plain.size(); ++step) {
    EXPECT_EQ(plain[step] == fed[step], step % 3 == 0) << step;
  }
}

}  // namespace
}  // namespace shardscope::engine::testing::loco_test
