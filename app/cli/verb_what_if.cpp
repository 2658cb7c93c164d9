// `what-if`: a recorded run played again on a virtual clock, with other settings. The cost model is fitted to
// the recording first, and what it makes of the recorded settings is shown beside what was recorded.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "app/analysis/foreign_json.h"
#include "app/analysis/micro_batches.h"
#include "app/analysis/pace.h"
#include "app/analysis/summary.h"
#include "app/cli/checks.h"
#include "app/cli/comparison_text.h"
#include "app/cli/config_override.h"
#include "app/cli/data_type_trial.h"
#include "app/cli/made_runs.h"
#include "app/cli/modelled_run.h"
#include "app/cli/process.h"
#include "app/cli/say.h"
#include "app/cli/verb.h"
#include "app/store/recording.h"
#include "runtime/config/given_settings.h"

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;
namespace ev = shardscope::instrumentation;

struct WhatIfOptions {
  std::string recording, model, link, node_link, host_link, out;
  std::optional<double> matrix_tflops;  ///< of the changed data type
  bool trial = false;
  std::vector<std::string> set;
  std::uint32_t ranks = 0, ranks_per_node = 0;  ///< 0: as recorded
  std::int64_t steps = 4;
  bool json = false;
};

/// "12.5" or "12.5:20": 10^9 bytes per second and microseconds.
analysis::LinkPace parse_link(const char* option, const std::string& text) {
  analysis::LinkPace link;
  char* end = nullptr;
  link.gb_per_s = std::strtod(text.c_str(), &end);
  if (*end == ':') {
    link.latency_us = std::strtod(end + 1, &end);
  }
  if (text.empty() || *end != '\0' || !(link.gb_per_s > 0) || !(link.latency_us >= 0) ||
      !std::isfinite(link.gb_per_s) || !std::isfinite(link.latency_us)) {
    throw UserError(
        fmt::format("{} {}: not GB_PER_S or GB_PER_S:LATENCY_US, for example 12.5:20", option, text), 2);
  }
  return link;
}

config::ParseOptions parse_options(std::uint32_t ranks, const std::string& name) {
  config::ParseOptions options;
  options.world = ranks;
  options.file = name;
  options.generated = true;
  return options;
}

/// The recorded configuration without what follows from the number of ranks and without defaults, which
/// follow what is changed.
std::string recorded_config(const ev::RunTables& tables, const std::string& recording,
                            const std::string& name) {
  nlohmann::json config = analysis::parse_foreign(tables.config_json);
  if (!config.is_object())
    throw UserError(recording +
                    ": its configuration is no JSON object; only runs of Shardscope's runtime can be played");
  config.erase("train_batch_size");
  return config::without_defaults(analysis::to_text(config, 2), parse_options(tables.world, name));
}

/// Documents are not in a recording: both runs are played with the mean length that they gave micro-batches.
/// Nothing where micro-batches are of one size, or the recording does not say.
std::optional<std::int64_t> mean_length(const store::Store& recorded, const config::TrainingConfig& config) {
  if (config.shardscope.micro_batches.packing == plan::Packing::fixed) return std::nullopt;
  analysis::MicroBatchSums sums;
  for (const store::RankRow& rank : recorded.ranks()) {
    for (const analysis::MicroBatch& one :
         analysis::micro_batches(recorded, rank.rank, store::Store::kBegin, store::Store::kEnd)) {
      sums.add(one);
    }
  }
  if (sums.count == 0) {
    say(stderr,
        "shardscope: warning: shardscope.micro_batches: the recording does not say how long its "
        "micro-batches "
        "were; both runs are played with the longest length\n");
    return std::nullopt;
  }
  const auto samples = static_cast<double>(sums.count) *
                       static_cast<double>(std::max<std::int64_t>(config.batch.micro_batch_size, 1));
  const std::int64_t length =
      std::max<std::int64_t>(std::llround(static_cast<double>(sums.positions()) / samples), 1);
  say(stderr,
      "shardscope: warning: shardscope.micro_batches: recorded were {}; both runs are played with their mean "
      "length, {}, on every rank\n",
      analysis::text_of(sums), length);
  return length;
}

/// Micro-batches of this length in the place of documents.
std::string with_length(const std::string& text, const config::TrainingConfig& config,
                        const config::TrainingConfig& recorded, std::optional<std::int64_t> length) {
  const plan::MicroBatches& sizes = config.shardscope.micro_batches;
  const plan::MicroBatches& before = recorded.shardscope.micro_batches;
  if (sizes.packing == plan::Packing::fixed) return text;
  if (sizes.packing != before.packing || sizes.pad_to_multiple_of != before.pad_to_multiple_of) {
    throw UserError(
        "--set shardscope.micro_batches: how long documents are is not in a recording, so what other packing "
        "makes of them is not known; run it, or give shapes",
        2);
  }
  nlohmann::json json = nlohmann::json::parse(text);
  json["shardscope"].erase("micro_batches");
  if (length) {
    json[nlohmann::json::json_pointer("/shardscope/micro_batches/shapes")] =
        nlohmann::json::array({nlohmann::json::array({config.batch.micro_batch_size, *length})});
  }
  return analysis::to_text(json, 2);
}

/// The changed run's storage type, where it is another than the recorded one's.
std::optional<kernels::DType> changed_type(const config::TrainingConfig& recorded,
                                           const config::TrainingConfig& changed) {
  return changed.storage_type() == recorded.storage_type() ? std::nullopt
                                                           : std::optional(changed.storage_type());
}

/// A link that the changed run uses and the recorded one did not has no speed that anybody measured.
void check_link(const char* what, const char* option, const std::string& given,
                const std::optional<analysis::LinkPace>& recorded,
                const std::optional<analysis::LinkPace>& used) {
  if (!used || recorded || !given.empty()) return;
  throw UserError(
      fmt::format("the changed run moves data {}, over which the recorded run sent nothing: how fast is it? "
                  "Give {} GB_PER_S:LATENCY_US",
                  what, option));
}

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

constexpr std::int64_t kTrialSteps = 8;

int what_if(const WhatIfOptions& options) {
  store::RecordingInfo info;
  std::error_code ignored;  // of a file that is not there yet
  if (!options.out.empty() && fs::equivalent(options.out, options.recording, ignored)) {
    throw UserError(fmt::format(
        "-o {}: is the recording that is read, which this would replace; choose another name", options.out));
  }
  keep_made_run("-o", options.out);
  const store::Store recorded = store::open_recording(options.recording, &info);
  for (const std::string& problem : info.problems)
    say(stderr, "shardscope: {}: {}\n", options.recording, problem);
  analysis::Pace pace;
  try {
    pace = analysis::measure_pace(recorded);
    if (pace.work_ms <= 0) throw std::invalid_argument("it has no record of what was computed");
  } catch (const std::invalid_argument& error) {
    throw UserError(fmt::format("{}: {}; record a run of several steps at detail modules or finer",
                                options.recording, error.what()));
  }
  const ev::RunTables& tables = recorded.tables();
  const std::uint32_t ranks = options.ranks > 0 ? options.ranks : tables.world;
  const bool one_node = tables.world <= tables.local_world;
  const std::uint32_t recorded_per_node = std::min(tables.local_world, tables.world);
  const std::uint32_t per_node = options.ranks_per_node > 0 ? options.ranks_per_node
                                 : one_node                 ? std::max(ranks, recorded_per_node)
                                                            : recorded_per_node;

  analysis::Rates rates;
  // A link that nothing went over has any speed: the modelled run does not use it either.
  const analysis::LinkPace unused{1e3, 0, 0, 0};
  rates.inside = pace.inside.value_or(unused);
  rates.between = pace.between.value_or(unused);
  rates.host = pace.host.value_or(unused);

  install_interrupt_handler();
  const std::string name = fs::path(options.recording).filename().string() + "'s configuration";
  const std::string documents = recorded_config(tables, options.recording, name);
  const config::TrainingConfig as_recorded =
      config::parse_config(documents, parse_options(tables.world, name));
  const std::optional<std::int64_t> length = mean_length(recorded, as_recorded);
  const std::string text = with_length(documents, as_recorded, as_recorded, length);
  const TemporaryConfig base(text, name, {});
  const std::string changed_documents = config_text_with(documents, name, options.set);
  const std::string changed_name = name + (options.set.empty() ? "" : " with --set");
  const std::string changed_text = with_length(
      changed_documents, config::parse_config(changed_documents, parse_options(ranks, changed_name)),
      as_recorded, length);
  const TemporaryConfig changed(changed_text, name, options.set);
  const std::string description = "fitted to " + fs::path(options.recording).filename().string();
  const std::string model = options.model.empty() ? tables.model : options.model;
  ModelledRun modelled(model, tables.world);
  const Measured a = modelled.fit(rates, base, pace, {description, recorded_per_node, options.steps});
  if (a.store.tables().elems != tables.elems || a.store.tables().params.size() != tables.params.size()) {
    throw UserError(
        fmt::format("--model {}: {} parameters in {} tensors, but the recorded {} has {} in {}; give the "
                    "model that was trained",
                    model, a.store.tables().elems, a.store.tables().params.size(), tables.model, tables.elems,
                    tables.params.size()));
  }

  if (!options.link.empty()) rates.inside = parse_link("--link", options.link);
  if (!options.node_link.empty()) rates.between = parse_link("--node-link", options.node_link);
  if (per_node < ranks && !pace.between && options.node_link.empty()) {
    throw UserError(fmt::format(
        "--ranks {} on nodes of {}: how fast is the link between nodes? The recorded run stayed on "
        "one; give --node-link GB_PER_S:LATENCY_US",
        ranks, per_node));
  }
  if (!options.host_link.empty()) rates.host = parse_link("--host-link", options.host_link);
  const analysis::Rates fitted = rates;
  if (const auto type =
          changed_type(config::parse_config(text, parse_options(tables.world, base.name())),
                       config::parse_config(changed_text, parse_options(ranks, changed.name())))) {
    if (options.matrix_tflops) {
      rates.matrix_tflops = *options.matrix_tflops;
    } else if (options.trial) {
      const RateChange change = try_data_type(tables, model, text, changed_text, kTrialSteps);
      rates.matrix_tflops *= change.matrix;
      rates.memory_gb_per_s *= change.memory;
      rates.host_memory_gb_per_s *= change.host_memory;
    } else {
      say(stderr,
          "shardscope: warning: nothing was recorded of {}: its matrix products are played at the recorded "
          "type's rate, {:.3g} TFLOP/s; give --matrix-tflops, or --trial on the machine of the recording\n",
          config::name_of(*type), rates.matrix_tflops);
    }
  } else if (options.matrix_tflops || options.trial) {
    throw UserError(
        fmt::format("{}: is for a changed data type, and the changed run has the recorded one; leave it out",
                    options.trial ? "--trial" : "--matrix-tflops"),
        2);
  }
  modelled.set_ranks(ranks);
  modelled.set_machine(rates, description, per_node, ranks == tables.world ? pace : analysis::Pace{});
  const std::string path = modelled.play(changed, "changed", options.steps);
  const Measured b = read_measured(path);
  check_link("among the ranks of a node", "--link", options.link, pace.inside, b.pace.inside);
  check_link("between nodes", "--node-link", options.node_link, pace.between, b.pace.between);
  check_link("between device and host", "--host-link", options.host_link, pace.host, b.pace.host);
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

  const analysis::Summary summary_a = analysis::summarize(a.store), summary_b = analysis::summarize(b.store);
  const analysis::Comparison comparison =
      analysis::compare({{&a.store, &summary_a}}, {{&b.store, &summary_b}});
  if (interrupted()) {
    throw UserError(fmt::format("interrupted ({}): nothing is compared", interrupt_name()), interrupt_code());
  }
  const double difference = b.pace.step_ms - a.pace.step_ms;
  const double predicted = pace.step_ms + difference;
  const double model_error = 100 * (a.pace.step_ms / pace.step_ms - 1);
  if (options.json) {
    nlohmann::json out{{"recording", options.recording},
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
                         {"matrix_tflops", rates.matrix_tflops},
                         {"memory_gb_per_s", rates.memory_gb_per_s}}},
                       {"predicted_step_ms", predicted},
                       {"predicted_change_pct", 100 * difference / pace.step_ms}};
    out["comparison"] = nlohmann::json::parse(comparison_json(
        comparison, analysis::verdict_basis({{&a.store, &summary_a}}, {{&b.store, &summary_b}})));
    say_text(stdout, instrumentation::plain_json(analysis::to_text(out, 2)) + "\n");
    return 0;
  }
  say("{:<11}{}: {}, ZeRO-{}, {} rank{}, {:.4g} ms per step{}\n", "recorded", options.recording, tables.model,
      tables.stage, tables.world, tables.world == 1 ? "" : "s", pace.step_ms,
      tables.simulated ? " (itself simulated)" : "");
  say("{:<11}products {:.3g} TFLOP/s, memory {:.3g} GB/s; among ranks {}, between nodes {}, to the host {}\n",
      "fitted", fitted.matrix_tflops, fitted.memory_gb_per_s, link_text(pace.inside), link_text(pace.between),
      link_text(pace.host));
  say("{:<11}{:.4g} ms per step for the recorded settings, {:+.1f} % beside the recording\n", "modelled",
      a.pace.step_ms, model_error);
  say("{:<11}{:.4g} ms per step, {:+.1f} %: the recorded time and what the model changes by\n\n", "predicted",
      predicted, 100 * difference / pace.step_ms);
  say("A  the recorded settings, simulated{}\nB  the changed settings, simulated\n\n",
      ranks == tables.world ? "" : fmt::format(", {} ranks", tables.world));
  say_text(stdout, instrumentation::plain_lines(comparison_text(comparison)));
  if (rates.matrix_tflops != fitted.matrix_tflops || rates.memory_gb_per_s != fitted.memory_gb_per_s) {
    say("  rates: products {:.3g} -> {:.3g} TFLOP/s, memory {:.3g} -> {:.3g} GB/s ({})\n",
        fitted.matrix_tflops, rates.matrix_tflops, fitted.memory_gb_per_s, rates.memory_gb_per_s,
        options.matrix_tflops ? "given" : "from the trial");
  }
  if (ranks != tables.world) say("  ranks: {} -> {}\n", tables.world, ranks);
  if (!options.link.empty()) say("  link among ranks: {}\n", options.link);
  if (!options.node_link.empty()) say("  link between nodes: {}\n", options.node_link);
  if (!options.host_link.empty()) say("  link to the host: {}\n", options.host_link);
  return 0;
}

}  // namespace

void add_what_if(CLI::App& app, Action& action) {
  auto options = std::make_shared<WhatIfOptions>();
  CLI::App* verb = app.add_subcommand(
      "what-if",
      "A recorded run with other settings, ranks or links, on a cost model fitted to the recording");
  verb->add_option("recording", options->recording, "Recording (*.zscope)")->required();
  verb->add_option(
      "--set", options->set,
      "KEY=VALUE over the recorded configuration, e.g. zero_optimization.overlap_comm=false; repeatable");
  verb->add_option("--ranks", options->ranks, "Number of ranks (default: as recorded)")->check(kAboveZero);
  verb->add_option("--ranks-per-node", options->ranks_per_node,
                   "of a node (default: as recorded; of a run on one node: all)")
      ->check(CLI::Range(1, 65536));
  verb->add_option("--link", options->link, "GB_PER_S:LATENCY_US among the ranks of a node, as busbw");
  verb->add_option("--node-link", options->node_link, "GB_PER_S:LATENCY_US of a node's links to other nodes");
  verb->add_option("--host-link", options->host_link,
                   "GB_PER_S:LATENCY_US between a rank's device and host memory");
  CLI::Option* given =
      verb->add_option("--matrix-tflops", options->matrix_tflops,
                       "10^12 operations per second of matrix products in a changed data type")
          ->check(kAboveZero);
  verb->add_flag("--trial", options->trial,
                 "Where the data type changes: train some steps in both on this machine, to know the rates")
      ->excludes(given);
  verb->add_option("--model", options->model, "File of the recorded model, where it came from one");
  verb->add_option("--steps", options->steps, "Optimizer steps to play; the first is warm-up")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  verb->add_option("-o,--record", options->out, "Keep the changed run as this *.zscope file");
  verb->add_flag("--json", options->json, "The outcome for programs");
  verb->callback([options, &action] { action = [options] { return what_if(*options); }; });
}

}  // namespace shardscope::cli
