// `estimate`: memory before anything runs, from numbers (cold) or from a model (live).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/analysis/foreign_json.h"
#include "app/cli/checks.h"
#include "app/cli/config_override.h"
#include "app/cli/estimate_model.h"
#include "app/cli/estimate_text.h"
#include "app/cli/say.h"
#include "app/cli/verb.h"
#include "runtime/config/config.h"
#include "runtime/plan/activation_checkpointing.h"
#include "runtime/plan/auto_sizes.h"
#include "runtime/plan/compare_schedulers.h"
#include "runtime/plan/encoder_decoder.h"
#include "runtime/plan/estimator.h"
#include "runtime/plan/leaf_modules.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/paper_tables.h"
#include "runtime/plan/param_groups.h"
#include "runtime/plan/scheduler_config.h"
#include "runtime/plan/stage_estimate.h"

namespace shardscope::cli {
namespace {

struct EstimateOptions : ModelSource {
  std::int64_t accumulation_steps = 1;
  bool pinned = false;
  bool cases = false;  ///< the three of the documents, instead of rows
  bool json = false;
  // all
  std::string config, buffers = "shardscope";
  std::vector<std::string> set;
  std::string against = "deepspeed";
  // activations
  plan::TransformerShape shape{.sequence = 0, .batch_per_gpu = 0, .batch_per_node = 0};
};

struct ConfiguredRun {
  plan::ZeroConfig zero;
  plan::StateBytes bytes = plan::kMixedPrecision;
  std::int64_t micro_batch = 0;
  std::int64_t sequence = 0;  ///< from shardscope.micro_batches.shapes; 0: the model's
  bool checkpointed = false;  ///< every block recomputes its activations
  std::vector<plan::ParamGroupRule> groups;
};

/// The model as in a stage-3 run of this configuration: leaf modules and checkpoints marked, parameters
/// in their groups.
plan::ModelPlan as_configured(const plan::ModelPlan& model, const ConfiguredRun& run) {
  plan::ModelSpec spec = model.spec;
  if (run.checkpointed) (void)plan::checkpoint_blocks(spec);
  plan::ZeroConfig zero = run.zero;
  zero.stage = 3;
  plan::ModelPlan configured = plan::build_model_plan(plan::mark_leaf_modules(std::move(spec), zero));
  plan::assign_param_groups(configured, run.groups);
  return configured;
}

/// As a run of `world` ranks reads the file; the width of `model` (may be null) is used for "auto".
ConfiguredRun read_config(const EstimateOptions& options, std::int64_t world, const plan::ModelPlan* model) {
  ConfiguredRun run;
  if (options.config.empty()) {
    if (!options.set.empty()) {
      throw UserError(
          fmt::format("--set {}: needs the configuration it changes; give --config", options.set[0]), 2);
    }
    return run;
  }
  config::ParseOptions parse;
  parse.world = static_cast<std::uint32_t>(world);
  parse.total_steps = 1;  // learning rates do not matter here
  if (model != nullptr) parse.hidden_size = plan::embedding_width(model->spec.root);
  parse.file = options.set.empty() ? options.config : options.config + " with --set";
  try {
    const config::TrainingConfig config =
        options.set.empty() ? config::load_config(options.config, parse)
                            : config::parse_config(config_with(options.config, options.set), parse);
    run.zero = config.zero;
    run.bytes = config.state_bytes();
    const plan::MicroBatchShape largest =
        config.shardscope.micro_batches.largest({config.batch.micro_batch_size, 0});
    run.micro_batch = largest.samples;
    run.sequence = largest.tokens;
    run.groups = config.group_rules();
    run.checkpointed = config.shardscope.activation_checkpointing;
  } catch (const config::ConfigError& error) {
    throw UserError(error.what());
  }
  return run;
}

/// Warns of memory of such a run that the rows do not include.
void warn_of_what_is_left_out(const plan::ZeroConfig& zero) {
  const auto warn = [](bool configured, const char* key, const char* what) {
    if (configured) say(stderr, "shardscope: warning: {}: {}\n", key, what);
  };
  warn(zero.zenflow.has_value(), "zero_optimization.zenflow",
       "not estimated: its sums in host memory, the states of chosen columns on the device");
  warn(zero.loco && zero.stage == 3, "zero_optimization.zeropp_loco_param",
       "not estimated: a byte per element of the model on every rank");
  warn(zero.offload_param.device == plan::OffloadDevice::nvme, "zero_optimization.offload_param",
       "estimated as device cpu; on nvme shards are on disk, see simulate");
  warn(zero.offload_optimizer.device == plan::OffloadDevice::nvme, "zero_optimization.offload_optimizer",
       "estimated as device cpu; on nvme states are on disk, see simulate");
  warn(plan::keeps_spanning_gradients(zero), "shardscope.compat.keep_spanning_gradients",
       "not estimated: stage 2 keeps gradients that span ranks whole until the step");
  warn(zero.mics_shard_size > 0, "zero_optimization.mics_shard_size",
       "stage 3 is estimated without offload, which MiCS refuses; stages 0 to 2 as without the key");
}

void print(const EstimateOptions& options, const nlohmann::json& json, const std::string& text) {
  say_text(stdout, options.json ? instrumentation::plain_json(analysis::to_text(json, 2) + "\n")
                                : instrumentation::plain_lines(text));
}

int estimate_all(EstimateOptions& options) {
  std::optional<plan::ModelPlan> model = take_model(options);
  const ConfiguredRun run =
      read_config(options, options.input.gpus_per_node * options.input.nodes, model ? &*model : nullptr);
  warn_of_what_is_left_out(run.zero);
  if (model) model = as_configured(*model, run);
  plan::StageEstimateInput input;
  input.model = model ? &*model : nullptr;
  input.params = options.input.params;
  input.largest_layer_params = options.input.largest_layer_params;
  input.gpus_per_node = options.input.gpus_per_node;
  input.nodes = options.input.nodes;
  input.bytes = run.bytes;
  input.zero = run.zero;
  input.buffers =
      options.buffers == "deepspeed" ? plan::BufferPolicy::deepspeed : plan::BufferPolicy::shardscope;
  std::optional<plan::TransformerShape> shape;
  if (model) shape = plan::transformer_shape(model->spec);
  if (shape) {
    shape->batch_per_gpu = static_cast<double>(run.micro_batch);
    if (run.sequence > 0) shape->sequence = static_cast<double>(run.sequence);
    if (options.shape.batch_per_gpu > 0) shape->batch_per_gpu = options.shape.batch_per_gpu;
    if (options.shape.sequence > 0) shape->sequence = options.shape.sequence;
    shape->checkpoint_interval = options.shape.checkpoint_interval;
    if (shape->batch_per_gpu <= 0) shape.reset();
  }
  const auto rows = plan::estimate_stages(input);
  print(options, stages_json(rows, shape), options.json ? "" : stages_text(input, rows, shape));
  return 0;
}

/// Shows where ZeRO-3's schedulers differ for this model and these limits.
int compare_scheduling(EstimateOptions& options) {
  const std::int64_t world = options.input.gpus_per_node * options.input.nodes;
  std::optional<plan::ModelPlan> model = take_model(options);
  if (!model) {
    throw UserError(
        options.model.empty()
            ? "--model: give it; numbers have no modules to schedule"
            : fmt::format("--model {}: only its parameters are counted; give a model that can be trained",
                          options.model),
        2);
  }
  const ConfiguredRun run = read_config(options, world, &*model);
  model = as_configured(*model, run);
  const plan::SchedulerComparison found = plan::compare_schedulers(
      *model, static_cast<std::uint32_t>(world), plan::make_scheduler_config(run.zero),
      plan::Compat::shardscope, options.against == "notes" ? plan::Compat::notes : plan::Compat::deepspeed);
  const std::string summary = found.summary("shardscope", options.against.c_str());
  nlohmann::json json{{"summary", summary}, {"differences", nlohmann::json::array()}};
  const auto totals = [](const plan::SchedulerTotals& t) {
    return nlohmann::json{{"gathers", t.gathers},
                          {"on_demand", t.on_demand},
                          {"gathered_elems", t.gathered_elems},
                          {"peak_elems", t.peak_elems}};
  };
  json["shardscope"] = totals(found.first);
  json[options.against] = totals(found.second);
  std::string text = summary.empty() ? "shardscope and " + options.against + " decide alike" : summary;
  text += '\n';
  for (const plan::SchedulerDifference& difference : found.differences) {
    json["differences"].push_back(difference.text);
    text += "  " + difference.text + '\n';
  }
  print(options, json, text);
  return 0;
}

template <typename Estimate>
int print_estimate(EstimateOptions& options, EstimatedStage stage, std::string text,
                   const Estimate& estimate) {
  if (options.pinned) text += pinned_text(options.input, stage, options.accumulation_steps);
  print(options, estimate_json(options.input, estimate, stage, options.accumulation_steps), text);
  return 0;
}

int estimate_zero2(EstimateOptions& options) {
  (void)take_model(options);
  return print_estimate(options, EstimatedStage::zero2, plan::format_zero2(options.input),
                        plan::estimate_zero2(options.input));
}

int estimate_zero3(EstimateOptions& options) {
  (void)take_model(options);
  if (options.model.empty() && options.largest_layer.empty()) {
    throw UserError(
        "--largest-layer: ZeRO-3 needs the parameters of the largest layer, or a model with --model", 2);
  }
  if (options.cases) {
    const plan::ThreeCases cases = plan::zero3_cases(options.input);
    print(options,
          {{"params", options.input.params},
           {"largest_layer_params", options.input.largest_layer_params},
           {"largest_layer_bytes", cases.largest_layer},
           {"case1_bytes", cases.nothing_offloaded},
           {"case2_bytes", cases.all_offloaded},
           {"case3_bytes", cases.optimizer_offloaded}},
          plan::format_cases(options.input));
    return 0;
  }
  return print_estimate(options, EstimatedStage::zero3, plan::format_zero3(options.input),
                        plan::estimate_zero3(options.input));
}

int estimate_activations(EstimateOptions& options) {
  plan::TransformerShape shape = options.shape;
  if (!options.model.empty()) {
    const std::optional<plan::ModelPlan> model = take_model(options);
    const auto of_model = model ? plan::transformer_shape(model->spec) : std::nullopt;
    if (!of_model) {
      throw UserError(
          fmt::format("--model {}: is no decoder with attention; the formula is such a transformer's",
                      options.model),
          2);
    }
    shape = *of_model;
    shape.batch_per_gpu = options.shape.batch_per_gpu;
    if (options.shape.sequence > 0) shape.sequence = options.shape.sequence;
    shape.checkpoint_interval = options.shape.checkpoint_interval;
  }
  for (const auto& [name, value] : {std::pair{"--sequence", shape.sequence},
                                    {"--heads", shape.heads},
                                    {"--hidden", shape.hidden},
                                    {"--layers", shape.layers}}) {
    if (!(value > 0)) throw UserError(fmt::format("{}: give it, or a transformer with --model", name), 2);
  }
  print(options, activations_json(shape), activations_text(shape));
  return 0;
}

int estimate_zero_table(EstimateOptions& options) {
  const auto table1 = plan::zero_table1();
  const auto table2 = plan::zero_table2();
  print(options, zero_tables_json(table1, table2), zero_tables_text(table1, table2));
  return 0;
}

int estimate_infinity(EstimateOptions& options) {
  std::vector<plan::InfinityRow> rows = plan::infinity_table();
  plan::TransformerShape& shape = options.shape;
  const int given = (shape.layers > 0 ? 1 : 0) + (shape.hidden > 0 ? 1 : 0) + (shape.heads > 0 ? 1 : 0);
  if (given > 0 && given < 3) {
    throw UserError("--layers, --hidden, --heads: a model of your own needs all three", 2);
  }
  if (given == 3) {
    const plan::TransformerShape defaults;
    if (shape.sequence <= 0) shape.sequence = defaults.sequence;
    if (shape.batch_per_gpu <= 0) shape.batch_per_gpu = defaults.batch_per_gpu;
    if (shape.batch_per_node <= 0) shape.batch_per_node = defaults.batch_per_node;
    // A thousand times the paper's largest model.
    if (plan::transformer_params(shape) > 1e17 || shape.heads > 1e9 || shape.sequence > 1e9 ||
        shape.batch_per_gpu > 1e9 || shape.batch_per_node > 1e9) {
      throw UserError(
          "--layers, --hidden, --heads, --sequence, --micro-batch: a transformer of more than 100,000 "
          "trillion "
          "parameters, or a size above 1e9; give smaller ones",
          2);
    }
    rows = {plan::infinity_row(shape)};
  } else if (shape.sequence > 0 || shape.batch_per_gpu > 0 || shape.batch_per_node > 0) {
    throw UserError(
        "--layers, --hidden, --heads: give them too; the paper's table has its own batch and sequence", 2);
  }
  print(options, infinity_json(rows), infinity_text(rows));
  return 0;
}

void add_size_options(CLI::App& verb, EstimateOptions& options) {
  verb.add_option("--params", options.params, "Number of parameters, e.g. 2851598336 or 2851e6");
  verb.add_option("--largest-layer", options.largest_layer, "Parameters of the largest layer (ZeRO-3)");
  verb.add_option("--gpus-per-node", options.input.gpus_per_node, "GPUs per node")
      ->check(kAboveZero)
      ->capture_default_str();
  verb.add_option("--nodes", options.input.nodes, "Nodes")->check(kAboveZero)->capture_default_str();
  verb.add_option(
      "--model", options.model,
      "Instead of numbers: a model's name (gpt2-xl, t5-3b, ...) or JSON file; of encoder-decoders "
      "transformers' config.json");
  verb.add_option(
      "--state-dict", options.weights,
      "Instead of --params: a file of weights, whose size divided by --bytes-per-weight says how many");
  verb.add_option("--bytes-per-weight", options.weight_bytes, "4: fp32, 2: 16-bit")
      ->check(CLI::IsMember({1, 2, 4, 8}))
      ->capture_default_str();
}

void add_formula_options(CLI::App& verb, EstimateOptions& options) {
  add_size_options(verb, options);
  verb.add_option("--additional-buffer-factor", options.input.additional_buffer_factor,
                  "Factor on host memory")
      ->check(kAboveZero)
      ->capture_default_str();
  verb.add_option("--formula", options.formula, "doc: the documents; deepspeed-0.19: its source")
      ->check(CLI::IsMember({"doc", "deepspeed-0.19"}))
      ->capture_default_str();
  verb.add_flag("--pinned", options.pinned, "Also what of the host memory is pinned");
  verb.add_option("--gradient-accumulation-steps", options.accumulation_steps,
                  "Above 1, 16-bit gradients are pinned too (ZeRO-2; ZeRO-3 with offloaded parameters)")
      ->check(kAboveZero)
      ->capture_default_str();
}

void add_batch_options(CLI::App& verb, EstimateOptions& options) {
  verb.add_option("--micro-batch", options.shape.batch_per_gpu, "Samples per GPU and micro-step")
      ->check(kAboveZero);
  verb.add_option("--sequence", options.shape.sequence, "Tokens per sample")->check(kAboveZero);
  verb.add_option("--checkpoint-interval", options.shape.checkpoint_interval,
                  "Layers between two activation checkpoints")
      ->check(kAboveZero)
      ->capture_default_str();
}

void add_shape_options(CLI::App& verb, EstimateOptions& options) {
  verb.add_option("--layers", options.shape.layers, "Transformer layers")->check(kAboveZero);
  verb.add_option("--hidden", options.shape.hidden, "Hidden size")->check(kAboveZero);
  verb.add_option("--heads", options.shape.heads, "Attention heads")->check(kAboveZero);
}

}  // namespace

void add_estimate(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("estimate", "Memory of model states before anything runs");
  verb->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, int (*estimate)(EstimateOptions&)) {
    auto options = std::make_shared<EstimateOptions>();
    CLI::App* sub = verb->add_subcommand(name, help);
    sub->add_flag("--json", options->json, "JSON for programs");
    sub->callback([options, estimate, &action] {
      action = [options, estimate] {
        try {
          return estimate(*options);
        } catch (const std::invalid_argument& error) {
          throw UserError(error.what(), 2);
        }
      };
    });
    return std::pair<CLI::App&, EstimateOptions&>(*sub, *options);
  };

  {
    auto [sub, options] = add("zero2", "DeepSpeed's ZeRO-2 estimate", estimate_zero2);
    add_formula_options(sub, options);
  }
  {
    auto [sub, options] = add("zero3", "DeepSpeed's ZeRO-3 estimate", estimate_zero3);
    add_formula_options(sub, options);
    sub.add_flag("--cases", options.cases,
                 "The documents' three cases of a GPU's memory in MB: nothing offloaded, all, the optimizer");
  }
  {
    auto [sub, options] =
        add("all", "Stages 0 to 3, with and without offload, with buffers and limits", estimate_all);
    add_size_options(sub, options);
    add_batch_options(sub, options);
    sub.add_option("--config", options.config,
                   "DeepSpeed JSON file: data type, bucket sizes and limits; default: 16-bit, its defaults");
    sub.add_option("--set", options.set,
                   "KEY=VALUE over the configuration, e.g. zero_optimization.overlap_comm=true; repeatable");
    sub.add_option("--buffers", options.buffers,
                   "shardscope: gradients are reduced in place; deepspeed: copied into buckets")
        ->check(CLI::IsMember({"shardscope", "deepspeed"}))
        ->capture_default_str();
  }
  {
    auto [sub, options] = add(
        "scheduling", "Where ZeRO-3's fetch decisions differ from DeepSpeed's, in words", compare_scheduling);
    add_size_options(sub, options);
    sub.add_option("--config", options.config, "DeepSpeed JSON file: limits; default: its defaults");
    sub.add_option("--set", options.set, "KEY=VALUE over the configuration; repeatable");
    sub.add_option("--against", options.against, "Whose decisions to compare with ours")
        ->check(CLI::IsMember({"deepspeed", "notes"}))
        ->capture_default_str();
  }
  {
    auto [sub, options] =
        add("activations", "Activations of a transformer, kept or checkpointed", estimate_activations);
    sub.add_option("--model", options.model, "Model name or JSON file instead of the shape");
    add_shape_options(sub, options);
    options.shape.batch_per_gpu = 1;
    add_batch_options(sub, options);
  }
  add("zero-table", "Tables 1 and 2 of the ZeRO paper", estimate_zero_table);
  {
    auto [sub, options] =
        add("infinity", "ZeRO-Infinity's table of transformers of 0.1 to 100 trillion parameters",
            estimate_infinity);
    add_shape_options(sub, options);
    add_batch_options(sub, options);
    sub.add_option("--node-batch", options.shape.batch_per_node, "Samples per node")->check(kAboveZero);
  }
}

}  // namespace shardscope::cli
