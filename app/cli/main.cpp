// shardscope: one command, many verbs, in the manner of git. Links no OpenGL, no MPI.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "app/cli/verb.h"

int main(int argc, char** argv) {
  using namespace shardscope::cli;
  CLI::App app{"Shardscope: watch, stop and compare ZeRO training.", "shardscope"};
  app.set_version_flag("--version", SHARDSCOPE_VERSION);
  app.require_subcommand(1);
  app.footer("Every verb has its own --help. Documentation: docs/guide.md");
  Action action;
  add_demo(app, action);
  add_run(app, action);
  add_consolidate(app, action);
  add_ab(app, action);
  add_view(app, action);
  add_record(app, action);
  add_collect(app, action);
  add_reading_verbs(app, action);
  add_estimate(app, action);
  add_simulate(app, action);
  add_what_if(app, action);
  add_keys(app, action);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const CLI::App* where = &app;
    for (const CLI::App* verb : app.get_subcommands()) where = verb;
    if (where == &app && argc > 1 && argv[1][0] != '-') {
      fmt::print(stderr, "shardscope: {}: no such verb; `shardscope --help` lists them\n", argv[1]);
      return 2;
    }
    fmt::print(stderr, "shardscope: {}; see `shardscope {}--help`\n", error.what(),
               where == &app ? "" : where->get_name() + " ");
    return 2;
  }
  try {
    return action();
  } catch (const UserError& error) {
    fmt::print(stderr, "shardscope: {}\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "shardscope: {}\n", error.what());
    return 1;
  }
}
