#include "app/cli/parse_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/config/json_section.h"

namespace shardscope::cli {
namespace {

/// The last verb on the command line, and the word after it ("": none).
std::pair<const CLI::App*, std::string> last_named(const CLI::App& app, int argc, char** argv) {
  const CLI::App* where = &app;
  int next = 1;
  for (bool deeper = true; deeper;) {
    deeper = false;
    for (const CLI::App* verb : where->get_subcommands()) {
      where = verb;
      ++next;
      deeper = true;
    }
  }
  return {where, next < argc && argv[next][0] != '-' ? argv[next] : ""};
}

std::string hint(const std::string& word, const std::set<std::string>& known) {
  const std::string near = config::nearest_key(word, known);
  return near.empty() ? "" : "; did you mean " + near + "?";
}

std::set<std::string> verbs_of(const CLI::App& app) {
  std::set<std::string> names;
  for (const CLI::App* verb : app.get_subcommands(std::function<bool(const CLI::App*)>()))
    if (!verb->get_group().empty()) names.insert(verb->get_name());
  return names;
}

std::set<std::string> options_of(const CLI::App& app) {
  std::set<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.insert("--" + name);
    for (const std::string& name : option->get_snames()) names.insert("-" + name);
  }
  return names;
}

/// For words that are neither options nor arguments.
std::string extras_text(const CLI::App& app, const CLI::App& verb) {
  const std::vector<std::string> extra = app.remaining(true);
  const auto option =
      std::ranges::find_if(extra, [](const std::string& word) { return word.starts_with('-'); });
  const std::string all = fmt::format("{}", fmt::join(extra, " "));
  if (option == extra.end()) return all + ": not expected";
  return all + ": unknown" + hint(option->substr(0, option->find('=')), options_of(verb));
}

/// "--model: At Most 1 required but received 2".
std::string times_text(const std::string& text) {
  constexpr std::string_view kWords = ": At Most 1 required but received ";
  const std::size_t at = text.find(kWords);
  if (at == std::string::npos) return text;
  const std::string times = text.substr(at + kWords.size());
  return text.substr(0, at) + " is given " + (times == "2" ? "twice" : times + " times") + "; give it once";
}

}  // namespace

std::string parse_error_text(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const auto [where, word] = last_named(app, argc, argv);
  std::string verb;
  for (const CLI::App* at = where; at != &app; at = at->get_parent()) verb = at->get_name() + " " + verb;
  if (where->get_require_subcommand_min() > 0 && !word.empty()) {
    return fmt::format("{}{}: no such verb{}; `shardscope {}--help` lists them", verb, word,
                       hint(word, verbs_of(*where)), verb);
  }
  const bool extras = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  return fmt::format("{}; see `shardscope {}--help`",
                     extras ? extras_text(app, *where) : times_text(error.what()), verb);
}

}  // namespace shardscope::cli
