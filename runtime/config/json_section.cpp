#include "runtime/config/json_section.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/config/config.h"

namespace shardscope::config {
namespace {

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

/// A value as shown in a message: its JSON, cut when long.
std::string shown(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

/// Keys whose default in DeepSpeed is None (runtime/constants.py, runtime/zero/config.py, offload_config.py):
/// null selects that default.
bool has_null_default(const std::string& path) {
  static const std::set<std::string> paths{"train_batch_size",
                                           "train_micro_batch_size_per_gpu",
                                           "gradient_accumulation_steps",
                                           "communication_data_type",
                                           "data_types.grad_accum_dtype",
                                           "scheduler.params.cycle_second_step_size",
                                           "scheduler.params.cycle_second_stair_count",
                                           "zero_optimization.overlap_comm",
                                           "zero_optimization.cpu_offload",
                                           "zero_optimization.cpu_offload_param",
                                           "zero_optimization.cpu_offload_params",
                                           "zero_optimization.cpu_offload_use_pin_memory",
                                           "zero_optimization.offload_param",
                                           "zero_optimization.offload_param.nvme_path",
                                           "zero_optimization.offload_optimizer",
                                           "zero_optimization.offload_optimizer.nvme_path",
                                           "zero_optimization.zenflow",
                                           "zero_optimization.zeropp_loco_param"};
  return paths.count(path) != 0;
}

bool is_off(const nlohmann::json& value) {
  if (value.is_null()) return true;
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number()) return value.get<double>() == 0;
  if (value.is_object()) {
    if (value.empty()) return true;
    const auto enabled = value.find("enabled");
    return enabled != value.end() && enabled->is_boolean() && !enabled->get<bool>();
  }
  return value.is_array() && value.empty();
}

}  // namespace

void ParseContext::fail(const std::string& path, const std::string& text) const {
  if (foreign) return;
  std::string message = file;
  // A path into a missing key is shown at the nearest enclosing key that exists.
  std::string at = path;
  TextPosition position = positions.find(at);
  while (position.line == 0 && at.find('.') != std::string::npos) {
    at.resize(at.rfind('.'));
    position = positions.find(at);
  }
  if (position.line != 0 && !generated) {
    message += ":" + std::to_string(position.line) + ":" + std::to_string(position.column);
  }
  message += ": ";
  if (!path.empty()) message += path + ": ";
  throw ConfigError(message + text);
}

void ParseContext::warn(const std::string& path, const std::string& text) {
  warnings.push_back(path + ": " + text);
}

std::string nearest_key(const std::string& key, const std::set<std::string>& known) {
  std::string best;
  // Accepts a typo or two: at most a third of the word.
  std::size_t best_distance = (key.size() + 2) / 3 + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(key, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

Section::Section(ParseContext& context, const nlohmann::json& object, std::string path)
    : context_(&context), object_(&object), path_(std::move(path)) {
  if (!object.is_object()) context.fail(path_, "is " + shown(object) + ", but must be an object { ... }");
}

std::string Section::path_of(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

void Section::fail(const std::string& key, const std::string& text) const {
  context_->fail(path_of(key), text);
}

const nlohmann::json* Section::find_or_null(const std::string& key) {
  context_->known[path_].insert(key);
  const auto found = object_->find(key);
  return found == object_->end() ? nullptr : &*found;
}

const nlohmann::json* Section::find(const std::string& key) {
  const nlohmann::json* found = find_or_null(key);
  if (found == nullptr || !found->is_null()) return found;
  if (!has_null_default(path_of(key)))
    fail(key, "is null; give a value, or leave the key out for its default");
  return nullptr;
}

bool Section::is_auto(const std::string& key) {
  const nlohmann::json* value = find(key);
  return value != nullptr && value->is_string() && value->get<std::string>() == "auto";
}

void Section::read(const std::string& key, bool& value) {
  const nlohmann::json* found = find(key);
  if (found == nullptr || is_auto(key)) return;
  if (!found->is_boolean()) return fail(key, "is " + shown(*found) + ", but must be true or false");
  value = found->get<bool>();
}

void Section::read(const std::string& key, std::int64_t& value, std::int64_t min, std::int64_t max) {
  const nlohmann::json* found = find(key);
  if (found == nullptr || is_auto(key)) return;
  if (!found->is_number()) return fail(key, "is " + shown(*found) + ", but must be a whole number");
  const auto too_large = [&] {
    fail(key, "is " + shown(*found) + ", but must be at most " + std::to_string(max));
  };
  std::int64_t number = 0;
  if (found->is_number_unsigned()) {
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (found->get<std::uint64_t>() > kMax) return too_large();
    number = static_cast<std::int64_t>(found->get<std::uint64_t>());
  } else if (found->is_number_integer()) {
    number = found->get<std::int64_t>();
  } else {
    // 5e8 is how DeepSpeed files write element counts, so a float without a fraction is a whole number.
    const double real = found->get<double>();
    if (std::floor(real) != real) return fail(key, "is " + shown(*found) + ", but must be a whole number");
    if (real >= 0x1p63) return too_large();
    number = static_cast<std::int64_t>(std::max(real, -0x1p63));
  }
  if (number < min) fail(key, "is " + shown(*found) + ", but must be at least " + std::to_string(min));
  if (number > max) too_large();
  value = number;
}

void Section::read(const std::string& key, double& value, double min, double max) {
  const nlohmann::json* found = find(key);
  if (found == nullptr || is_auto(key)) return;
  if (!found->is_number()) return fail(key, "is " + shown(*found) + ", but must be a number");
  const auto number = found->get<double>();
  if (!(number >= min)) fail(key, "is " + shown(*found) + ", but must be at least " + shown(min));
  if (number > max) fail(key, "is " + shown(*found) + ", but must be at most " + shown(max));
  value = number;
}

void Section::read(const std::string& key, std::string& value) {
  const nlohmann::json* found = find(key);
  if (found == nullptr || is_auto(key)) return;
  if (!found->is_string()) return fail(key, "is " + shown(*found) + ", but must be a string");
  value = found->get<std::string>();
}

void Section::read(const std::string& key, std::vector<std::string>& value) {
  const nlohmann::json* found = find(key);
  if (found == nullptr || is_auto(key)) return;
  const bool strings = found->is_array() &&
                       std::all_of(found->begin(), found->end(), [](const auto& e) { return e.is_string(); });
  if (!strings) return fail(key, "is " + shown(*found) + ", but must be a list of strings");
  value = found->get<std::vector<std::string>>();
}

void Section::read_enum(const std::string& key, const std::vector<std::string>& names,
                        const std::function<void(std::size_t)>& set) {
  const nlohmann::json* found = find(key);
  if (found == nullptr || is_auto(key)) return;
  if (found->is_string()) {
    const auto name = std::find(names.begin(), names.end(), found->get<std::string>());
    if (name != names.end()) return set(static_cast<std::size_t>(name - names.begin()));
  }
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  fail(key, "is " + shown(*found) + ", but must be one of: " + list);
}

std::optional<Section> Section::child(const std::string& key) {
  const nlohmann::json* found = find(key);
  if (found == nullptr || (context_->foreign && !found->is_object())) return std::nullopt;
  return Section(*context_, *found, path_of(key));
}

std::vector<Section> Section::children(const std::string& key) {
  std::vector<Section> sections;
  const nlohmann::json* found = find(key);
  if (found == nullptr) return sections;
  if (!found->is_array()) {
    fail(key, "is " + shown(*found) + ", but must be a list of objects [{ ... }]");
    return sections;
  }
  for (std::size_t i = 0; i < found->size(); ++i) {
    if (context_->foreign && !(*found)[i].is_object()) continue;
    sections.emplace_back(*context_, (*found)[i], path_of(key) + "[" + std::to_string(i) + "]");
  }
  return sections;
}

Section Section::child_or_empty(const std::string& key) {
  static const nlohmann::json kEmpty = nlohmann::json::object();
  const nlohmann::json* found = find(key);
  return Section(*context_, found == nullptr ? kEmpty : *found, path_of(key));
}

void Section::without_setting(const std::string& key, KeyPolicy policy, const std::string& why) {
  context_->settingless.insert(path_of(key));
  const nlohmann::json* found = find_or_null(key);
  if (found == nullptr || is_off(*found)) return;
  switch (policy) {
    case KeyPolicy::ignored:
      warn(key, "ignored: " + why);
      return;
    case KeyPolicy::refused:
      fail(key, "is " + shown(*found) + ": " + why);
  }
}

void Section::finish() const {
  const std::set<std::string>& known = context_->known[path_];
  for (const auto& item : object_->items()) {
    if (known.count(item.key()) != 0) continue;
    // Keys that begin with an underscore are how JSON files carry comments.
    if (!item.key().empty() && item.key().front() == '_') continue;
    const std::string near = nearest_key(item.key(), known);
    fail(item.key(),
         "unknown key" + (near.empty() ? std::string("; docs/configuration.md lists the known ones")
                                       : "; did you mean \"" + near + "\"?"));
  }
}

}  // namespace shardscope::config
