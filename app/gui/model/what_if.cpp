#include "app/gui/model/what_if.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <utility>

#include "app/analysis/attached/settings.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/framework.h"
#include "app/analysis/zero_settings.h"
#include "app/gui/model/finding_detail.h"
#include "app/gui/model/format.h"

namespace shardscope::gui {
namespace {

namespace ev = shardscope::instrumentation;
using Kind = WhatIfSetting::Kind;

/// Index of the stage in what_if_settings().
constexpr std::size_t kStage = 0;

std::string number_text(double value) {
  std::ostringstream text;
  text.precision(6);
  text << value;
  return text.str();
}

nlohmann::json::json_pointer pointer_of(std::string key) {
  std::ranges::replace(key, '.', '/');
  return nlohmann::json::json_pointer("/" + key);
}

double number_of(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : std::nan("");
}

std::optional<double> maybe(const nlohmann::json& object, const char* key) {
  const double value = number_of(object, key);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// Whether the setting's default depends on the stage.
bool follows_stage(const WhatIfSetting& setting) {
  return std::string_view(setting.key) == "zero_optimization.overlap_comm";
}

/// The setting's value if only the stage were changed: that of the configuration, or, for a setting that is
/// not set and follows the stage, the default of the stage.
std::string value_at(const ev::RunTables& tables, const WhatIfSetting& setting, std::int32_t stage) {
  std::string value = setting_value(tables.config_json, setting.key);
  if (!follows_stage(setting) || !analysis::names_zero_settings(tables.config_json)) return value;
  const auto by_default = [&](std::int32_t at) {
    plan::ZeroConfig zero = analysis::zero_of(tables);
    zero.overlap_comm.reset();
    zero.stage = at;
    return std::string(zero.overlap() ? "true" : "false");
  };
  // Our own runs record every setting: a value equal to its stage's default counts as not set.
  const bool set = !value.empty() && (!tables.framework.empty() || value != by_default(tables.stage));
  return set ? value : by_default(stage);
}

/// FSDP2 and DDP have no configuration file.
bool set_by_calls(const ev::RunTables& tables) {
  const analysis::Framework framework = analysis::framework_of(tables);
  return framework == analysis::Framework::fsdp2 || framework == analysis::Framework::ddp;
}

/// The stage of a value in the panel; empty: not in the configuration.
std::int32_t stage_of(const std::string& value, const ev::RunTables& tables) {
  return value.empty() ? tables.stage : std::atoi(value.c_str());
}

}  // namespace

const std::vector<WhatIfSetting>& what_if_settings() {
  static const std::vector<WhatIfSetting> settings{
      {"zero_optimization.stage",
       "ZeRO stage",
       Kind::choice,
       0,
       0,
       {"0", "1", "2", "3"},
       0,
       3,
       "What is divided among ranks: nothing, optimizer states, gradients too, parameters too"},
      {"zero_optimization.overlap_comm",
       "overlap_comm",
       Kind::on_off,
       0,
       0,
       {},
       1,
       3,
       "Gathers and reductions run beside computation"},
      {"zero_optimization.reduce_bucket_size",
       "reduce_bucket_size",
       Kind::count,
       1'000,
       1'000'000'000,
       {},
       1,
       3,
       "Elements of gradients that are reduced at once",
       "elements"},
      {"zero_optimization.allgather_bucket_size",
       "allgather_bucket_size",
       Kind::count,
       1'000,
       1'000'000'000,
       {},
       1,
       2,
       "Elements that are gathered at once after the step",
       "elements"},
      {"zero_optimization.stage3_prefetch_bucket_size",
       "prefetch_bucket_size",
       Kind::count,
       0,
       1'000'000'000,
       {},
       3,
       3,
       "Elements that may be prefetched ahead at a time",
       "elements"},
      {"zero_optimization.stage3_max_live_parameters",
       "max_live_parameters",
       Kind::count,
       1'000,
       10'000'000'000,
       {},
       3,
       3,
       "Elements that may be gathered at a time",
       "elements"},
      {"zero_optimization.stage3_max_reuse_distance",
       "max_reuse_distance",
       Kind::count,
       0,
       10'000'000'000,
       {},
       3,
       3,
       "Parameters that are used again within this number of elements are kept",
       "elements"},
      {"zero_optimization.stage3_param_persistence_threshold",
       "param_persistence_threshold",
       Kind::count,
       0,
       10'000'000,
       {},
       3,
       3,
       "Smaller parameters are never divided",
       "elements"},
      {"zero_optimization.offload_optimizer.device",
       "offload optimizer to",
       Kind::choice,
       0,
       0,
       {"none", "cpu"},
       1,
       3,
       "Optimizer states in host memory, updated there"},
      {"zero_optimization.offload_param.device",
       "offload parameters to",
       Kind::choice,
       0,
       0,
       {"none", "cpu"},
       3,
       3,
       "Shards of parameters in host memory"},
      {.key = "fully_shard.reshard_after_forward",
       .label = "reshard_after_forward",
       .kind = Kind::on_off,
       .tip =
           "Groups are released after their forward and gathered again for the backward; all but the root's"},
      {.key = "fully_shard.root_reshard_after_forward",
       .label = "reshard the root",
       .kind = Kind::on_off,
       .tip = "The root's group is released after the forward too"},
      {.key = "fully_shard.groups_to_forward_prefetch",
       .label = "forward prefetch",
       .least = 0,
       .most = 16,
       .tip = "Next groups that each group gathers in the forward (set_modules_to_forward_prefetch)",
       .unit = "groups"},
      {.key = "fully_shard.groups_to_backward_prefetch",
       .label = "backward prefetch",
       .least = 1,
       .most = 16,
       .tip = "Next groups that each group gathers in the backward; 1 is FSDP2's own "
              "(set_modules_to_backward_prefetch)",
       .unit = "groups"},
      {.key = "fully_shard.reduce_in_last_micro_step_only",
       .label = "reduce in last micro-step",
       .kind = Kind::on_off,
       .tip = "Gradients of other micro-steps are kept whole (set_requires_gradient_sync)"},
      {.key = "DistributedDataParallel.bucket_cap_mb",
       .label = "bucket_cap_mb",
       .least = 1,
       .most = 4096,
       .tip = "Gradients that are reduced at once, beside the backward",
       .unit = "MiB"},
      {.key = "DistributedDataParallel.reduce_in_last_micro_step_only",
       .label = "reduce in last micro-step",
       .kind = Kind::on_off,
       .tip = "Gradients of other micro-steps are kept (no_sync)"},
      {"train_micro_batch_size_per_gpu",
       "micro-batch per rank",
       Kind::count,
       1,
       1024,
       {},
       0,
       3,
       "Sequences that a rank computes at a time",
       "sequences"},
      {"gradient_accumulation_steps",
       "micro-steps per step",
       Kind::count,
       1,
       1024,
       {},
       0,
       3,
       "Passes over micro-batches whose gradients are accumulated before a step of the optimizer",
       "micro-steps"},
  };
  return settings;
}

bool is_offered(const WhatIfSetting& setting, const ev::RunTables& tables) {
  const std::string_view key = setting.key;
  const analysis::Framework framework = analysis::framework_of(tables);
  if (key.starts_with("fully_shard.")) return framework == analysis::Framework::fsdp2;
  if (key.starts_with("DistributedDataParallel.")) return framework == analysis::Framework::ddp;
  const bool zero = framework != analysis::Framework::fsdp2 && framework != analysis::Framework::ddp;
  return zero || !key.starts_with("zero_optimization.");
}

const char* unset_text(const ev::RunTables& tables) {
  return set_by_calls(tables) ? "as recorded" : "default";
}

const char* unset_tip(const ev::RunTables& tables) {
  return set_by_calls(tables) ? "not known, a call in the script may have set it" : "default";
}

std::string text_of(const WhatIfSetting& setting, const std::string& value, const char* unset) {
  if (value.empty()) return unset;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size()) return value;
  std::string unit = setting.unit;
  if (number == 1 && unit.ends_with('s')) unit.pop_back();
  return unit.empty() ? grouped(number) : grouped(number) + " " + unit;
}

std::string as_format(std::string_view text) {
  std::string format;
  for (const char c : text) format += c == '%' ? std::string("%%") : std::string(1, c);
  return format;
}

WhatIfRefusals what_if_refusals(const ev::RunTables& tables) {
  namespace attached = analysis::attached;
  WhatIfRefusals out;
  out.settings.resize(what_if_settings().size());
  if (tables.framework.empty()) return out;
  out.run = attached::why_no_settings(tables);
  for (std::size_t i = 0; i < out.settings.size(); ++i)
    out.settings[i] = attached::why_not_asked(tables, what_if_settings()[i].key);
  const auto of_option = [&](const char* option) {
    return out.run.empty() ? attached::why_no_option(tables, option) : out.run;
  };
  out.ranks = of_option("--ranks");
  out.links = of_option("--link");
  out.search = of_option("--search");
  out.open_beside = of_option("-o");
  return out;
}

std::string setting_value(const std::string& config_json, const std::string& key) {
  const nlohmann::json config = analysis::parse_foreign(config_json);
  if (!config.is_object()) return "";
  const auto pointer = pointer_of(key);
  if (!config.contains(pointer)) return key.ends_with(".device") ? "none" : "";
  const nlohmann::json& value = config[pointer];
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return key.ends_with(".device") ? "none" : "";
  // Counts written as 5e8 are integers.
  if (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>() &&
      std::fabs(value.get<double>()) < 1e15)
    return std::to_string(static_cast<std::int64_t>(value.get<double>()));
  return analysis::to_text(value);
}

WhatIfChoice as_recorded(const ev::RunTables& tables) {
  WhatIfChoice choice;
  for (const WhatIfSetting& setting : what_if_settings())
    choice.values.push_back(value_at(tables, setting, tables.stage));
  choice.own.resize(choice.values.size(), false);
  choice.ranks = tables.world;
  choice.ranks_per_node = std::min(tables.local_world, tables.world);
  return choice;
}

void set(WhatIfChoice& choice, std::size_t which, std::string value) {
  choice.values[which] = std::move(value);
  choice.own[which] = true;
}

void choose_stage(WhatIfChoice& choice, const ev::RunTables& tables, const std::string& stage) {
  const auto& settings = what_if_settings();
  for (std::size_t i = 0; i < choice.values.size(); ++i)
    if (i != kStage && !choice.own[i])
      choice.values[i] = value_at(tables, settings[i], stage_of(stage, tables));
  set(choice, kStage, stage);
}

void change(WhatIfChoice& choice, const ev::RunTables& tables, const std::vector<analysis::Change>& changes) {
  const auto& settings = what_if_settings();
  // The stage first: it changes the values of settings without a change.
  for (const analysis::Change& wanted : changes)
    if (wanted.key == settings[kStage].key) choose_stage(choice, tables, plain_value(wanted.value));
  for (const analysis::Change& wanted : changes) {
    const auto found =
        std::ranges::find_if(settings, [&](const WhatIfSetting& one) { return wanted.key == one.key; });
    const auto at = static_cast<std::size_t>(found - settings.begin());
    if (at == kStage) continue;
    if (at < choice.values.size()) {
      set(choice, at, plain_value(wanted.value));
    } else {
      if (!choice.more.empty() && !choice.more.ends_with('\n')) choice.more += '\n';
      choice.more += wanted.key + "=" + wanted.value;
    }
  }
}

std::vector<std::string> what_if_arguments(const std::string& program, const std::string& recording,
                                           const ev::RunTables& tables, const WhatIfChoice& choice,
                                           const std::string& out) {
  std::vector<std::string> argv{program, "what-if", recording, "--json"};
  const WhatIfChoice recorded = as_recorded(tables);
  const auto& settings = what_if_settings();
  const std::int32_t stage = stage_of(choice.values.empty() ? "" : choice.values[kStage], tables);
  for (std::size_t i = 0; i < std::min(settings.size(), choice.values.size()); ++i) {
    if (!is_offered(settings[i], tables)) continue;
    const bool named = follows_stage(settings[i]) && stage != tables.stage;
    if (choice.values[i].empty() || (choice.values[i] == recorded.values[i] && !named)) continue;
    if (stage < settings[i].first_stage || stage > settings[i].last_stage) continue;
    argv.insert(argv.end(), {"--set", std::string(settings[i].key) + "=" + choice.values[i]});
  }
  std::istringstream more(choice.more);
  for (std::string line; std::getline(more, line);) {
    if (line.find('=') != std::string::npos) argv.insert(argv.end(), {"--set", line});
  }
  if (choice.ranks != recorded.ranks) argv.insert(argv.end(), {"--ranks", std::to_string(choice.ranks)});
  if (choice.ranks_per_node != recorded.ranks_per_node && choice.ranks_per_node > 0)
    argv.insert(argv.end(), {"--ranks-per-node", std::to_string(choice.ranks_per_node)});
  const auto link = [&](const char* option, double gb_per_s, double latency_us) {
    if (gb_per_s > 0)
      argv.insert(argv.end(), {option, number_text(gb_per_s) + ":" + number_text(latency_us)});
  };
  link("--link", choice.link_gb_per_s, choice.link_latency_us);
  link("--node-link", choice.node_link_gb_per_s, choice.node_link_latency_us);
  if (!out.empty()) argv.insert(argv.end(), {"-o", out});
  return argv;
}

std::pair<std::optional<WhatIfResult>, std::string> read_what_if(const std::string& text) {
  const nlohmann::json json = analysis::parse_foreign(text);
  if (!json.is_object() || !json.contains("recorded") || !json["recorded"].is_object() ||
      !json.contains("changed") || !json["changed"].is_object())
    return {std::nullopt, "what-if gave no figures"};
  WhatIfResult out;
  out.recorded_ms = number_of(json["recorded"], "step_ms");
  out.modelled_ms = number_of(json, "modelled_step_ms");
  out.changed_ms = number_of(json["changed"], "step_ms");
  out.predicted_ms = number_of(json, "predicted_step_ms");
  out.change_pct = number_of(json, "predicted_change_pct");
  out.model_error_pct = number_of(json, "model_error_pct");
  const nlohmann::json comparison = json.value("comparison", nlohmann::json::object());
  if (!comparison.is_object()) return {std::move(out), ""};
  if (comparison.contains("verdict") && comparison["verdict"].is_string())
    out.comparison.verdict = comparison["verdict"].get<std::string>();
  out.comparison.simulated_a = out.comparison.simulated_b = true;
  for (const nlohmann::json& change : comparison.value("config_changes", nlohmann::json::array())) {
    if (change.is_string()) out.comparison.config_changes.push_back(change.get<std::string>());
  }
  for (const nlohmann::json& metric : comparison.value("metrics", nlohmann::json::array())) {
    if (!metric.is_object() || !metric.contains("metric") || !metric["metric"].is_string()) continue;
    analysis::Difference row;
    row.metric = metric["metric"].get<std::string>();
    if (metric.contains("unit") && metric["unit"].is_string()) row.unit = metric["unit"].get<std::string>();
    row.a = maybe(metric, "a");
    row.b = maybe(metric, "b");
    row.spread_a = maybe(metric, "spread_a").value_or(0);
    row.spread_b = maybe(metric, "spread_b").value_or(0);
    const auto low = maybe(metric, "low"), high = maybe(metric, "high");
    if (low && high) row.interval = {(*low + *high) / 2, *low, *high, 0};
    if (metric.contains("of_run") && metric["of_run"].is_boolean()) row.of_run = metric["of_run"].get<bool>();
    if (metric.contains("lower_is_better") && metric["lower_is_better"].is_boolean())
      row.lower_is_better = metric["lower_is_better"].get<bool>();
    out.comparison.metrics.push_back(std::move(row));
  }
  return {std::move(out), ""};
}

}  // namespace shardscope::gui
