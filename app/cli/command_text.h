// Names and help texts of verbs and options, read from the CLI11 definitions; input of manual_pages.h and
// completions.h.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shardscope::cli {

struct OptionText {
  std::vector<std::string> names;    ///< with dashes; for a positional argument its name
  std::string value;                 ///< its value's type, as in --help; empty: a flag
  std::vector<std::string> choices;  ///< all possible values, where they are few
  std::string description, default_value;
  bool required = false, repeatable = false;
};

struct CommandText {
  std::vector<std::string> words;  ///< shardscope, run
  std::string description;
  std::vector<OptionText> options;
  std::vector<OptionText> arguments;  ///< in order of position
  std::vector<CommandText> verbs;     ///< in the order of --help, without hidden ones

  /// The words, joined by `between`.
  [[nodiscard]] std::string name(const char* between = " ") const;
};

[[nodiscard]] CommandText command_text(const CLI::App& app);

}  // namespace shardscope::cli
