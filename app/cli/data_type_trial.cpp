#include "app/cli/data_type_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/cli/launch.h"
#include "app/cli/modelled_run.h"
#include "app/cli/process.h"
#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

/// The recorded settings without those about the recording itself.
nlohmann::json trial_settings(const std::string& recorded_config) {
  nlohmann::json settings = nlohmann::json::parse(recorded_config);
  if (settings.contains("shardscope")) settings["shardscope"].erase("key");
  return settings;
}

nlohmann::json with_types_of(nlohmann::json settings, const nlohmann::json& changed) {
  for (const char* key : {"fp16", "bf16", "data_types", "communication_data_type"}) {
    settings.erase(key);
    if (changed.contains(key)) settings[key] = changed[key];
  }
  return settings;
}

struct Trial {
  std::string model, label, description;
  std::uint32_t ranks = 1, ranks_per_node = 1;
  std::int64_t steps = 1;

  /// The rates of `settings` on this machine.
  [[nodiscard]] analysis::Rates run(const nlohmann::json& settings, const std::string& device) const {
    const ScratchFolder folder;
    const TemporaryConfig config(settings.dump(2), label, {});
    LaunchOptions options;
    options.ranks = ranks;
    options.config = config.path();
    options.model = model;
    options.steps = steps;
    options.record = folder.file("trial.zscope");
    options.label = label;
    const LaunchResult result = launch(options);
    if (interrupted()) throw UserError("interrupted: the trial did not end", interrupt_code());
    if (result.exit_code != 0)
      throw UserError(fmt::format("{}: {}", label, result.failure), result.exit_code);
    const Measured measured = read_measured(options.record);
    if (measured.store.tables().device != device) {
      throw UserError(
          fmt::format("--trial: the run was recorded on {}; here it trains on {}. Give --matrix-tflops",
                      device, measured.store.tables().device));
    }
    analysis::Rates rates;
    const analysis::LinkPace unused{1e3, 0, 0, 0};
    rates.inside = measured.pace.inside.value_or(unused);
    rates.between = measured.pace.between.value_or(unused);
    rates.host = measured.pace.host.value_or(unused);
    static_cast<void>(
        ModelledRun(model, ranks).fit(rates, config, measured.pace, {description, ranks_per_node, 4}));
    return rates;
  }
};

}  // namespace

RateChange try_data_type(const instrumentation::RunTables& tables, const std::string& model,
                         const std::string& recorded_config, const std::string& changed_config,
                         std::int64_t steps) {
  if (tables.simulated) {
    throw UserError(
        "--trial: the recorded run was itself simulated; give --matrix-tflops of the changed data type");
  }
  const nlohmann::json settings = trial_settings(recorded_config);
  Trial trial{model,
              "trial of the recorded data type",
              "a trial",
              tables.world,
              std::max(1U, std::min(tables.local_world, tables.world)),
              steps};
  const nlohmann::json changed = with_types_of(settings, nlohmann::json::parse(changed_config));
  // In turns, keeping the faster of each: other load on the machine only slows down.
  analysis::Rates before, after;
  before.matrix_tflops = after.matrix_tflops = 0;
  for (int round = 0; round < 2; ++round) {
    trial.label = "trial of the recorded data type";
    const analysis::Rates a = trial.run(settings, tables.device);
    if (a.matrix_tflops > before.matrix_tflops) before = a;
    trial.label = "trial of the changed data type";
    const analysis::Rates b = trial.run(changed, tables.device);
    if (b.matrix_tflops > after.matrix_tflops) after = b;
  }
  return {after.matrix_tflops / before.matrix_tflops, after.memory_gb_per_s / before.memory_gb_per_s,
          after.host_memory_gb_per_s / before.host_memory_gb_per_s};
}

}  // namespace shardscope::cli
