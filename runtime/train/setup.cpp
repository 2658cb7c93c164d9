#include "runtime/train/setup.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>

#include "runtime/plan/activation_checkpointing.h"
#include "runtime/plan/leaf_modules.h"

namespace shardscope::train {
namespace {

plan::ModelSpec load_spec(const Options& options) {
  if (!options.model.ends_with(".json")) return plan::named_model(options.model);
  std::ifstream file(options.model);
  if (!file) {
    throw std::invalid_argument("--model " + options.model +
                                ": cannot be opened; give a JSON file or the name of a built-in model");
  }
  std::ostringstream text;
  text << file.rdbuf();
  try {
    return plan::parse_model_spec(text.str());
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(options.model + ": " + error.what());
  }
}

/// Width of the first embedding: what the "auto" sizes of a configuration are made from. 0: there is none.
std::int64_t embedding_width(const plan::NodeSpec& node) {
  if (node.kind == plan::NodeKind::embedding) return node.out;
  for (const plan::NodeSpec& child : node.children) {
    if (const std::int64_t width = embedding_width(child); width > 0) return width;
  }
  return 0;
}

}  // namespace

plan::ModelPlan load_model(const Options& options, const config::TrainingConfig& config) {
  plan::ModelSpec spec = load_spec(options);
  if (config.shardscope.activation_checkpointing && plan::checkpoint_blocks(spec) == 0) {
    throw std::invalid_argument(
        "shardscope.activation_checkpointing: model " + spec.name +
        " has no list of blocks; mark modules with \"checkpoint\": true in its JSON file");
  }
  return plan::build_model_plan(plan::mark_leaf_modules(std::move(spec), config.zero));
}

config::TrainingConfig load_training_config(const Options& options, std::uint32_t world) {
  config::ParseOptions parse;
  parse.world = world;
  parse.total_steps = options.steps;
  parse.hidden_size = embedding_width(load_spec(options).root);
  if (options.config.empty()) return config::default_config(parse);
  return config::load_config(options.config, parse);
}

std::string describe_config(const Options& options, std::uint32_t world) {
  return config::effective_json(load_training_config(options, world));
}

instrumentation::Detail parse_detail(const std::string& name, instrumentation::Detail fallback) {
  static constexpr std::array kNames{"steps", "phases", "modules", "params", "kernels"};
  if (name.empty()) return fallback;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<instrumentation::Detail>(i);
  }
  throw std::invalid_argument("--detail " + name +
                              ": unknown; use steps, phases, modules, params or kernels");
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

/// What every rank must have alike; a difference would show only as a wrong result.
void check_same_data(const data::BatchStream& stream, comm::Communicator& comm) {
  const std::uint64_t mine = stream.fingerprint();
  std::array<std::uint64_t, 2> extremes{mine, ~mine};
  comm.max_host(extremes);
  if (extremes[0] != mine || ~extremes[1] != mine) {
    throw data::DataError("rank " + std::to_string(comm.rank()) + " reads other data than the others (" +
                          stream.describe() + "); give every rank the same files");
  }
}

}  // namespace shardscope::train
