// Describes a command line error in one line: the wrong word, and a suggestion.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace shardscope::cli {

/// `app`: after its parse() threw `error`; argc, argv: its arguments.
[[nodiscard]] std::string parse_error_text(const CLI::App& app, const CLI::ParseError& error, int argc,
                                           char** argv);

}  // namespace shardscope::cli
