// `what-if`: replays a recorded run on a virtual clock, with other settings. The cost model is fitted to
// the recording first, and its result for the recorded settings is shown beside the recorded figures.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/block_interval.h"
#include "app/analysis/digest.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/pace.h"
#include "app/analysis/summary.h"
#include "app/cli/attached_what_if.h"
#include "app/cli/checks.h"
#include "app/cli/comparison_text.h"
#include "app/cli/config_override.h"
#include "app/cli/made_runs.h"
#include "app/cli/modelled_run.h"
#include "app/cli/process.h"
#include "app/cli/replayed_run.h"
#include "app/cli/retention_options.h"
#include "app/cli/say.h"
#include "app/cli/verb.h"
#include "app/cli/what_if_search.h"
#include "app/store/names.h"
#include "app/store/recording.h"

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;
namespace ev = shardscope::instrumentation;

struct WhatIfOptions {
  ReplayOptions replay;
  SearchOptions search;
  std::optional<std::int64_t> steps;
  std::string out;
  bool searched = false, json = false;
};

/// For a comparison with a verdict; a search compares medians, and plays many times.
constexpr std::int64_t kStepsOfVerdict = analysis::kFewestForInterval + 1;

std::string link_text(const std::optional<analysis::LinkPace>& link) {
  if (!link) return "-";
  return fmt::format("{:.3g} GB/s + {:.3g} us (±{:.0f} %)", link->gb_per_s, link->latency_us,
                     link->error_pct);
}

nlohmann::json link_json(const std::optional<analysis::LinkPace>& link) {
  if (!link) return nullptr;
  return {{"gb_per_s", link->gb_per_s},
          {"latency_us", link->latency_us},
          {"transfers", link->transfers},
          {"error_pct", link->error_pct}};
}

/// By pool, the maximum over the ranks.
nlohmann::json peaks_json(const analysis::Summary& summary) {
  std::map<std::string, std::int64_t> peaks;
  for (const analysis::RankSummary& rank : summary.ranks) {
    for (const auto& [pool, sample] : rank.memory_peak) {
      std::int64_t& peak = peaks[store::name_of(pool)];
      peak = std::max(peak, sample.total());
    }
  }
  return peaks;
}

/// Given options that an attached run does not support, by name.
std::vector<const char*> options_of_own_runs(const WhatIfOptions& options) {
  const ReplayOptions& replay = options.replay;
  std::vector<const char*> given;
  const auto add = [&](bool is_given, const char* name) {
    if (is_given) given.push_back(name);
  };
  add(options.searched, "--search");
  add(replay.ranks > 0, "--ranks");
  add(replay.ranks_per_node > 0, "--ranks-per-node");
  add(!replay.link.empty(), "--link");
  add(!replay.node_link.empty(), "--node-link");
  add(!replay.host_link.empty(), "--host-link");
  add(replay.matrix_tflops.has_value(), "--matrix-tflops");
  add(replay.trial, "--trial");
  add(!replay.model.empty(), "--model");
  add(options.steps.has_value(), "--steps");
  add(!options.out.empty(), "-o");
  return given;
}

/// The answer for a run that another framework trained; nullopt for a run of this runtime.
std::optional<int> of_attached_run(const WhatIfOptions& options) {
  store::RecordingInfo info;
  const store::Store store = store::open_recording(options.replay.recording, &info);
  if (!store.has_tables() || store.tables().framework.empty()) return std::nullopt;
  for (const std::string& problem : info.problems)
    say(stderr, "shardscope: {}: {}\n", options.replay.recording, problem);
  AttachedQuestion question{options.replay.recording, options.replay.set, options_of_own_runs(options),
                            options.json};
  return attached_what_if(store, question);
}

int what_if(const WhatIfOptions& options) {
  if (const auto answered = of_attached_run(options)) return *answered;
  if (options.searched) {
    install_interrupt_handler();
    SearchOptions search = options.search;
    search.replay = options.replay;
    search.json = options.json;
    return search_settings_of(search);
  }
  std::error_code ignored;  // for a file that does not exist yet
  if (!options.out.empty() && fs::equivalent(options.out, options.replay.recording, ignored)) {
    throw UserError(fmt::format(
        "-o {}: is the recording that is read, which this would replace; choose another name", options.out));
  }
  keep_made_run("-o", options.out);
  install_interrupt_handler();
  ReplayedRun run(options.replay);
  const analysis::Pace& pace = run.pace();
  const Measured& a = run.modelled();
  const TemporaryConfig changed = run.changed();
  run.set_machine(changed);
  const std::string path = run.play(changed);
  const Measured b = read_measured(path);
  run.check_links(b.pace);
  const ev::RunTables& tables = run.recorded().tables();
  const std::uint32_t ranks = run.ranks();
  const analysis::Rates &fitted = run.fitted(), &rates = run.rates();
  if (pace.worker_ms <= 0 && b.pace.worker_ms > 0) {
    say(stderr,
        "shardscope: warning: the changed run updates parameters on the CPU, which the recorded one did not: "
        "{:.3g} GB/s of host memory for each rank are assumed\n",
        rates.host_memory_gb_per_s);
  }
  if (!options.out.empty()) {
    std::error_code error;
    fs::copy_file(path, options.out, fs::copy_options::overwrite_existing, error);
    if (error)
      throw UserError(
          fmt::format("-o {}: {}; choose a file that can be written", options.out, error.message()));
  }

  const analysis::Digest digest_a = analysis::digest_of(a.store), digest_b = analysis::digest_of(b.store);
  const analysis::Summary summary_a = analysis::summarize(a.store, digest_a),
                          summary_b = analysis::summarize(b.store, digest_b);
  const analysis::Comparison comparison =
      analysis::compare({{&a.store, &summary_a, &digest_a}}, {{&b.store, &summary_b, &digest_b}});
  if (interrupted()) {
    throw UserError(fmt::format("interrupted ({}): nothing is compared", interrupt_name()), interrupt_code());
  }
  const double predicted = run.predicted_ms(b.pace.step_ms);
  const double change_pct = 100 * (predicted / pace.step_ms - 1);
  const double model_error = run.model_error_pct();
  if (options.json) {
    nlohmann::json out{{"recording", options.replay.recording},
                       {"recorded",
                        {{"world", tables.world},
                         {"step_ms", pace.step_ms},
                         {"work_ms", pace.work_ms},
                         {"optimizer_ms", pace.optimizer_ms},
                         {"offloaded_optimizer_ms", pace.worker_ms}}},
                       {"fitted",
                        {{"matrix_tflops", fitted.matrix_tflops},
                         {"memory_gb_per_s", fitted.memory_gb_per_s},
                         {"inside", link_json(pace.inside)},
                         {"between", link_json(pace.between)},
                         {"host", link_json(pace.host)}}},
                       {"modelled_step_ms", a.pace.step_ms},
                       {"model_error_pct", model_error},
                       {"changed",
                        {{"world", ranks},
                         {"step_ms", b.pace.step_ms},
                         {"peak_memory_bytes", peaks_json(summary_b)},
                         {"matrix_tflops", rates.matrix_tflops},
                         {"memory_gb_per_s", rates.memory_gb_per_s}}},
                       {"predicted_step_ms", predicted},
                       {"predicted_change_pct", change_pct}};
    out["comparison"] = nlohmann::json::parse(comparison_json(
        comparison, analysis::verdict_basis({{&a.store, &summary_a}}, {{&b.store, &summary_b}})));
    say_text(stdout, instrumentation::plain_json(analysis::to_text(out, 2)) + "\n");
    return 0;
  }
  say("{:<11}{}: {}, ZeRO-{}, {} rank{}, {:.4g} ms per step{}\n", "recorded", options.replay.recording,
      tables.model, tables.stage, tables.world, tables.world == 1 ? "" : "s", pace.step_ms,
      tables.simulated ? " (itself simulated)" : "");
  say("{:<11}products {:.3g} TFLOP/s, memory {:.3g} GB/s; among ranks {}, between nodes {}, to the host {}\n",
      "fitted", fitted.matrix_tflops, fitted.memory_gb_per_s, link_text(pace.inside), link_text(pace.between),
      link_text(pace.host));
  say("{:<11}{:.4g} ms per step for the recorded settings, {:+.1f} % beside the recording\n", "modelled",
      a.pace.step_ms, model_error);
  say("{:<11}{:.4g} ms per step, {:+.1f} %: the recorded time and what the model changes by\n\n", "predicted",
      predicted, change_pct);
  say("A  the recorded settings, simulated{}\nB  the changed settings, simulated\n\n",
      ranks == tables.world ? "" : fmt::format(", {} ranks", tables.world));
  say_text(stdout, instrumentation::plain_lines(comparison_text(comparison)));
  if (rates.matrix_tflops != fitted.matrix_tflops || rates.memory_gb_per_s != fitted.memory_gb_per_s) {
    say("  rates: products {:.3g} -> {:.3g} TFLOP/s, memory {:.3g} -> {:.3g} GB/s ({})\n",
        fitted.matrix_tflops, rates.matrix_tflops, fitted.memory_gb_per_s, rates.memory_gb_per_s,
        options.replay.matrix_tflops ? "given" : "from the trial");
  }
  if (ranks != tables.world) say("  ranks: {} -> {}\n", tables.world, ranks);
  if (!options.replay.link.empty()) say("  link among ranks: {}\n", options.replay.link);
  if (!options.replay.node_link.empty()) say("  link between nodes: {}\n", options.replay.node_link);
  if (!options.replay.host_link.empty()) say("  link to the host: {}\n", options.replay.host_link);
  return 0;
}

}  // namespace

void add_what_if(CLI::App& app, Action& action) {
  auto options = std::make_shared<WhatIfOptions>();
  CLI::App* verb = app.add_subcommand(
      "what-if",
      "A recorded run with other settings, ranks or links, on a cost model fitted to the recording");
  verb->add_option("recording", options->replay.recording, "Recording (*.zscope)")->required();
  verb->add_option(
      "--set", options->replay.set,
      "KEY=VALUE over the recorded configuration, e.g. zero_optimization.overlap_comm=false; repeatable");
  verb->add_option("--ranks", options->replay.ranks, "Number of ranks (default: as recorded)")
      ->check(kAboveZero);
  verb->add_option("--ranks-per-node", options->replay.ranks_per_node,
                   "of a node (default: as recorded; of a run on one node: all)")
      ->check(CLI::Range(1, 65536));
  verb->add_option("--link", options->replay.link, "GB_PER_S:LATENCY_US among the ranks of a node, as busbw");
  verb->add_option("--node-link", options->replay.node_link,
                   "GB_PER_S:LATENCY_US of a node's links to other nodes");
  verb->add_option("--host-link", options->replay.host_link,
                   "GB_PER_S:LATENCY_US between a rank's device and host memory");
  CLI::Option* given =
      verb->add_option("--matrix-tflops", options->replay.matrix_tflops,
                       "10^12 operations per second of matrix products in a changed data type")
          ->check(kAboveZero);
  verb->add_flag("--trial", options->replay.trial,
                 "Where the data type changes: train some steps in both on this machine, to know the rates")
      ->excludes(given);
  verb->add_option("--model", options->replay.model, "File of the recorded model, where it came from one");
  verb->add_option("--steps", options->steps,
                   "Optimizer steps to play, the first as warm-up; the time that it takes grows with them "
                   "(default: 9, the "
                   "fewest that bear a verdict; with --search 4)")
      ->check(CLI::Range(2, 1000));
  CLI::Option* search = verb->add_flag("--search", options->searched,
                                       "Look for the fastest settings, and say how sure the answer is");
  add_size(*verb, "--memory-limit", options->search.memory_limit,
           "With --search: of a rank's device memory, e.g. 24GiB; what needs more is left out")
      ->needs(search);
  verb->add_option("--over", options->search.over,
                   "With --search: KEY=V1,V2,... to choose from in place of the usual settings; repeatable")
      ->needs(search);
  verb->add_option("--plays", options->search.plays, "With --search: settings to play at most")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str()
      ->needs(search);
  verb->add_option("--best", options->search.show, "With --search: how many of the fastest to name")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str()
      ->needs(search);
  verb->add_option("-o,--record", options->out, "Keep the changed run as this *.zscope file")
      ->excludes(search);
  verb->add_flag("--json", options->json, "The outcome for programs");
  verb->callback([options, &action] {
    if (options->steps || !options->searched)
      options->replay.steps = options->steps.value_or(kStepsOfVerdict);
    action = [options] { return what_if(*options); };
  });
}

}  // namespace shardscope::cli
