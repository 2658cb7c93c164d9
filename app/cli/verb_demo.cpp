// `demo`: a complete example without arguments. With a display the dashboard opens on the live run; without
// one the run leaves a recording, a report page and a screenshot of every panel.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "app/cli/artifacts.h"
#include "app/cli/process.h"
#include "app/cli/program_files.h"
#include "app/cli/say.h"
#include "app/cli/training_options.h"
#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;

struct DemoOptions {
  LaunchOptions launch;
  std::string out = "shardscope-demo";
  bool headless = false;
};

int demo(DemoOptions& options) {
  const bool window = !options.headless && has_display();
  if (!window) {
    say(stderr, "shardscope: {}; training without a window, pictures follow at the end\n",
        options.headless ? "--headless" : "no display (DISPLAY is not set)");
  }
  std::error_code error;
  fs::create_directories(options.out, error);
  if (error)
    throw UserError(
        fmt::format("--out {}: {}; choose a folder that can be written", options.out, error.message()));
  options.launch.config = data_root() + "/samples/demo.json";
  options.launch.record = options.out + "/demo.zscope";
  options.launch.overwrite = true;  // in this folder, which is the demo's own; only recordings are replaced
  options.launch.view = window;
  options.launch.label = fmt::format("{}, {} ranks", options.launch.model, options.launch.ranks);
  const LaunchResult result = launch(options.launch);
  const int code = report_end(result);
  if (code != 0) return code;

  say("recording    {}\n", fs::absolute(options.launch.record).string());
  const std::string html = options.out + "/report.html";
  write_report(options.launch.record, html);
  say("report       {}\n", fs::absolute(html).string());
  std::fflush(stdout);
  for (const std::string& path : write_screenshots(options.launch.record, options.out, "1600x900")) {
    say("screenshot   {}\n", fs::absolute(path).string());
  }
  if (interrupted()) {
    say(stderr, "shardscope: interrupted ({}): not all pictures were drawn\n", interrupt_name());
    return interrupt_code();
  }
  return 0;
}

}  // namespace

void add_demo(CLI::App& app, Action& action) {
  auto options = std::make_shared<DemoOptions>();
  options->launch.steps = 100;
  CLI::App* verb =
      app.add_subcommand("demo", "Train a small GPT with ZeRO-3 on 4 CPU ranks and watch it live");
  add_training_options(*verb, options->launch);
  verb->add_option("--out", options->out, "Folder for recording, report and screenshots")
      ->capture_default_str();
  verb->add_flag("--headless", options->headless, "No window even if there is a display");
  verb->callback([options, &action] { action = [options] { return demo(*options); }; });
}

}  // namespace shardscope::cli
