#include "runtime/train/setup.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>

#include "instrumentation/event.h"
#include "kernels/types.h"
#include "runtime/base/open_file.h"
#include "runtime/plan/activation_checkpointing.h"
#include "runtime/plan/auto_sizes.h"
#include "runtime/plan/leaf_modules.h"
#include "runtime/plan/quantization.h"

namespace shardscope::train {
namespace {

plan::ModelSpec load_spec(const Options& options) {
  if (!options.model.ends_with(".json")) {
    try {
      return plan::named_model(options.model);
    } catch (const std::invalid_argument& error) {
      throw UsageError(error.what());
    }
  }
  std::string text;
  try {
    text = base::read_file(options.model);
  } catch (const base::FileError& error) {
    throw std::invalid_argument("--model " + options.model + ": " + error.what() +
                                ", or give the name of a built-in model");
  }
  try {
    return plan::parse_model_spec(text);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(options.model + ": " + error.what());
  }
}

/// Warns about a key that has no effect with this model.
void warn_if_nothing_is_quantized(const Options& options, std::uint32_t world,
                                  config::TrainingConfig& config) {
  const plan::ZeroConfig& zero = config.zero;
  if (zero.stage != 3 || !zero.quantized_nontrainable_weights) return;
  const plan::ModelPlan model = plan::build_model_plan(load_spec(options));
  std::vector<std::int64_t> elems;
  for (const plan::ParamPlan& param : model.params) elems.push_back(param.elems);
  const std::vector<bool> quantized =
      plan::quantized_shards(elems, plan::trainable_params(model), zero, world,
                             static_cast<std::int64_t>(kernels::size_of(config.storage_type())));
  if (std::find(quantized.begin(), quantized.end(), true) != quantized.end()) return;
  const bool any_frozen = plan::trainable_elems(model) < model.elems;
  config.warnings.push_back(
      std::string("zero_optimization.zero_quantized_nontrainable_weights: ignored: ") +
      (any_frozen ? "every frozen parameter is persistent or on NVMe; such shards keep their type"
                  : "model " + model.spec.name +
                        " has no frozen parameter; say \"trainable\": false in its JSON file"));
}

instrumentation::Detail parse_detail(const std::string& name) {
  for (std::uint8_t i = 0; i < instrumentation::kValueCount<instrumentation::Detail>; ++i) {
    const auto detail = static_cast<instrumentation::Detail>(i);
    if (name == instrumentation::name_of(detail)) return detail;
  }
  throw UsageError("--detail " + name + ": unknown; use steps, phases, modules, params or kernels");
}

double attention_heads(const plan::NodeSpec& node) {
  double most = node.kind == plan::NodeKind::attention ? static_cast<double>(node.heads) : 0;
  for (const plan::NodeSpec& child : node.children) most = std::max(most, attention_heads(child));
  return most;
}

/// Limits activation sizes like a model's elements: products with bytes per element stay far below 2^63.
void check_tensors(const plan::ModelPlan& model, const config::TrainingConfig& config) {
  constexpr double kMostElems = 0x1p50;
  std::int64_t widest = std::max(model.spec.input_width, model.spec.output_width);
  for (const plan::ParamPlan& param : model.params)
    for (const std::int64_t extent : param.shape) widest = std::max(widest, extent);
  const double positions =
      model.spec.input == plan::InputKind::tokens ? static_cast<double>(model.spec.context) : 1;
  const double of_a_sample =
      positions * std::max(static_cast<double>(widest), attention_heads(model.spec.root) * positions);
  const plan::MicroBatches& sizes = config.shardscope.micro_batches;
  const std::int64_t micro_batch = sizes.largest({config.batch.micro_batch_size, 0}).samples;
  if (static_cast<double>(micro_batch) * of_a_sample <= kMostElems) return;
  throw std::invalid_argument(
      (sizes.shapes.empty() ? "train_micro_batch_size_per_gpu: " : "shardscope.micro_batches.shapes: ") +
      std::to_string(micro_batch) + " samples through model " + model.spec.name +
      " would make a tensor of more than 2^50 elements; give fewer");
}

}  // namespace

plan::ModelPlan load_model(const Options& options, const config::TrainingConfig& config) {
  plan::ModelSpec spec = load_spec(options);
  if (config.shardscope.activation_checkpointing && plan::checkpoint_blocks(spec) == 0) {
    throw std::invalid_argument(
        "shardscope.activation_checkpointing: model " + spec.name +
        " has no list of blocks; mark modules with \"checkpoint\": true in its JSON file");
  }
  spec.checkpoint_early_stop = config.shardscope.checkpoint_early_stop;
  const plan::MicroBatches& sizes = config.shardscope.micro_batches;
  if (const std::string wrong = plan::validate(sizes, spec, spec.context); !wrong.empty()) {
    throw std::invalid_argument(wrong);
  }
  plan::ModelPlan model = plan::build_model_plan(plan::mark_leaf_modules(std::move(spec), config.zero));
  check_tensors(model, config);
  plan::assign_param_groups(model, config.group_rules());
  return model;
}

config::TrainingConfig load_training_config(const Options& options, std::uint32_t world) {
  config::ParseOptions parse;
  parse.world = world;
  parse.total_steps = options.steps;
  parse.hidden_size = plan::embedding_width(load_spec(options).root);
  parse.generated = !options.config_name.empty();
  if (parse.generated) parse.file = options.config_name;
  config::TrainingConfig config =
      options.config.empty() ? config::default_config(parse) : config::load_config(options.config, parse);
  warn_if_nothing_is_quantized(options, world, config);
  // The command line overrides the file, also in the run's tables.
  if (!options.detail.empty()) config.shardscope.detail = parse_detail(options.detail);
  return config;
}

/// The same on every rank.
std::string agree_on_run_id(const Options& options, comm::Communicator& comm) {
  if (!options.run_id.empty()) return options.run_id;
  std::array<std::byte, 16> id{};
  if (comm.rank() == 0) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    std::random_device random;
    char text[17];
    std::snprintf(text, sizeof text, "%08x%08x", static_cast<unsigned>(now / std::chrono::seconds(1)),
                  static_cast<unsigned>(random()));
    std::memcpy(id.data(), text, id.size());
  }
  comm.broadcast_host(id, 0);
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

}  // namespace shardscope::train
