// Every stage, offloaded or not, at each world of 1 to 5, with and without accumulation: the same loss and
// the same weights. Bitwise where sums are in one order; where they are not, and between number formats,
// within the bound that error propagation gives (bounded_mlp.h).
#include <gtest/gtest.h>

#include <map>

#include "tests/runtime/engine/bounded_mlp.h"

namespace shardscope::engine::testing::stage_matrix_test {
namespace {

constexpr double kLearningRate = 0.02;
constexpr double kLossScale = 256;

/// 187 parameters that divide by nothing: at world 5 parameters span ranks and ranks end within rows.
plan::ModelSpec odd_model() {
  return plan::parse_model_spec(R"({
    "name": "odd", "input": {"kind": "vectors", "width": 10}, "loss": {"kind": "mse", "width": 1},
    "root": {"kind": "sequential", "children": [
      {"kind": "linear", "name": "a", "in": 10, "out": 11}, {"kind": "relu"},
      {"kind": "linear", "name": "b", "in": 11, "out": 5}, {"kind": "relu"},
      {"kind": "linear", "name": "c", "in": 5, "out": 1}]}})");
}

struct Place {
  int stage;
  std::string offload;  ///< none, optimizer, all: to host memory; nvme: all, to files
};
std::vector<Place> places() {
  return {{0, "none"},      {1, "none"},      {2, "none"}, {3, "none"}, {1, "optimizer"},
          {2, "optimizer"}, {3, "optimizer"}, {3, "all"},  {3, "nvme"}};
}

struct Shape {
  std::uint32_t world;
  int accumulation;
};
class StageMatrix : public ::testing::TestWithParam<Shape> {
 protected:
  using Optimizer = Json;
  /// What bounds of errors can be followed through.
  static Optimizer without_memory() {
    return {{"lr", kLearningRate}, {"betas", {0.0, 0.0}}, {"eps", 1.0}, {"weight_decay", 0.0}};
  }
  [[nodiscard]] static RunSpec spec_of(const Place& place, const std::string& type, std::int64_t steps,
                                       const Optimizer& optimizer = without_memory()) {
    RunSpec spec;
    spec.model = odd_model();
    spec.world = GetParam().world;
    spec.steps = steps;
    spec.config = make_config(place.stage, GetParam().accumulation, type);
    spec.config["train_micro_batch_size_per_gpu"] = 3;
    spec.config["gradient_clipping"] = 0.0;
    spec.config["optimizer"]["params"] = optimizer;
    if (type == "fp16") spec.config["fp16"]["loss_scale"] = kLossScale;
    Json& zero = spec.config["zero_optimization"];
    zero["reduce_bucket_size"] = 100;  // the largest parameter, 110 elements, travels by itself
    if (place.stage == 3) {
      zero["sub_group_size"] = 30;
      zero["stage3_prefetch_bucket_size"] = 70;
      zero["stage3_max_live_parameters"] = 150;
    }
    if (place.offload == "nvme") {
      zero["offload_param"] = {{"device", "nvme"}, {"nvme_path", ::testing::TempDir()}};
      zero["offload_optimizer"] = zero["offload_param"];
      return spec;
    }
    if (place.offload != "none") zero["offload_optimizer"] = {{"device", "cpu"}};
    if (place.offload == "all") zero["offload_param"] = {{"device", "cpu"}};
    return spec;
  }

  /// All places, each bitwise like the first of its order of sums; the first of each order.
  static std::vector<TrainingRun> orders(const std::string& type, std::int64_t steps,
                                         const Optimizer& optimizer = without_memory()) {
    std::map<int, TrainingRun> first;
    for (const Place& place : places()) {
      // Stages 2 and 3 reduce every micro-step before they add them up (docs/zero.md S15).
      const int order = GetParam().accumulation > 1 && place.stage >= 2 ? 2 : 0;
      TrainingRun run = train(spec_of(place, type, steps, optimizer));
      const auto [found, is_first] = first.emplace(order, run);
      EXPECT_EQ(first_difference(found->second, run), "")
          << type << " stage " << place.stage << " offload " << place.offload;
      for (const RankRun& rank : run.ranks) {
        for (const StepResult& step : rank.steps) EXPECT_FALSE(step.skipped);
      }
    }
    std::vector<TrainingRun> runs;
    for (auto& [order, run] : first) runs.push_back(std::move(run));
    return runs;
  }

  /// "" when each loss and weight of the runs is within the sum of its bounds, else the first that is not.
  static std::string outside(const TrainingRun& a, const BoundedRun& of_a, const TrainingRun& b,
                             const BoundedRun& of_b) {
    const auto apart = [](float x, float y, double bound) {
      return !(std::abs(static_cast<double>(x) - static_cast<double>(y)) <= bound);
    };
    const auto text = [](float x, float y, double bound) {
      return ": " + std::to_string(x) + " and " + std::to_string(y) + ", bound " + std::to_string(bound);
    };
    for (std::size_t rank = 0; rank < a.ranks.size(); ++rank) {
      for (std::size_t step = 0; step < a.ranks[rank].steps.size(); ++step) {
        const std::vector<float>& x = a.ranks[rank].steps[step].losses;
        const std::vector<float>& y = b.ranks[rank].steps[step].losses;
        for (std::size_t i = 0; i < x.size(); ++i) {
          const double bound = of_a.losses[rank][step][i].error + of_b.losses[rank][step][i].error;
          if (!apart(x[i], y[i], bound)) continue;
          return "loss of rank " + std::to_string(rank) + " step " + std::to_string(step) + " micro-step " +
                 std::to_string(i) + text(x[i], y[i], bound);
        }
      }
    }
    for (std::size_t p = 0; p < a.weights.size(); ++p) {
      for (std::size_t i = 0; i < a.weights[p].size(); ++i) {
        const float x = a.weights[p][i], y = b.weights[p][i];
        const double bound = of_a.weights[p][i].error + of_b.weights[p][i].error;
        if (!apart(x, y, bound)) continue;
        return "parameter " + std::to_string(p) + " element " + std::to_string(i) + text(x, y, bound);
      }
    }
    return "";
  }

  /// The exact run as if it had been trained.
  static TrainingRun exact(const BoundedRun& bounded) {
    TrainingRun run;
    for (const auto& steps : bounded.losses) {
      RankRun& rank = run.ranks.emplace_back();
      for (const auto& losses : steps) {
        StepResult& step = rank.steps.emplace_back();
        for (const Bounded& loss : losses) step.losses.push_back(static_cast<float>(loss.value));
      }
    }
    for (const auto& values : bounded.weights) {
      std::vector<float>& weights = run.weights.emplace_back();
      for (const Bounded& value : values) weights.push_back(static_cast<float>(value.value));
    }
    return run;
  }

  /// How much of what training changes the bound covers, over all weights.
  static double looseness(const BoundedRun& bound) {
    const BoundedRun start = train_bounded(spec_of({0, "none"}, "fp32", 0), kFp32, kLearningRate, 1);
    double moved = 0, error = 0;
    for (std::size_t p = 0; p < bound.weights.size(); ++p) {
      for (std::size_t i = 0; i < bound.weights[p].size(); ++i) {
        moved += std::abs(bound.weights[p][i].value - start.weights[p][i].value);
        error += bound.weights[p][i].error;
      }
    }
    return error / moved;
  }
};

TEST_P(StageMatrix, SameLossAndWeights) {
  for (const std::int64_t steps : {1, 3}) {
    const RunSpec spec = spec_of({0, "none"}, "fp32", steps);
    const std::vector<TrainingRun> fp32 = orders("fp32", steps);
    const BoundedRun bound = train_bounded(spec, kFp32, kLearningRate, 1);
    EXPECT_LT(looseness(bound), 1e-3);
    for (const TrainingRun& run : fp32) {
      EXPECT_EQ(outside(run, bound, exact(bound), bound), "");
      EXPECT_EQ(outside(run, bound, fp32[0], bound), "");
    }
    if (fp32.size() > 1 && GetParam().world > 1) {  // else kernels add what ranks would: they may round alike
      EXPECT_NE(first_difference(fp32[0], fp32[1]), "");
    }

    const BoundedRun fp16_bound = train_bounded(spec, kFp16, kLearningRate, kLossScale);
    const BoundedRun bf16_bound = train_bounded(spec, kBf16, kLearningRate, 1);
    EXPECT_LT(looseness(fp16_bound), 1);
    // After three steps bf16's bound is as large as what they change: it holds, and says little of weights.
    if (steps == 1) {
      EXPECT_LT(looseness(bf16_bound), 1);
    }
    for (const auto& [type, of_type] : {std::pair{"fp16", &fp16_bound}, {"bf16", &bf16_bound}}) {
      for (const TrainingRun& run : orders(type, steps)) {
        for (const TrainingRun& reference : fp32) {
          EXPECT_EQ(outside(run, *of_type, reference, bound), "") << type;
          EXPECT_NE(outside(run, bound, reference, bound), "") << type << " was computed in fp32";
        }
      }
    }
  }
}

TEST_P(StageMatrix, OrdinaryAdamIsTheSameToTheBit) {
  const Json adam = {{"lr", kLearningRate}, {"betas", {0.9, 0.999}}, {"eps", 1e-8}, {"weight_decay", 0.01}};
  const std::vector<TrainingRun> plain = orders("fp32", 3, adam);
  EXPECT_NE(first_difference(plain[0], orders("fp32", 3)[0]), "") << "the optimizer's settings count";
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const std::uint32_t world : {1U, 2U, 3U, 4U, 5U}) {
    for (const int accumulation : {1, 3}) all.push_back({world, accumulation});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Shapes, StageMatrix, ::testing::ValuesIn(shapes()), [](const auto& c) {
  return "world" + std::to_string(c.param.world) + "_accumulation" + std::to_string(c.param.accumulation);
});

}  // namespace
}  // namespace shardscope::engine::testing::stage_matrix_test
