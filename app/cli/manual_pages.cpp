#include "app/cli/manual_pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace shardscope::cli {
namespace {

/// Escapes text for roff: a backslash, a typed dash, and a dot or quote at a line's start are special.
std::string roff(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    line_begins = c == '\n';
  }
  return out;
}

std::string value_text(const OptionText& option) {
  if (!option.choices.empty()) return fmt::format("{}", fmt::join(option.choices, "|"));
  return option.value;
}

std::string list(const std::vector<OptionText>& options) {
  std::string out;
  for (const OptionText& option : options) {
    out += ".TP\n";
    for (std::size_t i = 0; i < option.names.size(); ++i)
      out += fmt::format("{}\\fB{}\\fR", i > 0 ? ", " : "", roff(option.names[i]));
    if (!option.value.empty()) out += fmt::format(" \\fI{}\\fR", roff(value_text(option)));
    out += "\n" + roff(option.description);
    if (!option.default_value.empty()) out += fmt::format(" (default: {})", roff(option.default_value));
    if (option.required && option.names.front().starts_with('-')) out += " (required)";
    if (option.description.empty() && option.default_value.empty() && !option.required) out += "\\&";
    out += "\n";
  }
  return out;
}

std::string synopsis(const CommandText& command) {
  std::string out = fmt::format(".B {}\n[\\fIOPTION\\fR]...", roff(command.name()));
  for (const OptionText& argument : command.arguments) {
    const std::string name = "\\fI" + roff(argument.names.front()) + "\\fR";
    out += " " + (argument.required ? name : "[" + name + "]") + (argument.repeatable ? "..." : "");
  }
  return out + "\n";
}

/// A section for each verb of a verb, or else the options.
std::string body(const CommandText& command) {
  std::string out;
  if (!command.arguments.empty()) out += ".SH ARGUMENTS\n" + list(command.arguments);
  out += ".SH OPTIONS\n" + list(command.options);
  for (const CommandText& verb : command.verbs) {
    out +=
        fmt::format(".SH \"{}\"\n{}.PP\n{}.\n", roff(verb.name()), synopsis(verb), roff(verb.description)) +
        list(verb.arguments) + list(verb.options);
  }
  return out;
}

std::string verb_page(const CommandText& verb, std::string_view version) {
  std::string title = verb.name("-");
  std::ranges::transform(title, title.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string usage = synopsis(verb);
  if (!verb.verbs.empty())
    usage = fmt::format(".B {}\n\\fIVERB\\fR [\\fIOPTION\\fR]...\n", roff(verb.name()));
  return fmt::format(
             ".TH {} 1 \"\" \"Shardscope {}\" \"Shardscope\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}.SH "
             "DESCRIPTION\n"
             "{}.\n",
             roff(title), roff(version), roff(verb.name("-")), roff(verb.description), usage,
             roff(verb.description)) +
         body(verb) +
         ".SH \"EXIT STATUS\"\nAs of every verb: see\n.BR shardscope (1).\n.SH \"SEE ALSO\"\n.BR shardscope "
         "(1)\n";
}

void replace(std::string& text, std::string_view what, std::string_view by) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) throw std::logic_error("manual page: has no " + std::string(what));
  text.replace(at, what.size(), by);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> manual_pages(const CommandText& program,
                                                              std::string_view frame,
                                                              std::string_view version) {
  std::string verbs;
  std::vector<std::pair<std::string, std::string>> pages(1);
  for (const CommandText& verb : program.verbs) {
    verbs += fmt::format(".TP\n.BR {} (1)\n{}\n", roff(verb.name("-")), roff(verb.description));
    pages.emplace_back(verb.name("-") + ".1", verb_page(verb, version));
  }
  std::string first(frame);
  replace(first, "@VERSION@", roff(version));
  replace(first, "@VERBS@\n", verbs);
  replace(first, "@OPTIONS@\n", list(program.options));
  pages.front() = {program.name() + ".1", first};
  return pages;
}

}  // namespace shardscope::cli
