#include "app/cli/command_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

namespace shardscope::cli {
namespace {

/// "a" and "b" from a type "TEXT:{a,b}", as written by CLI::IsMember.
std::vector<std::string> choices_in(const std::string& type) {
  const std::size_t open = type.find('{'), close = type.find('}');
  std::vector<std::string> out;
  if (open == std::string::npos || close == std::string::npos) return out;
  for (std::size_t at = open; at < close;) {
    const std::size_t end = std::min(type.find(',', at + 1), close);
    out.push_back(type.substr(at + 1, end - at - 1));
    at = end;
  }
  return out;
}

OptionText option_text(const CLI::Option& option) {
  OptionText out;
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  if (out.names.empty()) out.names.push_back(option.get_name(true));
  const bool flag = option.get_type_size_max() == 0;
  if (!flag) {
    const std::string type = option.get_type_name();
    out.choices = choices_in(type);
    out.value = type.substr(0, type.find(':'));
  }
  out.description = option.get_description();
  out.default_value = option.get_default_str();
  out.required = option.get_required();
  out.repeatable = !flag && option.get_expected_max() > 1;
  return out;
}

CommandText text_of(const CLI::App& app, std::vector<std::string> words) {
  CommandText out;
  words.push_back(app.get_name());
  out.words = words;
  out.description = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    (option->nonpositional() ? out.options : out.arguments).push_back(option_text(*option));
  }
  for (const CLI::App* verb : app.get_subcommands(std::function<bool(const CLI::App*)>())) {
    if (!verb->get_group().empty()) out.verbs.push_back(text_of(*verb, words));
  }
  return out;
}

}  // namespace

std::string CommandText::name(const char* between) const {
  return fmt::format("{}", fmt::join(words, between));
}

CommandText command_text(const CLI::App& app) { return text_of(app, {}); }

}  // namespace shardscope::cli
