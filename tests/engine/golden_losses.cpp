#include "tests/engine/golden_losses.h"

#include <cmath>
#include <cstdio>
#include <optional>
#include <stdexcept>

#include "kernels/precision.h"
#include "tests/engine/support.h"

namespace shardscope::engine::testing {
namespace {

constexpr double kTolerance = 2e-5;
/// Of one element after 8 steps, on average over a parameter: 1e-4 of what AdamW at 1e-3 moves in a step.
constexpr double kElementBar = 1e-7;

double relative(double got, double expected) {
  return std::abs(got - expected) / std::max(1e-12, std::abs(expected));
}

/// The largest deviation, and where.
struct Worst {
  double value = 0;
  std::string where = "nowhere";
  void see(double deviation, const std::string& at) {
    if (!(deviation <= value)) {  // a NaN is the worst of all
      value = deviation;
      where = at;
    }
  }
};

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", value);
  return text;
}

/// Elements whose exact gradient is zero are left out ("final_param_sum_and_abs_sum"): the key third of
/// attention's bias.
bool is_noise(const plan::ParamPlan& param, std::size_t index) {
  if (param.name.find("qkv.bias") == std::string::npos) return false;
  const auto third = static_cast<std::size_t>(param.elems) / 3;
  return index >= third && index < 2 * third;
}

void compare_run(const Json& recorded, const TrainingRun& run, Worst& worst) {
  const Json& losses = recorded.at("losses");
  const Json norms = recorded.value("grad_norm", Json::array());
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const std::vector<StepResult>& steps = run.ranks[rank].steps;
    for (std::size_t step = 0; step < steps.size(); ++step) {
      const std::string at = "rank " + std::to_string(rank) + " step " + std::to_string(step);
      const Json& of_step = losses.at(rank).at(step);
      for (std::size_t micro = 0; micro < of_step.size(); ++micro) {
        worst.see(relative(steps[step].losses.at(micro), of_step.at(micro).get<double>()), "loss, " + at);
      }
      if (step < norms.size() && norms[step].is_number()) {
        worst.see(relative(steps[step].grad_norm, norms[step].get<double>()), "norm, " + at);
      }
    }
  }
}

/// Bars of the file: abs_sum 2e-6 relative, sum 2e-4 (mlp) or 0.01 (gpt) absolute.
std::string compare_sums(const Json& recorded, const plan::ModelPlan& model, const TrainingRun& run) {
  if (!recorded.contains("final_param_sum_and_abs_sum")) return "";
  double sum = 0;
  double abs_sum = 0;
  double noise = 0;
  for (const plan::ParamPlan& param : model.params) {
    const std::vector<float>& values = run.weights[plan::raw(param.id)];
    for (std::size_t i = 0; i < values.size(); ++i) {
      sum += values[i];
      abs_sum += std::abs(static_cast<double>(values[i]));
      // "up to 4e-4 per element after 8 steps"
      if (is_noise(param, i)) noise += 4e-4;
    }
  }
  const Json& expected = recorded.at("final_param_sum_and_abs_sum");
  const double sum_bar = model.spec.input == plan::InputKind::tokens ? 0.01 : 2e-4;
  if (std::abs(sum - expected.at(0).get<double>()) > sum_bar + noise) {
    return "sum of parameters " + std::to_string(sum) + ", recorded " + expected.at(0).dump();
  }
  const double expected_abs = expected.at(1).get<double>();
  if (std::abs(abs_sum - expected_abs) > 2e-6 * expected_abs + noise) {
    return "sum of absolute parameters " + std::to_string(abs_sum) + ", recorded " + expected.at(1).dump();
  }
  return "";
}

/// The parameters that the file says the model has.
std::string compare_definition(const Json& file, const std::string& name, const plan::ModelPlan& model) {
  if (!file.contains("params") || !file["params"].contains(name)) return "";
  Json ours = Json::array();
  Json theirs = Json::array();
  for (const plan::ParamPlan& param : model.params) {
    ours.push_back({plan::raw(param.id), param.name, param.shape});
  }
  for (const Json& param : file["params"][name]) {
    theirs.push_back({param.at("p"), param.at("name"), param.at("shape")});
  }
  return ours == theirs ? "" : "the model has " + ours.dump() + ", recorded " + theirs.dump();
}

/// Parameter by parameter: [sum, sum of absolute values]. The bars above for a whole model, each parameter's
/// share of them by its elements.
std::string compare_parameters(const Json& recorded, const plan::ModelPlan& model, const TrainingRun& run) {
  for (const plan::ParamPlan& param : model.params) {
    const std::vector<float>& values = run.weights[plan::raw(param.id)];
    double sum = 0;
    double abs_sum = 0;
    double bar = kElementBar * static_cast<double>(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      sum += values[i];
      abs_sum += std::abs(static_cast<double>(values[i]));
      if (is_noise(param, i)) bar += 4e-4;
    }
    const Json& expected = recorded.at(plan::raw(param.id));
    if (!(std::abs(sum - expected.at(0).get<double>()) <= bar) ||
        !(std::abs(abs_sum - expected.at(1).get<double>()) <= bar)) {
      return "sums of " + param.name + " " + std::to_string(sum) + " and " + std::to_string(abs_sum) +
             ", recorded " + expected.dump();
    }
  }
  return "";
}

}  // namespace

std::uint32_t threads_of(const Json& world) {
  constexpr std::int64_t kMost = 64;
  const std::int64_t ranks = world.is_number_integer() ? world.get<std::int64_t>() : 0;
  if (ranks < 1 || ranks > kMost) {
    throw std::invalid_argument("world is " + world.dump() + "; ranks are run for 1 to " +
                                std::to_string(kMost));
  }
  return static_cast<std::uint32_t>(ranks);
}

namespace {

/// A sample model, or the tree that the file has under this name.
plan::ModelSpec model_in(const Json& file, const std::string& name) {
  const Json models = file.value("models", Json::object());
  if (!models.contains(name)) return model_named(name);
  return plan::parse_model_spec(models[name].at("tree").dump());
}

/// Adds an outcome for every stage of a case.
void check_case(const Json& file, const Json& golden, std::vector<LossOutcome>& outcomes) {
  const auto name = golden.at("model").get<std::string>();
  for (const auto& [stage, recorded] : golden.at("stages").items()) {
    const std::string title = golden.at("id").get<std::string>() + " " + name + " stage " + stage;
    std::string problem;
    Worst worst;
    try {
      RunSpec spec;
      spec.model = model_in(file, name);
      spec.config = make_config(std::stoi(stage), golden.value("gradient_accumulation_steps", 1));
      spec.config["gradient_clipping"] = golden.value("gradient_clipping", golden.value("clip", 1.0));
      spec.world = threads_of(golden.at("world"));
      spec.init = golden.at("init").get<std::string>();
      spec.data = spec.model.input == plan::InputKind::tokens ? "golden:gpt" : "golden:mlp";
      spec.steps = static_cast<std::int64_t>(recorded.at("losses").at(0).size());
      const TrainingRun run = train(spec);
      for (const RankRun& rank : run.ranks) {
        if (!rank.error.empty()) problem = rank.error;
      }
      if (problem.empty()) {
        compare_run(recorded, run, worst);
        if (!(worst.value <= kTolerance)) {
          problem = "relative deviation " + text_of(worst.value) + " at " + worst.where;
        } else {
          const plan::ModelPlan model = plan::build_model_plan(spec.model);
          problem = compare_definition(file, name, model);
          if (problem.empty()) problem = compare_sums(recorded, model, run);
          if (problem.empty() && golden.contains("reference_float64")) {
            compare_run(golden["reference_float64"], run, worst);
            if (!(worst.value <= kTolerance)) {
              problem = "from float64: relative deviation " + text_of(worst.value) + " at " + worst.where;
            } else {
              problem = compare_sums(golden["reference_float64"], model, run);
            }
          }
          constexpr const char* kByParameter = "final_params_per_param_sum_and_abs_sum_stage0";
          if (problem.empty() && stage == "0" && golden.contains(kByParameter)) {
            problem = compare_parameters(golden[kByParameter], model, run);
          }
        }
      }
    } catch (const std::exception& error) {
      problem = error.what();
    }
    if (problem.empty()) {
      outcomes.push_back(
          {title, "largest relative deviation " + text_of(worst.value) + " (" + worst.where + ")", true});
    } else {
      outcomes.push_back({title, problem, false});
    }
  }
}

}  // namespace

std::vector<LossOutcome> check_losses(const Json& file) {
  // Recorded cases hold activations so close to a ReLU's kink that fp32's order of summation decides them.
  kernels::set_matmul_precision(kernels::MatmulPrecision::highest);
  std::vector<LossOutcome> outcomes;
  std::size_t number = 0;
  for (const Json& golden : file.at("cases")) {
    try {
      check_case(file, golden, outcomes);
    } catch (const std::exception& error) {
      outcomes.push_back({"case " + std::to_string(number), error.what(), false});
    }
    ++number;
  }
  return outcomes;
}

}  // namespace shardscope::engine::testing
