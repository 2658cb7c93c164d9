// `view`: executes the dashboard program with its own options, so that this one links no OpenGL.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "app/analysis/panel_names.h"
#include "app/cli/checks.h"
#include "app/cli/process.h"
#include "app/cli/program_files.h"
#include "app/cli/verb.h"

namespace shardscope::cli {

void add_view(CLI::App& app, Action& action) {
  struct ViewOptions {
    std::vector<std::string> sources;
    std::string key, screenshot, panel, size, at, theme, layout;
  };
  auto options = std::make_shared<ViewOptions>();
  CLI::App* verb =
      app.add_subcommand("view", "The dashboard on a live run, a recording, or two recordings side by side");
  verb->add_option(
          "source", options->sources,
          "Endpoint (tcp://host:port) or recording; two recordings are compared; none: choose in the window")
      ->expected(0, 2);
  verb->add_option("--key", options->key, kKeyText);
  verb->add_option("--screenshot", options->screenshot, "Render to this PNG without a window and end");
  verb->add_option("--panel", options->panel,
                   fmt::format("Panel to show alone; workspace is the whole window: {}",
                               fmt::join(analysis::kPanelNames, ", ")));
  verb->add_option("--size", options->size, "Size of the picture or window, e.g. 1600x900");
  verb->add_option("--at", options->at, "Step (12), time (1.25s), rank ('rank 3') or copied link to show");
  verb->add_option("--theme", options->theme, "dark or light; dark-colour-blind or light-colour-blind");
  verb->add_option("--layout", options->layout, "watch, step, memory, compare, presentation or lecture");
  verb->callback([options, &action] {
    action = [options]() -> int {
      std::vector<std::string> command = {sibling_program("shardscope-gui")};
      for (const std::string& source : options->sources) {
        if (source.find("://") != std::string::npos) command.emplace_back("--connect");
        command.push_back(source);
      }
      const auto pass = [&](const char* name, const std::string& value) {
        if (value.empty()) return;
        command.emplace_back(name);
        command.push_back(value);
      };
      pass("--key", options->key);
      pass("--screenshot", options->screenshot);
      pass("--panel", options->panel);
      pass("--size", options->size);
      pass("--at", options->at);
      pass("--theme", options->theme);
      pass("--layout", options->layout);
      std::vector<char*> argv;
      for (std::string& part : command) argv.push_back(part.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      throw UserError(fmt::format("{}: cannot be started", command[0]));
    };
  });
}

}  // namespace shardscope::cli
