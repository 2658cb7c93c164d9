#include "app/cli/command_line.h"

#include <CLI/CLI.hpp>

#include "app/cli/build_facts.h"

namespace shardscope::cli {

void add_verbs(CLI::App& app, Action& action) {
  app.set_version_flag("--version", version_text);
  app.require_subcommand(1);
  app.footer("Every verb has its own --help. Documentation: docs/guide.md");
  add_demo(app, action);
  add_run(app, action);
  add_consolidate(app, action);
  add_ab(app, action);
  add_view(app, action);
  add_watch(app, action);
  add_attach(app, action);
  add_record(app, action);
  add_collect(app, action);
  add_reading_verbs(app, action);
  add_estimate(app, action);
  add_simulate(app, action);
  add_what_if(app, action);
  add_why(app, action);
  add_keep(app, action);
  add_check(app, action);
  add_keys(app, action);
  add_completion(app, action);
}

}  // namespace shardscope::cli
