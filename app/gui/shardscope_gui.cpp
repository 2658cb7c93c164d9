// shardscope-gui: the dashboard for a live run or recordings, in a window or as a picture.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/export/output_file.h"
#include "app/gui/model/app_state.h"
#include "app/gui/model/colour_vision.h"
#include "app/gui/platform/offscreen.h"
#include "app/gui/platform/png.h"
#include "app/gui/platform/window.h"
#include "instrumentation/error_text.h"
#include "instrumentation/plain_text.h"
#include "instrumentation/sockets.h"
#include "runtime/base/build_facts.h"
#include "runtime/config/option_checks.h"

namespace {

using namespace shardscope::gui;

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;
constexpr int kNoDisplay = 2;

/// Invalid command line.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Escapes text, which may contain foreign names.
void say(const std::string& text) {
  std::fprintf(stderr, "shardscope: %s\n", shardscope::instrumentation::plain_line(text).c_str());
}

struct Options {
  std::vector<std::string> files;
  std::string connect, key, screenshot, panel = "workspace", size = "1600x900", theme, layout = "Watch",
                                        state_dump, at, vision = "all";
  double scale = 0;
  double close_after_s = 0;
  bool frame_stats = false;
  bool sized = false;  ///< --size was given
};

struct Size {
  int width = 0, height = 0;
};

Size parse_size(const std::string& text) {
  Size size;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%dx%d%c", &size.width, &size.height, &rest) != 2 || size.width < 320 ||
      size.height < 200 || size.width > 16384 || size.height > 16384) {
    throw UsageError("--size '" + text +
                     "' is not a size; write WIDTHxHEIGHT from 320x200 to 16384x16384, as in 1600x900");
  }
  return size;
}

void check_panel(const Workspace& workspace, const std::string& panel) {
  if (panel == "workspace") return;
  std::string known = "workspace";
  for (const auto& view : workspace.registry().all()) {
    if (view->name() == panel) return;
    known += ", " + std::string(view->name());
  }
  throw UsageError("--panel '" + panel + "' is not known; use one of " + known);
}

void open_runs(AppState& app, const Options& options) {
  if (!options.connect.empty()) {
    try {
      (void)shardscope::instrumentation::endpoints_of(options.connect);
    } catch (const std::runtime_error& error) {
      throw UsageError(error.what());
    }
    app.run = Session::connect(options.connect, options.key);
    return;
  }
  if (options.files.empty()) {
    if (options.panel != "workspace" || !options.at.empty() || !options.screenshot.empty()) {
      throw UsageError(
          "nothing to show; give a recording (FILE.zscope), two to compare, or --connect ENDPOINT");
    }
    app.run = std::make_unique<Session>(shardscope::store::Store());
    app.start_page = true;
    return;
  }
  app.run = Session::open_file(options.files[0]);
  if (options.files.size() > 1) app.other = Session::open_file(options.files[1]);
}

void set_up(AppState& app, const Options& options) {
  const AppState::Turn turn = app.turn();
  app.set_layout(options.layout);
  if (!options.theme.empty()) {
    app.theme = theme_of(options.theme).value_or(ThemeKind::dark);
    app.theme_given = true;
  }
  if (app.other && options.layout == "Watch") app.set_layout("Compare");
  if (!options.at.empty()) {
    app.place_once();
    if (const std::string problem = go_to_text(app, options.at); !problem.empty())
      throw std::runtime_error("--at " + options.at + ": " + problem);
  }
}

/// Waits for a live run's data, so that the picture is not empty.
void wait_for_data(AppState& app) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::seconds(10);
  while (app.run->live() && Clock::now() < until) {
    app.run->poll(std::chrono::milliseconds(50));
    const auto link = app.run->link();
    if (link == shardscope::collector::Viewer::Link::live ||
        link == shardscope::collector::Viewer::Link::ended)
      break;
  }
  if (app.run->live() && !app.store().has_tables()) {
    throw std::runtime_error(
        "--connect " + app.run->source() + ": no run answered within 10 s; " +
        (app.run->control().note.empty() ? "is it listening there?" : app.run->control().note));
  }
}

void settle(Session& run) {
  if (!run.settle())
    std::fprintf(stderr, "shardscope: %s: %s; the picture is marked as partial\n", run.source().c_str(),
                 run.partial().c_str());
}

/// Simulates a colour blindness in the picture.
void look_with(Vision vision, std::vector<std::uint8_t>& rgba) {
  if (vision == Vision::all) return;
  std::unordered_map<Rgb, Rgb> known;  // a picture has few colours
  for (std::size_t i = 0; i + 3 < rgba.size(); i += 4) {
    const Rgb color = static_cast<Rgb>(rgba[i]) << 16 | static_cast<Rgb>(rgba[i + 1]) << 8 | rgba[i + 2];
    const auto [found, made] = known.try_emplace(color);
    if (made) found->second = seen(color, vision);
    for (std::size_t channel = 0; channel < 3; ++channel)
      rgba[i + channel] = static_cast<std::uint8_t>(found->second >> (16 - 8 * channel) & 255U);
  }
}

std::vector<std::string> theme_names() {
  std::vector<std::string> names;
  for (const ThemeKind theme : kThemes) names.emplace_back(name_of(theme));
  return names;
}

Vision vision_of(const std::string& name) {
  return name == "protanopia"     ? Vision::no_red
         : name == "deuteranopia" ? Vision::no_green
         : name == "tritanopia"   ? Vision::no_blue
                                  : Vision::all;
}

int take_screenshot(AppState& app, const Options& options) {
  const Size size = parse_size(options.size);
  shardscope::exporter::refuse_recording(options.screenshot);
  wait_for_data(app);
  settle(*app.run);
  if (app.other) settle(*app.other);
  set_up(app, options);
  // A wide picture is scaled like a high-resolution screen.
  const float automatic = size.width >= 3200 ? 2.0F : 1.0F;
  const float scale =
      (options.scale > 0 ? static_cast<float>(options.scale) : automatic) * layout_zoom(app.layout_name);
  Frame frame;
  check_panel(frame.workspace(), options.panel);
  Offscreen offscreen(size.width, size.height);
  auto picture = offscreen.render(frame, app, options.panel, scale);
  look_with(vision_of(options.vision), picture);
  write_png(options.screenshot, size.width, size.height, picture);
  if (!frame.font_problem().empty()) std::fprintf(stderr, "shardscope: %s\n", frame.font_problem().c_str());
  if (options.frame_stats) {
    constexpr int kFrames = 200;
    frame.times().clear();
    frame.measure_parts();
    for (int i = 0; i < kFrames; ++i) {
      ImGui::GetIO().DeltaTime = 1.0F / 60;
      frame.build(app, options.panel, 0);
    }
    std::printf("frames %d, build CPU ms: median %.3f, p95 %.3f\n", kFrames,
                static_cast<double>(frame.times().quantile(0.5)),
                static_cast<double>(frame.times().quantile(0.95)));
    std::printf("%s", frame.times().parts_text().c_str());
  }
  const AppState::Turn turn = app.turn();
  if (!options.state_dump.empty() &&
      !write_state(options.state_dump, state_json(app, frame.workspace().placed(), frame.count()))) {
    throw std::runtime_error("cannot write the state to " + options.state_dump);
  }
  return 0;
}

int run(const Options& options) {
  if (!options.state_dump.empty()) accept_dump_signal();
  AppState app;
  app.program_facts = shardscope::base::build_facts("Shardscope");
  if (options.screenshot.empty() && !have_display()) {
    std::fprintf(stderr,
                 "shardscope: no display: DISPLAY and WAYLAND_DISPLAY are not set; use --screenshot OUT.png, "
                 "or start it in a desktop session (ssh -X)\n");
    return kNoDisplay;
  }
  open_runs(app, options);
  if (!options.screenshot.empty()) return take_screenshot(app, options);
  const Size size = parse_size(options.size);
  set_up(app, options);
  WindowOptions window;
  window.width = size.width;
  window.height = size.height;
  window.sized = options.sized;
  {
    const Workspace probe;
    check_panel(probe, options.panel);
  }
  window.panel = options.panel;
  window.state_dump = options.state_dump;
  window.frame_stats = options.frame_stats;
  window.close_after_s = options.close_after_s;
  try {
    return run_window(app, window);
  } catch (const std::runtime_error& error) {
    say(error.what());
    return kNoDisplay;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App cli{"The Shardscope dashboard"};
  cli.add_option("files", options.files, "One recording, or two to compare; none: a page to choose on")
      ->expected(0, 2);
  cli.add_option("--connect", options.connect, "Collector of a live run, e.g. tcp://127.0.0.1:5711");
  cli.add_option("--key", options.key,
                 "Key file (default: SHARDSCOPE_KEY, else found by the endpoint; none: without)");
  cli.add_option("--screenshot", options.screenshot, "Write a picture instead of opening a window");
  cli.add_option("--panel", options.panel, "Panel to show alone; workspace is the whole window");
  cli.add_option("--size", options.size,
                 "Pixels, e.g. 1600x900 (a window: by default those of the last one)");
  cli.add_option("--scale", options.scale, "Device pixels per logical pixel in a picture (0: by size)");
  cli.add_option("--at", options.at, "Step (12), time (1.25s), rank (rank 3) or a copied link to show");
  cli.add_option("--theme", options.theme, "dark or light; dark-colour-blind or light-colour-blind")
      ->transform(CLI::IsMember(theme_names(), CLI::ignore_case));
  cli.add_option("--layout", options.layout, "Watch, Step, Memory, Compare, Presentation or Lecture")
      ->transform(CLI::IsMember(shardscope::gui::layout_names(), CLI::ignore_case));
  cli.add_option(
         "--vision", options.vision,
         "Show a picture as with colour blindness: protanopia, deuteranopia, tritanopia; all: as drawn")
      ->transform(CLI::IsMember({"all", "protanopia", "deuteranopia", "tritanopia"}));
  cli.add_option("--state-dump", options.state_dump,
                 "Write the window's state to this JSON file, each second");
  cli.add_flag("--frame-stats", options.frame_stats,
               "Print the CPU time of building a frame, and of each panel in it");
  cli.add_option("--close-after", options.close_after_s, "Close the window after N seconds");
  cli.set_version_flag("--version", [] { return shardscope::base::build_facts("shardscope-gui"); });
  shardscope::config::check_option_values(cli);
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return cli.exit(error);
    say(std::string(error.what()) + "; see shardscope view --help");
    return kWrongUsage;
  }
  options.sized = cli.count("--size") > 0;
  try {
    return run(options);
  } catch (const UsageError& error) {
    say(error.what());
    return kWrongUsage;
  } catch (const std::exception& error) {
    say(shardscope::instrumentation::error_text(error));
    return kFailed;
  }
}
