#include "app/cli/completions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

namespace shardscope::cli {
namespace {

using Visit = std::function<void(const CommandText&)>;

void for_each_command(const CommandText& command, const Visit& visit) {
  visit(command);
  for (const CommandText& verb : command.verbs) for_each_command(verb, visit);
}

/// Name used in the scripts: "" for the program, "estimate zero2".
std::string path_of(const CommandText& command) {
  return fmt::format("{}", fmt::join(command.words.begin() + 1, command.words.end(), " "));
}

std::string words_of(const std::vector<CommandText>& verbs) {
  std::string out;
  for (const CommandText& verb : verbs) out += (out.empty() ? "" : " ") + verb.words.back();
  return out;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

/// Quoted by '...' for a shell.
std::string in_quotes(const std::string& text) { return "'" + replaced(text, "'", R"('\'')") + "'"; }

/// For a specification of _arguments, within '...': brackets and colons are escaped.
std::string in_zsh(std::string text) {
  for (const char* own : {"\\", "[", "]", ":"}) text = replaced(text, own, std::string("\\") + own);
  return replaced(text, "'", R"('\'')");
}

std::string zsh_values(const OptionText& option) {
  return option.choices.empty() ? std::string("_files") : fmt::format("({})", fmt::join(option.choices, " "));
}

std::string zsh_function(const CommandText& command) {
  std::string out = fmt::format("_{}() {{\n  local line state\n  _arguments -s -S -C", command.name("_"));
  for (const OptionText& option : command.options) {
    for (const std::string& name : option.names) {
      const bool long_name = name.starts_with("--");
      out +=
          fmt::format(" \\\n    '{}{}{}[{}]{}'", option.repeatable ? "*" : "", name,
                      option.value.empty() ? ""
                      : long_name          ? "="
                                           : "+",
                      in_zsh(option.description),
                      option.value.empty() ? std::string()
                                           : fmt::format(":{}:{}", in_zsh(option.value), zsh_values(option)));
    }
  }
  if (command.verbs.empty()) {
    for (const OptionText& argument : command.arguments)
      out += fmt::format(" \\\n    '{}:{}:{}'", argument.repeatable ? "*" : "",
                         in_zsh(argument.names.front()), zsh_values(argument));
    return out + "\n}\n\n";
  }
  out += " \\\n    '1:verb:->verb' '*::argument:->rest'\n  case $state in\n    verb)\n      local -a verbs=(";
  for (const CommandText& verb : command.verbs)
    out += fmt::format("\n        '{}:{}'", verb.words.back(), in_zsh(verb.description));
  out += ")\n      _describe -t verbs verb verbs ;;\n    rest)\n      case $line[1] in";
  for (const CommandText& verb : command.verbs)
    out += fmt::format("\n        {}) _{} ;;", verb.words.back(), verb.name("_"));
  return out + "\n      esac ;;\n  esac\n}\n\n";
}

/// Lines of fish for one command: only where its words were typed, and none of its verbs.
std::string fish_lines(const CommandText& command) {
  std::string condition;
  for (std::size_t i = 1; i < command.words.size(); ++i)
    condition += fmt::format("{}__fish_seen_subcommand_from {}", i > 1 ? "; and " : "", command.words[i]);
  if (!command.verbs.empty())
    condition += fmt::format("{}not __fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ",
                             words_of(command.verbs));
  const std::string head = fmt::format("complete -c {} -n {}", command.words.front(), in_quotes(condition));
  std::string out;
  for (const CommandText& verb : command.verbs)
    out += fmt::format("{} -f -a {} -d {}\n", head, verb.words.back(), in_quotes(verb.description));
  for (const OptionText& option : command.options) {
    out += head;
    for (const std::string& name : option.names)
      out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (!option.choices.empty())
      out += fmt::format(" -x -a {}", in_quotes(fmt::format("{}", fmt::join(option.choices, " "))));
    else if (!option.value.empty())
      out += " -r";
    out += " -d " + in_quotes(option.description) + "\n";
  }
  return out;
}

}  // namespace

std::string bash_completion(const CommandText& program) {
  std::string verbs, options, values, with_value;
  for_each_command(program, [&](const CommandText& command) {
    const std::string path = path_of(command);
    if (!command.verbs.empty())
      verbs += fmt::format("    '{}') verbs='{}' ;;\n", path, words_of(command.verbs));
    std::string names;
    for (const OptionText& option : command.options) {
      names += fmt::format("{}{}", names.empty() ? "" : " ", fmt::join(option.names, " "));
      for (const std::string& name : option.names) {
        if (!option.choices.empty())
          values += fmt::format("    '{} {}') COMPREPLY=($(compgen -W '{}' -- \"$cur\")); return ;;\n", path,
                                name, fmt::join(option.choices, " "));
        else if (!option.value.empty())
          with_value += fmt::format("{}'{} {}'", with_value.empty() ? "" : " | ", path, name);
      }
    }
    options += fmt::format("    '{}') options='{}' ;;\n", path, names);
  });
  constexpr const char* kScript = R"(# bash completion of {name}, made from its own help.
_{name}() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} path= verbs= options= word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    [[ $word == -- ]] && return  # another program's words follow
    verbs=
    case $path in
{verbs}    esac
    [[ " $verbs " == *" $word "* ]] && path=${{path:+$path }}$word
  done
  verbs=
  case $path in
{verbs}  esac
  case $path in
{options}  esac
  case "$path $prev" in
{values}    {with_value}) return ;;  # a file: bash's own completion
  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$cur"))
  elif [[ -n $verbs ]]; then
    COMPREPLY=($(compgen -W "$verbs" -- "$cur"))
  fi
}}
complete -o bashdefault -o default -F _{name} {name}
)";
  return fmt::format(kScript, fmt::arg("name", program.words.front()), fmt::arg("verbs", verbs),
                     fmt::arg("options", options), fmt::arg("values", values),
                     fmt::arg("with_value", with_value));
}

std::string zsh_completion(const CommandText& program) {
  const std::string& name = program.words.front();
  std::string out = fmt::format("#compdef {0}\n# zsh completion of {0}, made from its own help.\n\n", name);
  for_each_command(program, [&](const CommandText& command) { out += zsh_function(command); });
  // Autoloaded, the file is the function's body and runs with the first completion; sourced, it is
  // registered.
  return out +
         fmt::format("if [[ $funcstack[1] == _{0} ]]; then\n  _{0} \"$@\"\nelse\n  compdef _{0} {0}\nfi\n",
                     name);
}

std::string fish_completion(const CommandText& program) {
  std::string out = fmt::format("# fish completion of {}, made from its own help.\n", program.words.front());
  for_each_command(program, [&](const CommandText& command) { out += fish_lines(command); });
  return out;
}

}  // namespace shardscope::cli
