// shardscope: one command, many verbs, in the manner of git. Links no OpenGL, no MPI.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <utility>

#include "app/cli/command_line.h"
#include "app/cli/say.h"
#include "instrumentation/error_text.h"
#include "runtime/config/option_checks.h"

namespace {

/// The exit code of what ended with `code`: what was printed must have arrived too, or a full disk would take
/// it in silence.
int finished(int code) {
  errno = 0;
  const bool written = std::cout.flush().good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (code != 0 || written) return code;
  shardscope::cli::say(stderr, "shardscope: standard output: not all of it could be written{}{}\n",
                       errno != 0 ? ": " : "", errno != 0 ? std::strerror(errno) : "");
  return 1;
}

/// The last of the verbs that were named, and the word behind it ("": none).
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

}  // namespace

int main(int argc, char** argv) {
  using namespace shardscope::cli;
  CLI::App app{"Shardscope: watch, stop and compare ZeRO training.", "shardscope"};
  Action action;
  add_verbs(app, action);
  shardscope::config::check_option_values(app);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return finished(app.exit(error));  // --help, --version
    const auto [where, word] = last_named(app, argc, argv);
    std::string verb;
    for (const CLI::App* at = where; at != &app; at = at->get_parent()) verb = at->get_name() + " " + verb;
    if (where->get_require_subcommand_min() > 0 && !word.empty()) {
      say(stderr, "shardscope: {}{}: no such verb; `shardscope {}--help` lists them\n", verb, word, verb);
      return 2;
    }
    say(stderr, "shardscope: {}; see `shardscope {}--help`\n", error.what(), verb);
    return 2;
  }
  try {
    return finished(action());
  } catch (const UserError& error) {
    say(stderr, "shardscope: {}\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    say(stderr, "shardscope: {}\n", shardscope::instrumentation::error_text(error));
    return 1;
  }
}
