// shardscope: one command with many verbs, like git. Links no OpenGL, no MPI.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

#include "app/cli/command_line.h"
#include "app/cli/help_format.h"
#include "app/cli/parse_error.h"
#include "app/cli/say.h"
#include "instrumentation/error_text.h"
#include "runtime/config/option_checks.h"

namespace {

/// The exit code after `code`: fails also where output could not be written, because a full disk would
/// lose it silently.
int finished(int code) {
  errno = 0;
  const bool written = std::cout.flush().good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (code != 0 || written) return code;
  shardscope::cli::say(stderr, "shardscope: standard output: not all of it could be written{}{}\n",
                       errno != 0 ? ": " : "", errno != 0 ? std::strerror(errno) : "");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace shardscope::cli;
  CLI::App app{"Shardscope: watch, stop and compare ZeRO training.", "shardscope"};
  app.formatter(std::make_shared<HelpFormat>());  // before the verbs, which inherit it
  Action action;
  add_verbs(app, action);
  shardscope::config::check_option_values(app);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return finished(app.exit(error));  // --help, --version
    say(stderr, "shardscope: {}\n", parse_error_text(app, error, argc, argv));
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
