#include "app/cli/config_override.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

nlohmann::json parsed(const std::string& text, const std::string& path) {
  try {
    constexpr bool kThrow = true, kIgnoreComments = true;  // as the ranks read it
    auto config = nlohmann::json::parse(text, nullptr, kThrow, kIgnoreComments);
    if (!config.is_object()) throw UserError(fmt::format("configuration {}: not a JSON object", path));
    return config;
  } catch (const nlohmann::json::parse_error& error) {
    const std::string head = text.substr(0, error.byte > 0 ? error.byte - 1 : 0);
    const auto line = 1 + std::count(head.begin(), head.end(), '\n');
    const auto last = head.rfind('\n');
    throw UserError(fmt::format("configuration {}: line {}, column {}: not valid JSON; mend it there", path,
                                line, head.size() - (last == std::string::npos ? 0 : last + 1) + 1));
  }
}

}  // namespace

std::string config_with(const std::string& path, const std::vector<std::string>& assignments) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path))
    throw UserError(
        fmt::format("configuration {}: cannot be read; give an existing DeepSpeed JSON file", path));
  std::stringstream text;
  text << file.rdbuf();
  return config_text_with(text.str(), path, assignments);
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
    const std::string given = assignment.substr(equals + 1);
    nlohmann::json value = nlohmann::json::parse(given, nullptr, false);
    if (value.is_discarded()) value = given;
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
