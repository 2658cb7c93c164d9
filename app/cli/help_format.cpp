#include "app/cli/help_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace shardscope::cli {
namespace {

std::string names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  return fmt::format("{}", fmt::join(names, " or "));
}

}  // namespace

std::string value_words(const std::string& type) {
  const std::size_t colon = type.find(':');
  const std::string base = type.substr(0, colon);
  const std::string check = colon == std::string::npos ? std::string() : type.substr(colon + 1);
  if (const std::size_t open = check.find('{'); open != std::string::npos) {
    std::string words = check.substr(open + 1, check.rfind('}') - open - 1);
    for (char& c : words) c = c == ',' ? '|' : c;
    return words;
  }
  const bool number = base == "INT" || base == "UINT" || base == "FLOAT";
  const std::size_t range = check.find("in ["), dash = check.find(" - ", range);
  if (range != std::string::npos && dash != std::string::npos) {
    return fmt::format("N from {} to {}", check.substr(range + 4, dash - range - 4),
                       check.substr(dash + 3, check.find(']', dash) - dash - 3));
  }
  if (number) return check == "POSITIVE" ? "N above 0" : "N";
  return check.empty() ? base : check;
}

std::string HelpFormat::make_option_name(const CLI::Option* option, bool is_positional) const {
  if (is_positional) return option->get_name(true, false);
  std::vector<std::string> names;
  for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return fmt::format("{}", fmt::join(names, ","));
}

std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  std::string out;
  if (option->get_type_size() != 0) {
    if (const std::string value = value_words(option->get_type_name()); !value.empty()) out += " " + value;
    if (option->get_expected_max() > 1) out += " ...";
    if (!option->get_default_str().empty()) out += " (default " + option->get_default_str() + ")";
    if (option->get_required()) out += " (required)";
  }
  if (!option->get_needs().empty()) out += " (with " + names_of(option->get_needs()) + ")";
  if (!option->get_excludes().empty()) out += " (not with " + names_of(option->get_excludes()) + ")";
  return out;
}

std::string HelpFormat::make_option_usage(const CLI::Option* option) const {
  const std::string name = make_option_name(option, true) + (option->get_expected_max() > 1 ? "..." : "");
  return option->get_required() ? name : "[" + name + "]";
}

}  // namespace shardscope::cli
