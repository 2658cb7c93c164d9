#include "app/cli/replayed_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "app/analysis/foreign_json.h"
#include "app/analysis/micro_batches.h"
#include "app/analysis/summary.h"
#include "app/cli/data_type_trial.h"
#include "app/cli/process.h"
#include "app/cli/say.h"
#include "app/cli/verb.h"
#include "app/store/recording.h"
#include "runtime/config/given_settings.h"

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;
namespace ev = shardscope::instrumentation;

constexpr std::int64_t kTrialSteps = 8;

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

/// The recorded configuration without values derived from the number of ranks and without defaults, which
/// depend on the changes.
std::string without_given(const ev::RunTables& tables, const std::string& recording,
                          const std::string& name) {
  nlohmann::json config = analysis::parse_foreign(tables.config_json);
  if (!config.is_object()) throw UserError(recording + ": its configuration is no JSON object");
  config.erase("train_batch_size");
  return config::without_defaults(analysis::to_text(config, 2), parse_options(tables.world, name));
}

/// Documents are not recorded: both runs are played with the mean length of micro-batches that they caused.
/// nullopt where micro-batches have one size, or the recording has no sizes.
std::optional<std::int64_t> mean_length(const store::Store& recorded, const config::TrainingConfig& config,
                                        bool quiet) {
  if (config.shardscope.micro_batches.packing == plan::Packing::fixed) return std::nullopt;
  analysis::MicroBatchSums sums;
  for (const store::RankRow& rank : recorded.ranks()) {
    for (const analysis::MicroBatch& one :
         analysis::micro_batches(recorded, rank.rank, store::Store::kBegin, store::Store::kEnd)) {
      sums.add(one);
    }
  }
  if (sums.count == 0) {
    if (!quiet)
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
  if (!quiet)
    say(stderr,
        "shardscope: warning: shardscope.micro_batches: recorded were {}; both runs are played with their "
        "mean "
        "length, {}, on every rank\n",
        analysis::text_of(sums), length);
  return length;
}

/// Replaces documents by micro-batches of this length.
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

/// The changed run's storage type, where it differs from the recorded one's.
std::optional<kernels::DType> changed_type(const config::TrainingConfig& recorded,
                                           const config::TrainingConfig& changed) {
  return changed.storage_type() == recorded.storage_type() ? std::nullopt
                                                           : std::optional(changed.storage_type());
}

/// A link that the changed run uses and the recorded one did not has no measured speed.
void check_link(const char* what, const char* option, const std::string& given,
                const std::optional<analysis::LinkPace>& recorded,
                const std::optional<analysis::LinkPace>& used) {
  if (!used || recorded || !given.empty()) return;
  throw UserError(
      fmt::format("the changed run moves data {}, over which the recorded run sent nothing: how fast is it? "
                  "Give {} GB_PER_S:LATENCY_US",
                  what, option));
}

}  // namespace

std::string why_not_played(const store::Store& store) {
  if (!store.has_tables()) return "the recording does not describe the run";
  const ev::RunTables& tables = store.tables();
  if (tables.framework.empty()) return {};
  return fmt::format("only runs of Shardscope's own runtime can be simulated, and this one was trained by {}",
                     tables.framework);
}

std::string model_error_text(double error_pct) {
  return fmt::format("the model's step is {:.1f} % {} than the recorded one", std::abs(error_pct),
                     error_pct < 0 ? "shorter" : "longer");
}

std::int64_t device_peak(const store::Store& store) {
  std::int64_t peak = 0;
  for (const store::RankRow& rank : store.ranks()) {
    if (const auto held = store.memory_peak(rank.rank, ev::MemoryPool::device))
      peak = std::max(peak, held->total());
  }
  return peak;
}

ReplayedRun::ReplayedRun(const ReplayOptions& options) : options_(options) {
  read(options);
  fit();
}

void ReplayedRun::read(const ReplayOptions& options) {
  for (const auto& [option, text] : {std::pair{"--link", &options.link},
                                     {"--node-link", &options.node_link},
                                     {"--host-link", &options.host_link}})
    if (!text->empty()) static_cast<void>(parse_link(option, *text));
  store::RecordingInfo info;
  recorded_ = store::open_recording(options.recording, &info);
  for (const std::string& problem : info.problems)
    if (!options.quiet) say(stderr, "shardscope: {}: {}\n", options.recording, problem);
  if (const std::string why = why_not_played(recorded_); !why.empty())
    throw UserError(fmt::format("{}: {}", options.recording, why));
  try {
    pace_ = analysis::measure_pace(recorded_);
    if (pace_.work_ms <= 0) throw std::invalid_argument("it has no record of what was computed");
  } catch (const std::invalid_argument& error) {
    throw UserError(fmt::format("{}: {}; record a run of several steps at detail modules or finer",
                                options.recording, error.what()));
  }
  const ev::RunTables& tables = recorded_.tables();
  ranks_ = options.ranks > 0 ? options.ranks : tables.world;
  recorded_per_node_ = std::min(tables.local_world, tables.world);
  per_node_ = options.ranks_per_node > 0           ? options.ranks_per_node
              : tables.world <= tables.local_world ? std::max(ranks_, recorded_per_node_)
                                                   : recorded_per_node_;
  const std::string file = fs::path(options.recording).filename().string();
  name_ = file + "'s configuration";
  description_ = "fitted to " + file;
  model_ = options.model.empty() ? tables.model : options.model;
  documents_ = without_given(tables, options.recording, name_);
  as_recorded_ = config::parse_config(documents_, parse_options(tables.world, name_));
  length_ = mean_length(recorded_, as_recorded_, options.quiet);
  text_ = with_length(documents_, as_recorded_, as_recorded_, length_);
}

void ReplayedRun::fit() {
  const ev::RunTables& tables = recorded_.tables();
  // An unused link may have any speed: the modelled run does not use it either.
  const analysis::LinkPace unused{1e3, 0, 0, 0};
  rates_.inside = pace_.inside.value_or(unused);
  rates_.between = pace_.between.value_or(unused);
  rates_.host = pace_.host.value_or(unused);
  rates_.nvme = pace_.nvme;
  const TemporaryConfig base(text_, name_, {});
  run_ = std::make_unique<ModelledRun>(model_, tables.world);
  run_->set_quiet(options_.quiet);
  modelled_.emplace(run_->fit(rates_, base, pace_, {description_, recorded_per_node_, options_.steps}));
  fitted_ = rates_;
  const ev::RunTables& played = modelled_->store.tables();
  if (played.elems != tables.elems || played.params.size() != tables.params.size()) {
    throw UserError(fmt::format(
        "--model {}: {} parameters in {} tensors, but the recorded {} has {} in {}; give the "
        "model that was trained",
        model_, played.elems, played.params.size(), tables.model, tables.elems, tables.params.size()));
  }
}

std::string ReplayedRun::text_with(const std::vector<std::string>& sets, const std::string& name) const {
  const std::string changed = config_text_with(documents_, name_, sets);
  return with_length(changed, config::parse_config(changed, parse_options(ranks_, name)), as_recorded_,
                     length_);
}

TemporaryConfig ReplayedRun::changed(const std::vector<std::string>& more) const {
  std::vector<std::string> sets = options_.set;
  sets.insert(sets.end(), more.begin(), more.end());
  return {text_with(sets, name_ + (sets.empty() ? "" : " with --set")), name_, sets};
}

config::TrainingConfig ReplayedRun::changed_config() const {
  return config::parse_config(text_with(options_.set, name_), parse_options(ranks_, name_));
}

void ReplayedRun::set_machine(const TemporaryConfig& changed) {
  rates_ = fitted_;
  if (!options_.link.empty()) rates_.inside = parse_link("--link", options_.link);
  if (!options_.node_link.empty()) rates_.between = parse_link("--node-link", options_.node_link);
  if (!options_.host_link.empty()) rates_.host = parse_link("--host-link", options_.host_link);
  if (per_node_ < ranks_ && !pace_.between && options_.node_link.empty()) {
    throw UserError(fmt::format(
        "--ranks {} on nodes of {}: how fast is the link between nodes? The recorded run stayed on "
        "one; give --node-link GB_PER_S:LATENCY_US",
        ranks_, per_node_));
  }
  set_rates_of_type(changed);
  run_->set_ranks(ranks_);
  run_->set_machine(rates_, description_, per_node_,
                    ranks_ == recorded_.tables().world ? pace_ : analysis::Pace{});
}

void ReplayedRun::set_rates_of_type(const TemporaryConfig& changed) {
  const ev::RunTables& tables = recorded_.tables();
  const std::string changed_text = text_with(options_.set, changed.name());
  const auto type = changed_type(config::parse_config(text_, parse_options(tables.world, name_)),
                                 config::parse_config(changed_text, parse_options(ranks_, changed.name())));
  if (!type && !options_.matrix_tflops && !options_.trial) return;
  if (!type) {
    throw UserError(
        fmt::format("{}: is for a changed data type, and the changed run has the recorded one; leave it out",
                    options_.trial ? "--trial" : "--matrix-tflops"),
        2);
  }
  if (options_.matrix_tflops) {
    rates_.matrix_tflops = *options_.matrix_tflops;
  } else if (options_.trial) {
    const RateChange change = try_data_type(tables, model_, text_, changed_text, kTrialSteps);
    rates_.matrix_tflops *= change.matrix;
    rates_.memory_gb_per_s *= change.memory;
    rates_.host_memory_gb_per_s *= change.host_memory;
  } else {
    say(stderr,
        "shardscope: warning: nothing was recorded of {}: its matrix products are played at the recorded "
        "type's rate, {:.3g} TFLOP/s; give --matrix-tflops, or --trial on the machine of the recording\n",
        config::name_of(*type), rates_.matrix_tflops);
  }
}

std::string ReplayedRun::play(const TemporaryConfig& changed) {
  return run_->play(changed, "changed", options_.steps);
}

void ReplayedRun::check_links(const analysis::Pace& played) const {
  check_link("among the ranks of a node", "--link", options_.link, pace_.inside, played.inside);
  check_link("between nodes", "--node-link", options_.node_link, pace_.between, played.between);
  check_link("between device and host", "--host-link", options_.host_link, pace_.host, played.host);
}

analysis::PlayOutcome ReplayedRun::outcome_of(const std::vector<std::string>& sets) {
  try {
    const TemporaryConfig with_sets = changed(sets);
    const Measured played = read_measured(play(with_sets));
    check_links(played.pace);
    return {.step_ms = played.pace.step_ms, .peak_bytes = device_peak(played.store)};
  } catch (const config::ConfigError& error) {
    return {.refused = error.what(), .invalid = true};
  } catch (const std::runtime_error& error) {  // includes UserError
    if (interrupted()) throw;
    return {.refused = error.what()};
  } catch (const std::invalid_argument& error) {  // from measure_pace: the played run has too few events
    return {.refused = error.what()};
  }
}

double ReplayedRun::model_error_pct() const noexcept {
  return 100 * (modelled_->pace.step_ms / pace_.step_ms - 1);
}

double ReplayedRun::predicted_ms(double played_ms) const noexcept {
  return pace_.step_ms + played_ms - modelled_->pace.step_ms;
}

}  // namespace shardscope::cli
