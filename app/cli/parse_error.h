// What is wrong with a command line, in one line: which word, and what was perhaps meant.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace shardscope::cli {

/// `app`: as its parse() left it when it threw `error`; argc, argv: what it parsed.
[[nodiscard]] std::string parse_error_text(const CLI::App& app, const CLI::ParseError& error, int argc,
                                           char** argv);

}  // namespace shardscope::cli
