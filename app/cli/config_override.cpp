#include "app/cli/config_override.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/cli/verb.h"
#include "runtime/base/open_file.h"
#include "runtime/config/parse_json.h"

namespace shardscope::cli {
namespace {

nlohmann::json parsed(const std::string& text, const std::string& name) {
  nlohmann::json config = config::parse_json(text, name);
  if (!config.is_object()) throw UserError(fmt::format("configuration {}: not a JSON object", name));
  return config;
}

/// VALUE of KEY=VALUE: JSON, or else a string.
nlohmann::json value_of(const std::string& assignment, const std::string& given) {
  try {
    return nlohmann::json::parse(given);
  } catch (const nlohmann::json::parse_error&) {
    return given;
  } catch (const nlohmann::json::out_of_range&) {
    throw UserError(
        fmt::format(
            "--set {}: holds a number beyond every one that a configuration can hold; give a smaller one",
            assignment),
        2);
  }
}

}  // namespace

std::string config_with(const std::string& path, const std::vector<std::string>& assignments) {
  std::string text;
  try {
    text = base::read_file(path);
  } catch (const base::FileError& error) {
    throw UserError(fmt::format("configuration {}: {}", path, error.what()));
  }
  return config_text_with(text, path, assignments);
}

std::string config_text_with(const std::string& text, const std::string& name,
                             const std::vector<std::string>& assignments) {
  nlohmann::json config = parsed(text, name);
  for (const std::string& assignment : assignments) {
    const auto equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UserError(
          fmt::format("--set {}: not KEY=VALUE; write for example zero_optimization.stage=3", assignment), 2);
    }
    std::string key = assignment.substr(0, equals);
    nlohmann::json value = value_of(assignment, assignment.substr(equals + 1));
    nlohmann::json* at = &config;
    std::stringstream parts(key);
    std::string before;
    for (std::string part; std::getline(parts, part, '.');) {
      if (!at->is_object() && !at->is_null()) {
        throw UserError(
            fmt::format("--set {}: {} is no object in {}, it has no {}", assignment, before, name, part), 2);
      }
      before += (before.empty() ? "" : ".") + part;
      at = &(*at)[part];
    }
    *at = std::move(value);
  }
  return config.dump(2);
}

TemporaryConfig::TemporaryConfig(const std::string& text, const std::string& of,
                                 const std::vector<std::string>& assignments) {
  path_ = folder_.file("config.json");
  name_ = of + (assignments.empty() ? "" : " with --set");
  if (!(std::ofstream(path_) << text)) throw UserError(path_ + ": cannot be written; is there room for it?");
}

}  // namespace shardscope::cli
