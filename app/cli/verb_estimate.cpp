// `estimate`: memory before anything runs, from numbers (cold) or from a model (live).
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/cli/verb.h"
#include "runtime/plan/estimator.h"
#include "runtime/plan/memory_model.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::cli {
namespace {

struct EstimateOptions {
  plan::EstimateInput input;
  std::string formula = "doc", model;
  bool json = false;
};

void take_model(EstimateOptions& options) {
  options.input.formula =
      options.formula == "doc" ? plan::EstimateFormula::doc : plan::EstimateFormula::deepspeed_0_19;
  if (options.model.empty()) {
    if (options.input.params <= 0)
      throw UserError("--params: give the number of parameters, or a model with --model", 2);
    return;
  }
  plan::ModelSpec spec;
  if (options.model.ends_with(".json")) {
    std::ifstream file(options.model);
    if (!file) throw UserError(fmt::format("--model {}: no such file", options.model));
    std::stringstream text;
    text << file.rdbuf();
    spec = plan::parse_model_spec(text.str());
  } else {
    spec = plan::named_model(options.model);
  }
  const plan::EstimateInput of_model = plan::estimate_input(plan::build_model_plan(spec));
  options.input.params = of_model.params;
  options.input.largest_layer_params = of_model.largest_layer_params;
}

nlohmann::json rows_json(const std::vector<plan::EstimateRow>& rows, bool stage3) {
  nlohmann::json out = nlohmann::json::array();
  for (const plan::EstimateRow& row : rows) {
    nlohmann::json entry = {{"per_cpu_bytes", row.cpu_bytes},
                            {"per_gpu_bytes", row.gpu_bytes},
                            {"offload_optimizer", row.offload_optimizer ? "cpu" : "none"}};
    if (stage3) {
      entry["offload_param"] = row.offload_param ? "cpu" : "none";
      entry["zero_init"] = row.zero_init;
    }
    out.push_back(entry);
  }
  return out;
}

/// Mixed precision with Adam: what each stage keeps per GPU, and the working buffers its defaults allow.
struct StageRow {
  int stage;
  std::string expression;
  double states, buffers;
};
std::vector<StageRow> stage_rows(const plan::EstimateInput& input) {
  const plan::ZeroConfig defaults;
  const double s = static_cast<double>(input.params);
  const double n = static_cast<double>(input.gpus_per_node) * static_cast<double>(input.nodes);
  const double bucket = 2 * std::min(static_cast<double>(defaults.reduce_bucket_size), s);
  const double live = 2 * std::min(static_cast<double>(defaults.max_live_parameters), s);
  const double prefetch = 2 * std::min(static_cast<double>(defaults.prefetch_bucket_size), s);
  std::vector<StageRow> rows;
  for (std::uint32_t stage = 0; stage <= 3; ++stage) {
    const plan::StateExpression expression = plan::state_expression(stage, plan::kMixedPrecision);
    rows.push_back({static_cast<int>(stage), expression.text(), expression.bytes(s, n),
                    bucket + (stage == 3 ? std::min(live + prefetch, 2 * s) : 0)});
  }
  return rows;
}

int estimate_all(const EstimateOptions& options) {
  const auto rows = stage_rows(options.input);
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  if (options.json) {
    nlohmann::json out = nlohmann::json::array();
    for (const StageRow& row : rows) {
      out.push_back({{"stage", row.stage},
                     {"expression", row.expression},
                     {"model_states_bytes", row.states},
                     {"buffers_bytes_at_most", row.buffers}});
    }
    fmt::print("{}\n", out.dump(2));
    return 0;
  }
  fmt::print("S = {} parameters, n = {} GPUs; 16-bit parameters and gradients, fp32 Adam; GB = 2^30 bytes\n",
             options.input.params, options.input.gpus_per_node * options.input.nodes);
  fmt::print("{:<6} {:<12} {:>16} {:>22} {:>12}\n", "stage", "expression", "model states",
             "+ buffers at most", "per GPU");
  for (const StageRow& row : rows) {
    fmt::print("{:<6} {:<12} {:>14.2f}GB {:>20.2f}GB {:>10.2f}GB\n", row.stage, row.expression,
               row.states / kGiB, row.buffers / kGiB, (row.states + row.buffers) / kGiB);
  }
  fmt::print(
      "Buffers: reduce bucket; stage 3 also live and prefetched parameters; DeepSpeed's default limits. "
      "Activations come on top.\n");
  return 0;
}

int estimate(const EstimateOptions& options, int stage) {
  if (stage == 0) return estimate_all(options);
  if (stage == 3 && options.input.largest_layer_params <= 0) {
    throw UserError(
        "--largest-layer: ZeRO-3 needs the parameters of the largest layer, or a model with --model", 2);
  }
  if (options.json) {
    const auto rows = stage == 2 ? plan::estimate_zero2(options.input) : plan::estimate_zero3(options.input);
    fmt::print("{}\n", rows_json(rows, stage == 3).dump(2));
  } else {
    fmt::print("{}", stage == 2 ? plan::format_zero2(options.input) : plan::format_zero3(options.input));
  }
  return 0;
}

}  // namespace

void add_estimate(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("estimate", "Memory of model states before anything runs");
  verb->require_subcommand(1);
  struct Stage {
    const char* name;
    int stage;
    const char* help;
  };
  for (const Stage& stage :
       {Stage{"zero2", 2, "DeepSpeed's ZeRO-2 estimate"}, Stage{"zero3", 3, "DeepSpeed's ZeRO-3 estimate"},
        Stage{"all", 0, "Stages 0 to 3 with their working buffers"}}) {
    auto options = std::make_shared<EstimateOptions>();
    CLI::App* sub = verb->add_subcommand(stage.name, stage.help);
    sub->add_option("--params", options->input.params, "Number of parameters");
    sub->add_option("--largest-layer", options->input.largest_layer_params,
                    "Parameters of the largest layer (ZeRO-3)");
    sub->add_option("--gpus-per-node", options->input.gpus_per_node, "GPUs per node")->capture_default_str();
    sub->add_option("--nodes", options->input.nodes, "Nodes")->capture_default_str();
    sub->add_option("--additional-buffer-factor", options->input.additional_buffer_factor,
                    "Factor on host memory")
        ->capture_default_str();
    sub->add_option("--formula", options->formula, "doc: the documents; deepspeed-0.19: its source")
        ->check(CLI::IsMember({"doc", "deepspeed-0.19"}))
        ->capture_default_str();
    sub->add_option("--model", options->model, "Model name or JSON file instead of numbers");
    sub->add_flag("--json", options->json, "JSON for programs");
    sub->callback([options, stage, &action] {
      action = [options, stage] {
        take_model(*options);
        try {
          return estimate(*options, stage.stage);
        } catch (const std::invalid_argument& error) {
          throw UserError(error.what(), 2);
        }
      };
    });
  }
}

}  // namespace shardscope::cli
