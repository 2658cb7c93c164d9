// `why`: why a run hangs, live or recorded.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/analysis/flight_compare.h"
#include "app/analysis/hang/hang.h"
#include "app/analysis/nccl_ras.h"
#include "app/analysis/quantity_text.h"
#include "app/cli/checks.h"
#include "app/cli/live_look.h"
#include "app/cli/rank_list.h"
#include "app/cli/rank_stacks.h"
#include "app/cli/say.h"
#include "app/cli/torch_dumps.h"
#include "app/cli/verb.h"
#include "app/collector/viewer.h"
#include "app/store/framework.h"
#include "app/store/recording.h"

namespace shardscope::cli {
namespace {

struct WhyOptions {
  std::string run, key;
  std::optional<double> quiet_s;
  std::optional<double> wait_s;
  bool json = false, stacks = false;
  std::string ranks;                 ///< whose stacks; empty: ranks in the diagnosis
  std::vector<std::string> ras;      ///< files: an answer of NCCL's RAS, and a later one
  std::vector<std::string> flights;  ///< files or folders: dumps of PyTorch's Flight Recorder
};

analysis::RasAnswer ras_answer(const std::string& path) {
  // With ten thousand ranks it is a few MB.
  constexpr std::size_t kMost = std::size_t{64} << 20;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMost + 1, '\0');
  if (!file || std::filesystem::is_directory(path))
    throw UserError(fmt::format("--ras {}: cannot be read; name the file with the answer", path));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMost)
    throw UserError(fmt::format("--ras {}: is larger than 64 MiB: no answer is", path));
  try {
    return analysis::parse_ras(text);
  } catch (const std::invalid_argument& error) {
    throw UserError(fmt::format("--ras {}: {}", path, error.what()));
  }
}

/// NCCL's own report, for any run.
int why_by_ras(const WhyOptions& options) {
  const analysis::RasAnswer answer = ras_answer(options.ras.front());
  const std::optional<analysis::RasAnswer> later =
      options.ras.size() > 1 ? std::optional(ras_answer(options.ras[1])) : std::nullopt;
  if (options.json) {
    say_text(stdout, instrumentation::plain_json(analysis::ras_json(answer, later)) + "\n");
    return 0;
  }
  say("NCCL's RAS{}:\n", answer.version.empty() ? "" : " (NCCL " + answer.version + ")");
  for (const std::string& line : analysis::ras_lines(answer, later)) say("  {}\n", line);
  return 0;
}

/// PyTorch's records of the collectives of any run.
int why_by_flight_recorder(const WhyOptions& options) {
  const TorchDumps read = read_torch_dumps(options.flights);
  for (const std::string& problem : read.problems) say(stderr, "shardscope: --flight-recorder {}\n", problem);
  const analysis::FlightComparison comparison = analysis::compare_flights(read.dumps, read.texts);
  if (options.json) {
    say_text(stdout,
             instrumentation::plain_json(analysis::flight_json(comparison, read.dumps, read.texts)) + "\n");
    return 0;
  }
  const std::vector<std::string> lines = analysis::flight_lines(comparison, read.texts);
  for (const std::string& line : lines) say("{}{}\n", &line == lines.data() ? "" : "  ", line);
  return 0;
}

/// For a live attached run that hangs: the script line of each side, for ranks that answer at once.
std::vector<ScriptLine> lines_of_sides(collector::Viewer& viewer, store::Store& store,
                                       const analysis::Hang& hang) {
  constexpr std::chrono::seconds kPatience{2};
  // A program of the C interface has answers of its own; threads of this runtime run no script.
  if (!hang.hung || !store.has_tables() || store::framework_of(store.tables()) == store::Framework::zero)
    return {};
  const std::vector<std::uint32_t> ranks = ranks_of_sides(hang);
  std::vector<ScriptLine> out;
  if (ranks.empty()) return out;
  try {
    for (const RankStacks& one : ask_for_stacks(viewer, store, ranks, kPatience)) {
      if (!one.answered) continue;
      if (auto line = script_line(one.rank, one.text)) out.push_back(std::move(*line));
    }
  } catch (const UserError& error) {
    // A key that may only view: the diagnosis has no stacks then.
    say(stderr, "shardscope: the ranks were not asked for their stacks: {}\n", error.what());
  }
  return out;
}

/// What the end of a live run's events means. Without its collector nothing is known of now.
analysis::Watched watched_of(const LiveLook& look) {
  constexpr std::int64_t kQuiet_ns = 1'500'000'000;  // longer than the delivery of events
  if (look.link != collector::Viewer::Link::live) return analysis::Watched::recorded;
  return look.quiet || look.quiet_ns >= kQuiet_ns ? analysis::Watched::quiet : analysis::Watched::running;
}

int why(const WhyOptions& options) {
  if (!options.ras.empty()) return why_by_ras(options);
  if (!options.flights.empty()) return why_by_flight_recorder(options);
  if (options.run.empty())
    throw UserError("run is required, or --ras FILE, or --flight-recorder FILES; see `shardscope why --help`",
                    2);
  store::Store store;
  std::int64_t quiet_ns = 0;
  analysis::Watched watched = analysis::Watched::recorded;
  std::optional<collector::Viewer> viewer;
  if (options.stacks && !is_endpoint(options.run))
    throw UserError("--stacks: a recording has none; give the endpoint of a live run", 2);
  if (is_endpoint(options.run)) {
    viewer.emplace(options.run, options.key);
    const LiveLook look = watch_until_quiet(options.run, *viewer, store, options.quiet_s, options.wait_s);
    watched = watched_of(look);
    if (watched != analysis::Watched::recorded) quiet_ns = look.quiet_ns;
    if (look.link == collector::Viewer::Link::lost)
      say(stderr,
          "shardscope: {}: connection to the collector lost; what follows is of the events that had "
          "arrived\n",
          options.run);
  } else {
    store::RecordingInfo info;
    store = store::open_recording(options.run, &info);
    for (const std::string& problem : info.problems)
      say(stderr, "shardscope: {}: {}\n", options.run, problem);
  }
  // A limit that the user has set decides; without one the run's own pace does.
  std::optional<std::int64_t> long_ns;
  if (options.quiet_s) long_ns = static_cast<std::int64_t>(*options.quiet_s * 1e9);
  const analysis::Hang hang = analysis::diagnose_hang(store, watched, quiet_ns, long_ns);
  std::vector<RankStacks> stacks;
  if (options.stacks) {
    const std::vector<std::uint32_t> ranks =
        options.ranks.empty() ? analysis::named_ranks(hang) : ranks_of(store, options.ranks);
    try {
      stacks = ask_for_stacks(*viewer, store, ranks);
    } catch (const UserError& error) {
      throw UserError(std::string("--stacks: ") + error.what());
    }
  }
  const std::vector<ScriptLine> lines =
      viewer && !options.stacks ? lines_of_sides(*viewer, store, hang) : std::vector<ScriptLine>();
  if (options.json) {
    say_text(stdout,
             instrumentation::plain_json(with_lines(with_stacks(analysis::hang_json(hang), stacks), lines)));
    return 0;
  }
  say_text(stdout, instrumentation::plain_lines(analysis::hang_text(hang) + text_of(lines)));
  for (const RankStacks& one : stacks) {
    say("\nrank {}: ", one.rank);
    say_text(stdout, instrumentation::plain_lines(one.text) + "\n");
  }
  return 0;
}

}  // namespace

void add_why(CLI::App& app, Action& action) {
  auto options = std::make_shared<WhyOptions>();
  CLI::App* verb = app.add_subcommand(
      "why", "Why a run hangs: who waits in which collective for whom, and what the missing rank does");
  verb->add_option("run", options->run,
                   "Endpoint of a collector (tcp://..., ipc://...) or recording (*.zscope)");
  verb->add_option("--key", options->key, kKeyIfAskedText);
  verb->add_option(
          "--quiet", options->quiet_s,
          "Seconds without an event after which a live run counts as hung (default: three of its steps, "
          "at least 1.5)")
      ->check(kAboveZero);
  verb->add_option("--wait", options->wait_s,
                   "Seconds to watch a live run at most (default: 20, or as long as it takes to tell a hang "
                   "from a long "
                   "step)")
      ->check(kAboveZero);
  CLI::Option* stacks =
      verb->add_flag("--stacks", options->stacks,
                     "Of a live run: ask the ranks where their threads are (with a key that may "
                     "control): Python frames of attached runs, native ones of this runtime");
  verb->add_option(
          "--ranks", options->ranks,
          "Whose stacks, like 0,4-7 (default: the rank that others wait for, and the first that waits)")
      ->needs(stacks);
  verb->add_flag("--json", options->json, "For programs");
  CLI::Option* ras = verb->add_option("--ras", options->ras,
                                      "Instead of a run: a file with an answer of NCCL's RAS (ncclras, or "
                                      "ncclras -f json), and one with a later answer")
                         ->expected(1, 2);
  CLI::Option* flights =
      verb->add_option(
              "--flight-recorder", options->flights,
              "Instead of a run: dumps of PyTorch's Flight Recorder, one a rank (nccl_trace_rank_0, ...), "
              "or their folder")
          ->expected(1, -1);
  // A run, or RAS, or the Flight Recorder.
  verb->get_option("run")->excludes(ras)->excludes(flights);
  ras->excludes(flights);
  verb->callback([options, &action] { action = [options] { return why(*options); }; });
}

}  // namespace shardscope::cli
