#include "runtime/config/given_settings.h"

#include <nlohmann/json.hpp>

#include "runtime/config/parse_json.h"

namespace shardscope::config {
namespace {

/// Collects every key below `json` that is not a section, and every empty section.
void find_keys(const nlohmann::json& json, const nlohmann::json::json_pointer& path,
               std::vector<nlohmann::json::json_pointer>& keys) {
  for (const auto& item : json.items()) {
    const nlohmann::json::json_pointer key = path / item.key();
    if (item.value().is_object() && !item.value().empty()) {
      find_keys(item.value(), key, keys);
    } else {
      keys.push_back(key);
    }
  }
}

/// Empty if the configuration is rejected: the remaining keys need the removed one.
std::string read_back(const nlohmann::json& json, const ParseOptions& options) {
  try {
    return effective_json(parse_config(json.dump(), options));
  } catch (const ConfigError&) {
    return {};
  }
}

}  // namespace

std::string without_defaults(const std::string& effective_json, const ParseOptions& options) {
  nlohmann::json json = parse_json(effective_json, options.file);
  const std::string wanted = config::effective_json(parse_config(effective_json, options));
  std::vector<nlohmann::json::json_pointer> keys;
  find_keys(json, nlohmann::json::json_pointer(), keys);
  for (const nlohmann::json::json_pointer& key : keys) {
    nlohmann::json shorter = json;
    shorter[key.parent_pointer()].erase(key.back());
    if (read_back(shorter, options) == wanted) json = std::move(shorter);
  }
  return json.dump(2);
}

}  // namespace shardscope::config
