#include "runtime/config/config.h"

#include "runtime/base/open_file.h"
#include "runtime/config/parse_json.h"
#include "runtime/config/sections.h"
#include "runtime/plan/zero_groups.h"

namespace shardscope::config {
namespace {

constexpr std::size_t kMaxFileBytes = 4U << 20;
constexpr int kMaxDepth = 64;

/// "[json.exception.parse_error.101] parse error at line 3, column 9: syntax error ..." -> "syntax error
/// ...".
std::string short_reason(const std::string& what) {
  const std::size_t at = what.find("syntax error");
  if (at != std::string::npos) return what.substr(at);
  const std::size_t colon = what.rfind(": ");
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

nlohmann::json parse_text(const std::string& text, ParseContext& context) {
  if (text.size() > kMaxFileBytes) {
    context.fail("", "is " + std::to_string(text.size()) + " bytes; a configuration has at most 4 MiB");
  }
  // The parser takes a zero byte for the end of the text and ignores the rest.
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
    const TextPosition at = position_at(text, zero);
    throw ConfigError(context.file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) +
                      ": not valid JSON: holds a zero byte; the file is damaged or no text, write it anew");
  }
  try {
    const auto limit_depth = [&](int depth, auto, const auto&) {
      if (depth > kMaxDepth) context.fail("", "is nested deeper than 64 levels");
      return true;
    };
    // DeepSpeed reads its files as hjson, so they may have comments.
    constexpr bool kThrow = true, kIgnoreComments = true;
    const nlohmann::json json = nlohmann::json::parse(text, limit_depth, kThrow, kIgnoreComments);
    context.positions = JsonPositions(text);
    if (!context.positions.duplicate().empty()) {
      context.fail(context.positions.duplicate(), "is given twice; keep one of them");
    }
    return json;
  } catch (const nlohmann::json::parse_error& error) {
    const TextPosition at = position_at(text, error.byte > 0 ? error.byte - 1 : 0);
    throw ConfigError(context.file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) +
                      ": not valid JSON: " + short_reason(error.what()));
  } catch (const nlohmann::json::out_of_range&) {
    const LargeNumber number = first_large_number(text);
    throw ConfigError(context.file + ":" + std::to_string(number.position.line) + ":" +
                      std::to_string(number.position.column) + ": " + number.path + ": is " + number.text +
                      ", which is beyond every number that a configuration can hold; give a smaller one");
  } catch (const nlohmann::json::exception& error) {
    throw ConfigError(context.file + ": " + short_reason(error.what()));
  }
}

/// With the preset "notes", missing keys have the defaults of the notes (docs/zero.md D9): the sub-group size
/// of their class signature, and host memory that is pinned only on request.
void fill_defaults_of_notes(Section& root, plan::ZeroConfig& zero) {
  const nlohmann::json* section = root.find("zero_optimization");
  const auto given = [&](const char* key) {
    return section != nullptr && section->is_object() && section->contains(key);
  };
  const auto pinning_given = [&](const char* offload) {
    if (given("cpu_offload_use_pin_memory")) return true;
    return given(offload) && (*section)[offload].is_object() && (*section)[offload].contains("pin_memory");
  };
  if (!given("sub_group_size")) zero.sub_group_size = 1'000'000'000'000;
  if (!pinning_given("offload_param")) zero.offload_param.pin_memory = false;
  if (!pinning_given("offload_optimizer")) zero.offload_optimizer.pin_memory = false;
}

/// The first layout of stage 1 ignores these keys for gradients.
void warn_of_first_layout(Section& zero_section, const plan::ZeroConfig& zero) {
  const auto ignored = [&](bool given, const char* key) {
    if (!given) return;
    zero_section.warn(key,
                      "ignored: the first layout of ZeRO-1 reduce-scatters after the last backward, "
                      "max_elements_per_comm elements at a time");
  };
  ignored(!zero.reduce_scatter, "reduce_scatter");
  ignored(zero.reduce_bucket_size != plan::ZeroConfig{}.reduce_bucket_size, "reduce_bucket_size");
}

/// Warns about keys whose effect depends on compat, which is read after them.
void warn_without_layout(Section zero_section, const plan::ZeroConfig& zero) {
  if (plan::uses_legacy_layout(zero)) warn_of_first_layout(zero_section, zero);
  const nlohmann::json* multi_rank = zero_section.find("use_multi_rank_bucket_allreduce");
  const bool wanted = multi_rank != nullptr && *multi_rank == true;
  if (wanted && (zero.stage == 1 || zero.stage == 2) && !zero.compat.multi_rank_bucket_allreduce) {
    zero_section.warn("use_multi_rank_bucket_allreduce",
                      "ignored: slices are reduced to their owners, which moves half as much; "
                      "shardscope.compat multi_rank_bucket_allreduce (\"deepspeed\") all-reduces them");
  }
  if (zero.max_elements_per_comm != plan::ZeroConfig{}.max_elements_per_comm &&
      !plan::uses_legacy_layout(zero)) {
    zero_section.warn("max_elements_per_comm",
                      "ignored: it belongs to the first layout of ZeRO-1, legacy_stage1 in stage 1");
  }
}

}  // namespace

kernels::DType TrainingConfig::storage_type() const noexcept {
  if (bf16.enabled) return kernels::DType::bf16;
  return fp16.enabled ? kernels::DType::f16 : kernels::DType::f32;
}

double TrainingConfig::learning_rate(std::int64_t update, std::size_t param_group) const {
  const ParamGroup& group = param_groups.at(param_group);
  return plan::learning_rate(group.scheduler, group.optimizer.lr, update);
}

std::vector<plan::ParamGroupRule> TrainingConfig::group_rules() const {
  std::vector<plan::ParamGroupRule> rules;
  if (param_groups.size() == 1 && param_groups.front().rule.name.empty()) return rules;
  for (const ParamGroup& group : param_groups) rules.push_back(group.rule);
  return rules;
}

plan::StateBytes TrainingConfig::state_bytes() const noexcept {
  plan::StateBytes bytes = storage_type() == kernels::DType::f32 ? plan::kFp32 : plan::kMixedPrecision;
  bytes.gradient = static_cast<std::int64_t>(kernels::size_of(grad_accum_type));
  return bytes;
}

TrainingConfig::Betas TrainingConfig::betas(std::int64_t update, std::size_t param_group) const {
  const ParamGroup& group = param_groups.at(param_group);
  const std::optional<double> momentum = plan::momentum(group.scheduler, update);
  if (!momentum) return {group.optimizer.beta1, group.optimizer.beta2};
  if (!(*momentum >= 0 && *momentum < 1)) {
    throw ConfigError("scheduler.params: OneCycle moves beta1 to " + std::to_string(*momentum) +
                      " at optimizer step " + std::to_string(update) +
                      "; Adam needs less than 1: lower decay_mom_rate, raise decay_step_size, or set "
                      "cycle_momentum to false");
  }
  return {*momentum, plan::kOneCycleBeta2};
}

nlohmann::json parse_json(const std::string& text, const std::string& file) {
  ParseContext context;
  context.file = file;
  return parse_text(text, context);
}

TrainingConfig parse_config(const std::string& json_text, const ParseOptions& options) {
  ParseContext context;
  context.file = options.file;
  context.generated = options.generated;
  const nlohmann::json json = parse_text(json_text, context);
  TrainingConfig config = read_config(Section(context, json, ""), options);
  config.warnings = std::move(context.warnings);
  return config;
}

namespace {

/// DeepSpeed's old form, a boolean: true is stage 1, with allgather_size at the root
/// (deepspeed/runtime/zero/config.py, read_zero_config_deprecated).
void read_zero_switch(Section& root, plan::ZeroConfig& zero) {
  bool on = false;
  root.read("zero_optimization", on);
  zero.stage = on ? 1 : 0;
  if (on) root.read("allgather_size", zero.allgather_bucket_size, 1);
  root.warn("zero_optimization", std::string("deprecated: read as {\"stage\": ") + (on ? "1" : "0") +
                                     "}, allgather_size as its allgather_bucket_size");
}

/// Checks that groups of ranks, and nodes if the file sets their size, divide the ranks.
void check_groups(Section& root, const TrainingConfig& config, std::uint32_t world) {
  const plan::ZeroConfig& zero = config.zero;
  const auto node = static_cast<std::uint32_t>(zero.ranks_per_node);
  if (node > 0 && world % node != 0) {
    return root.fail("shardscope.ranks_per_node", "is " + std::to_string(node) +
                                                      ", which does not divide the " + std::to_string(world) +
                                                      " ranks of the run");
  }
  try {
    const plan::DataParallelPlace place =
        plan::data_parallel_place(config.shardscope.data_parallel_groups, world, 0);
    (void)plan::make_zero_groups(zero, plan::topology_of_group(place.members, node > 0 ? node : world),
                                 place.rank);
  } catch (const std::invalid_argument& error) {
    root.fail("zero_optimization", error.what());
  }
}

}  // namespace

void read_zero_settings(Section& root, TrainingConfig& config, const ParseOptions& options) {
  const nlohmann::json* form = root.find("zero_optimization");
  const bool deprecated = form != nullptr && form->is_boolean();
  if (deprecated) {
    read_zero_switch(root, config.zero);
  } else if (auto zero = root.child("zero_optimization")) {
    read_zero(*zero, config.zero, options);
  }
  config.zero.compat = plan::default_switches(plan::Compat::shardscope);
  if (auto ours = root.child("shardscope")) read_shardscope(*ours, config);
  if (config.shardscope.compat == plan::Compat::notes) fill_defaults_of_notes(root, config.zero);
  if (!deprecated) {
    if (auto zero = root.child("zero_optimization")) warn_without_layout(*zero, config.zero);
  }
  warn_of_switches(root, config.zero);
  check_groups(root, config, options.world);
  if (auto aio = root.child("aio")) read_aio(*aio, config.zero.aio);
  root.read("prescale_gradients", config.zero.prescale_gradients);
  root.read("gradient_predivide_factor", config.zero.gradient_predivide_factor);
  if (config.zero.gradient_predivide_factor <= 0)
    root.fail("gradient_predivide_factor", "must be more than 0");
}

namespace {

void read_log(Section& root, LogConfig& log) {
  root.read("wall_clock_breakdown", log.wall_clock_breakdown);
  root.read("memory_breakdown", log.memory_breakdown);
  root.read("dump_state", log.dump_state);
  root.read_enum("log_level", {"debug", "info", "warning", "error", "critical"},
                 [&](std::size_t i) { log.level = static_cast<LogLevel>(i); });
}

/// The schedule of every parameter group: keys may be lists with one value for each, as in DeepSpeed.
void read_schedules(Section& root, TrainingConfig& config, const ParseOptions& options) {
  auto scheduler = root.child("scheduler");
  if (!scheduler) return;
  const std::size_t groups = config.param_groups.size();
  for (std::size_t i = 0; i < groups; ++i) {
    ParamGroup& group = config.param_groups[i];
    group.scheduler = read_scheduler(*scheduler, group.optimizer, options, {i, groups});
  }
  config.scheduler = config.param_groups.front().scheduler;
  warn_of_rates_without_effect(root, config);
}

}  // namespace

TrainingConfig read_config(Section root, const ParseOptions& options) {
  TrainingConfig config;
  if (auto ours = root.child("shardscope")) {
    read_data_parallel_groups(*ours, options.world, config.shardscope.data_parallel_groups);
  }
  config.world = plan::data_parallel_world(config.shardscope.data_parallel_groups, options.world);
  config.batch = read_batch(root, config.world, options);
  root.read("steps_per_print", config.steps_per_print, 1);
  read_log(root, config.log);
  if (root.is_auto("gradient_clipping")) config.gradient_clipping = 1.0;  // transformers' max_grad_norm
  root.read("gradient_clipping", config.gradient_clipping);
  if (auto optimizer = root.child("optimizer")) read_optimizer(*optimizer, config.optimizer);
  config.param_groups.front().optimizer = config.optimizer;
  read_precision(root, config);
  read_data_types(root, config);
  read_zero_settings(root, config, options);
  read_schedules(root, config, options);
  if (config.zero.zenflow && config.param_groups.size() > 1) {
    root.fail(
        "shardscope.param_groups",
        "ZenFlow updates all parameters as one group here; remove zero_optimization.zenflow or the groups");
  }
  if (config.zero.zenflow && config.batch.accumulation_steps > 1) {
    // As in DeepSpeed, where update_interval takes its place: every micro-step updates the chosen columns.
    root.warn("gradient_accumulation_steps",
              "ignored with zenflow: chosen columns are stepped after every micro-batch, the rest every "
              "update_interval of them");
    config.batch.accumulation_steps = 1;
    config.batch.train_batch_size = config.batch.micro_batch_size * static_cast<std::int64_t>(config.world);
  }
  config.zero.gradient_accumulation_steps = config.batch.accumulation_steps;
  if (auto checkpointing = root.child("activation_checkpointing"))
    read_activation_checkpointing(*checkpointing);
  read_other_root_keys(root);
  root.finish();
  return config;
}

plan::ZeroConfig recorded_zero(const std::string& effective_json) {
  ParseContext context;
  TrainingConfig config;
  config.zero.compat = plan::default_switches(plan::Compat::shardscope);
  try {
    const nlohmann::json json = parse_text(effective_json, context);
    context.foreign = true;
    Section root(context, json, "");
    root.read("gradient_accumulation_steps", config.zero.gradient_accumulation_steps);
    read_zero_settings(root, config, {});
  } catch (const ConfigError&) {
    // Not JSON: nothing is known.
  }
  return config.zero;
}

TrainingConfig load_config(const std::string& path, ParseOptions options) {
  if (!options.generated) options.file = path;
  std::string text;
  try {
    text = base::read_file(path);
  } catch (const base::FileError& error) {
    throw ConfigError(path + ": " + error.what());
  }
  return parse_config(text, options);
}

TrainingConfig default_config(const ParseOptions& options) {
  return parse_config(R"({"train_micro_batch_size_per_gpu": "auto"})", options);
}

}  // namespace shardscope::config
