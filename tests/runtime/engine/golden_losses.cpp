#include "tests/runtime/engine/golden_losses.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <optional>
#include <stdexcept>

#include "tests/runtime/engine/exact_products.h"
#include "tests/runtime/engine/golden_models.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing {
namespace {

constexpr double kTolerance = 2e-5;
/// Of one element after 8 steps, on average over a parameter: 1e-4 of what AdamW at 1e-3 moves in a step.
constexpr double kElementBar = 1e-7;

kernels::DType type_of(const Json& config) {
  const auto enabled = [&config](const char* type) {
    return config.contains(type) && config[type].value("enabled", false);
  };
  return enabled("fp16") ? kernels::DType::f16 : enabled("bf16") ? kernels::DType::bf16 : kernels::DType::f32;
}

/// In 16 bits the order of sums shows in the third or second digit (docs/peers.md).
double tolerance_of(kernels::DType type) { return type == kernels::DType::f32 ? kTolerance : 5e-2; }

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

/// What `json` has under a key and a path of numbers, or nothing.
using Path = std::initializer_list<std::size_t>;
const Json* at_path(const Json& json, const char* key, Path path) {
  if (!json.contains(key)) return nullptr;
  const Json* found = &json[key];
  for (const std::size_t index : path) {
    if (!found->is_array() || index >= found->size()) return nullptr;
    found = &(*found)[index];
  }
  return found->is_number() ? found : nullptr;
}

/// One recorded run: a stage of a case.
class RecordedRun {
 public:
  RecordedRun(const Json& golden, const std::string& stage)
      : golden_(golden), run_(golden.at("stages").at(stage)) {}

  [[nodiscard]] const Json& losses() const { return run_.at("losses"); }

  /// How far a figure is from what was recorded and from float64, if the file has that. Where all stages are
  /// further from float64 than the tolerance, the order in which fp32 was summed decides it (a gradient near
  /// a ReLU's kink): then one of the two must be near. 0 where nothing was recorded.
  [[nodiscard]] double deviation(double got, const char* key, Path path) const {
    const Json* recorded = at_path(run_, key, path);
    if (recorded == nullptr) return 0;
    const double from_recorded = relative(got, recorded->get<double>());
    const Json* reference =
        golden_.contains("reference_float64") ? at_path(golden_["reference_float64"], key, path) : nullptr;
    if (reference == nullptr) return from_recorded;
    const auto exact = reference->get<double>();
    const Json& stages = golden_["stages"];
    const bool unsettled =
        stages.size() > 1 && std::all_of(stages.begin(), stages.end(), [&](const Json& stage) {
          const Json* other = at_path(stage, key, path);
          return other == nullptr || relative(other->get<double>(), exact) > kTolerance;
        });
    const double from_reference = relative(got, exact);
    return unsettled ? std::min(from_recorded, from_reference) : std::max(from_recorded, from_reference);
  }

 private:
  const Json& golden_;
  const Json& run_;
};

void compare_run(const RecordedRun& recorded, const TrainingRun& run, Worst& worst) {
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const std::vector<StepResult>& steps = run.ranks[rank].steps;
    for (std::size_t step = 0; step < steps.size(); ++step) {
      const std::string at = "rank " + std::to_string(rank) + " step " + std::to_string(step);
      for (std::size_t micro = 0; micro < recorded.losses().at(rank).at(step).size(); ++micro) {
        const double loss = steps[step].losses.at(micro);
        worst.see(recorded.deviation(loss, "losses", {rank, step, micro}), "loss, " + at);
      }
      // Of a step that was skipped DeepSpeed reports the norm of an earlier one.
      if (steps[step].skipped) continue;
      worst.see(recorded.deviation(steps[step].grad_norm, "grad_norm", {step}), "norm, " + at);
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

/// The run that a case describes at one stage. "config" of a case has the keys of DeepSpeed's configuration
/// that differ from those of losses.json.
RunSpec spec_of(const Json& file, const Json& golden, int stage) {
  RunSpec spec;
  spec.model = golden_spec(file, golden.at("model").get<std::string>(), golden);
  spec.config = make_config(stage, golden.value("gradient_accumulation_steps", 1));
  spec.config["gradient_clipping"] = golden.value("gradient_clipping", golden.value("clip", 1.0));
  spec.config.merge_patch(golden.value("config", Json::object()));
  // What DeepSpeed unscales with after the scale was updated, and which losses it keeps in 16 bits, shows.
  if (type_of(spec.config) != kernels::DType::f32) spec.config["shardscope"]["compat"] = "deepspeed";
  spec.world = threads_of(golden.at("world"));
  spec.init = golden.value("init", "hash");
  spec.data = spec.model.input == plan::InputKind::tokens ? "golden:gpt" : "golden:mlp";
  spec.steps =
      static_cast<std::int64_t>(golden.at("stages").at(std::to_string(stage)).at("losses").at(0).size());
  return spec;
}

/// "" or what ended it.
std::string error_of(const TrainingRun& run) {
  for (const RankRun& rank : run.ranks) {
    if (!rank.error.empty()) return rank.error;
  }
  return "";
}

/// Which steps were skipped follows from the scales after them.
std::string compare_scales(const Json& recorded, const TrainingRun& run) {
  if (!recorded.contains("loss_scale")) return "";
  const Json& scales = recorded["loss_scale"];
  const std::vector<StepResult>& steps = run.ranks.front().steps;
  for (std::size_t step = 0; step + 1 < steps.size(); ++step) {
    if (scales.at(step).get<double>() != steps[step + 1].loss_scale) {
      return "loss scale after step " + std::to_string(step) + " " +
             std::to_string(steps[step + 1].loss_scale) + ", recorded " + scales[step].dump();
    }
  }
  return "";
}

std::string compare_states(const Json& file, const Json& golden, const std::string& stage,
                           const RunSpec& spec, const TrainingRun& run) {
  const Json& recorded = golden.at("stages").at(stage);
  const plan::ModelPlan model = plan::build_model_plan(spec.model);
  std::string problem = compare_definition(file, golden.at("model").get<std::string>(), model);
  if (problem.empty()) problem = compare_sums(recorded, model, run);
  if (problem.empty() && golden.contains("reference_float64")) {
    problem = compare_sums(golden["reference_float64"], model, run);
  }
  constexpr const char* kByParameter = "final_params_per_param_sum_and_abs_sum_stage0";
  if (problem.empty() && stage == "0" && golden.contains(kByParameter)) {
    problem = compare_parameters(golden[kByParameter], model, run);
  }
  return problem;
}

/// Adds an outcome for every stage of a case.
void check_case(const Json& file, const Json& golden, std::vector<LossOutcome>& outcomes) {
  const auto name = golden.at("model").get<std::string>();
  for (const auto& [stage, recorded] : golden.at("stages").items()) {
    const std::string title = golden.at("id").get<std::string>() + " " + name + " stage " + stage;
    std::string problem;
    Worst worst;
    try {
      const RunSpec spec = spec_of(file, golden, std::stoi(stage));
      const kernels::DType type = type_of(spec.config);
      const TrainingRun run = train(spec);
      problem = error_of(run);
      if (problem.empty()) problem = compare_scales(recorded, run);
      if (problem.empty()) {
        compare_run(RecordedRun(golden, stage), run, worst);
        if (!(worst.value <= tolerance_of(type))) {
          problem = "relative deviation " + text_of(worst.value) + " at " + worst.where;
        }
      }
      if (problem.empty() && type == kernels::DType::f32) {
        problem = compare_states(file, golden, stage, spec, run);
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
  const ExactProducts exact;
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
