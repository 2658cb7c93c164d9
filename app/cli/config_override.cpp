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

nlohmann::json read_config(const std::string& path) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path))
    throw UserError(
        fmt::format("configuration {}: cannot be read; give an existing DeepSpeed JSON file", path));
  std::stringstream text;
  text << file.rdbuf();
  try {
    constexpr bool kThrow = true, kIgnoreComments = true;  // as the ranks read it
    auto config = nlohmann::json::parse(text.str(), nullptr, kThrow, kIgnoreComments);
    if (!config.is_object()) throw UserError(fmt::format("configuration {}: not a JSON object", path));
    return config;
  } catch (const nlohmann::json::parse_error& error) {
    const std::string head = text.str().substr(0, error.byte > 0 ? error.byte - 1 : 0);
    const auto line = 1 + std::count(head.begin(), head.end(), '\n');
    const auto last = head.rfind('\n');
    throw UserError(fmt::format("configuration {}: line {}, column {}: not valid JSON; mend it there", path,
                                line, head.size() - (last == std::string::npos ? 0 : last + 1) + 1));
  }
}

}  // namespace

std::string config_with(const std::string& path, const std::vector<std::string>& assignments) {
  nlohmann::json config = read_config(path);
  for (const std::string& assignment : assignments) {
    const auto equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UserError(
          fmt::format("--set {}: not KEY=VALUE; write for example zero_optimization.stage=3", assignment), 2);
    }
    std::string key = assignment.substr(0, equals);
    const std::string text = assignment.substr(equals + 1);
    nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
    if (value.is_discarded()) value = text;
    nlohmann::json* at = &config;
    std::stringstream parts(key);
    for (std::string part; std::getline(parts, part, '.');) {
      if (!at->is_object() && !at->is_null()) {
        throw UserError(fmt::format("--set {}: {} is no object in {}", assignment, part, path), 2);
      }
      at = &(*at)[part];
    }
    *at = std::move(value);
  }
  return config.dump(2);
}

TemporaryConfig::TemporaryConfig(const std::string& text, const std::string& of,
                                 const std::vector<std::string>& assignments) {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "shardscope-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw UserError(pattern + ": cannot be created; is the temporary folder writable?");
  folder_ = pattern;
  path_ =
      (fs::path(folder_) / (fs::path(of).filename().string() + (assignments.empty() ? "" : " with --set")))
          .string();
  if (!(std::ofstream(path_) << text)) throw UserError(path_ + ": cannot be written; is there room for it?");
}

TemporaryConfig::~TemporaryConfig() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace shardscope::cli
