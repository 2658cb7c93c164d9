#include "tests/runtime/engine/golden_gradients.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/runtime/engine/exact_products.h"
#include "tests/runtime/engine/golden_models.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing {
namespace {

struct Shard {
  double sum = 0, squares = 0;
  std::int64_t elems = 0;
};

/// The averaged gradient of each rank's partition. Momentum is read in its stead: with a first beta of 0 and
/// no clipping it is the gradient.
std::vector<Shard> first_gradients(const Json& file, const Json& layout, int accumulation,
                                   std::string& error) {
  const auto name = layout.at("model").get<std::string>();
  RunSpec spec;
  spec.model = golden_spec(file, name, Json::object());
  spec.config = make_config(2, accumulation);
  spec.config["gradient_clipping"] = 0.0;
  spec.config["optimizer"]["params"]["betas"] = {0.0, 0.999};
  spec.config["zero_optimization"]["round_robin_gradients"] = layout.value("round_robin_gradients", false);
  spec.world = threads_of(layout.at("world"));
  spec.data = spec.model.input == plan::InputKind::tokens ? "golden:gpt" : "golden:mlp";
  spec.steps = 1;
  std::vector<Shard> shards(spec.world);
  spec.end = [&shards](const Context& context, Engine& engine, data::BatchStream&) {
    Shard& shard = shards[context.rank()];
    shard.elems = engine.ownership().owned_elems();
    const auto slices = plan::checkpoint_layout(engine.ownership(), context.model.params.size());
    engine.read_states(slices[context.rank()],
                       [&shard](base::StateKind kind, std::int64_t, std::span<const float> values) {
                         if (kind != base::StateKind::momentum) return;
                         for (const float value : values) {
                           shard.sum += value;
                           shard.squares += static_cast<double>(value) * value;
                         }
                       });
  };
  for (const RankRun& rank : train(spec).ranks) {
    if (!rank.error.empty()) error = rank.error;
  }
  return shards;
}

std::string compare(const Json& recorded, const std::vector<Shard>& shards) {
  constexpr double kTolerance = 1e-5;
  // Gradients that cancel to almost nothing consist of the rounding of their terms, which are as large as the
  // others.
  constexpr double kRounding = 1e-6;
  double whole = 0;
  for (const Json& of_rank : recorded) whole = std::hypot(whole, of_rank.at("l2").get<double>());
  if (recorded.size() != shards.size()) return "ranks: " + std::to_string(recorded.size()) + " recorded";
  for (const Json& of_rank : recorded) {
    const auto rank = of_rank.at("rank").get<std::size_t>();
    const Shard& got = shards.at(rank);
    const std::string at = "rank " + std::to_string(rank) + ": ";
    const auto elems = of_rank.at("numel_with_padding").get<std::int64_t>();
    if (got.elems != elems)
      return at + std::to_string(got.elems) + " elements, recorded " + std::to_string(elems);
    const auto l2 = of_rank.at("l2").get<double>();
    const double norm = std::sqrt(got.squares);
    const double bar = std::max(kTolerance * l2, kRounding * whole);
    if (!(std::abs(norm - l2) <= bar)) {
      return at + "norm " + std::to_string(norm) + ", recorded " + std::to_string(l2);
    }
    // |sum of differences| <= sqrt(elements) * norm of differences.
    const auto sum = of_rank.at("sum").get<double>();
    if (!(std::abs(got.sum - sum) <= bar * std::sqrt(static_cast<double>(elems)))) {
      return at + "sum " + std::to_string(got.sum) + ", recorded " + std::to_string(sum);
    }
  }
  return "";
}

}  // namespace

std::vector<LossOutcome> check_gradient_shards(const Json& file) {
  const ExactProducts exact;
  std::vector<LossOutcome> outcomes;
  for (const Json& layout : file.at("layouts")) {
    if (!layout.is_object() || !layout.contains("grad_shard_first_step")) continue;
    for (const auto& [key, recorded] : layout["grad_shard_first_step"].items()) {
      const Json model = layout.value("model", Json("?"));
      const std::string title =
          "gradients " + (model.is_string() ? model.get<std::string>() : model.dump()) + " world " +
          layout.value("world", Json()).dump() +
          (layout.value("round_robin_gradients", Json(false)) == true ? " round robin " : " ") + key;
      if (model.is_string() && !knows_model(file, model.get<std::string>())) {
        outcomes.push_back(
            {title, "not compared: the file does not say what this model computes", true, false});
        continue;
      }
      std::string problem;
      try {
        if (key.rfind("gas", 0) != 0) throw std::invalid_argument("the key must be gasN");
        const int accumulation = std::stoi(key.substr(3));
        if (accumulation < 1 || accumulation > 64) throw std::invalid_argument("N of gasN must be 1 to 64");
        const std::vector<Shard> shards = first_gradients(file, layout, accumulation, problem);
        if (problem.empty()) problem = compare(recorded, shards);
      } catch (const std::exception& error) {
        problem = error.what();
      }
      const bool agrees = problem.empty();
      outcomes.push_back({title, agrees ? "elements, norms and sums of every rank" : problem, agrees});
    }
  }
  return outcomes;
}

}  // namespace shardscope::engine::testing
