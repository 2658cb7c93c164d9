// zero_simulate: simulates every rank of a run on given hardware and publishes their events as the ranks
// would. `shardscope simulate` starts it.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>

#include "instrumentation/clock.h"
#include "instrumentation/emitter.h"
#include "instrumentation/error_text.h"
#include "instrumentation/plain_text.h"
#include "runtime/base/build_facts.h"
#include "runtime/config/option_checks.h"
#include "runtime/engine/run_tables.h"
#include "runtime/simulate/event_sender.h"
#include "runtime/simulate/event_senders.h"
#include "runtime/simulate/options.h"
#include "runtime/simulate/simulation.h"
#include "runtime/train/setup.h"
#include "runtime/train/terminal.h"

namespace {

using namespace shardscope;
using train::report;

constexpr double kConnectSeconds = 60;

std::string made_up_run_id() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", static_cast<unsigned>(now / std::chrono::seconds(1)),
                static_cast<unsigned>(std::random_device()()));
  return text;
}

instrumentation::RunTables tables_of(const simulate::Options& options, const plan::ModelPlan& model,
                                     const config::TrainingConfig& config, const simulate::Hardware& hardware,
                                     const plan::Topology& topology) {
  engine::RunIdentity identity;
  identity.run_id = options.run_id.empty() ? made_up_run_id() : options.run_id;
  identity.device = "simulated " + hardware.name;
  identity.versions = std::string("shardscope ") + base::version();
  identity.world = topology.world;
  identity.local_world = topology.ranks_per_node;
  instrumentation::RunTables tables = engine::make_run_tables(model, config, identity);
  tables.hardware = "simulated: " + (hardware.description.empty() ? hardware.name : hardware.description);
  tables.link_gbps = tables.link_latency_us = 0;  // the hardware's links are not an emulated link
  tables.simulated = true;
  return tables;
}

void run(const simulate::Options& options) {
  if (!options.publish.empty()) simulate::EventSenders::check(options.ranks);
  train::Options named;
  named.model = options.model;
  named.config = options.config;
  named.config_name = options.config_name;
  named.steps = options.steps;
  named.detail = options.detail;
  const config::TrainingConfig config = train::load_training_config(named, options.ranks);
  const plan::ModelPlan model = train::load_model(named, config);
  simulate::SimulationOptions simulated;
  simulated.hardware = simulate::load_hardware(options.hardware, options.hardware_folder);
  if (options.no_memory_limit) simulated.hardware.memory_gib = 0;
  simulated.variation = {options.seed, options.jitter,
                         simulate::parse_factors("--straggler", options.stragglers, options.ranks, 0),
                         simulate::parse_factors("--slow-link", options.slow_links, options.ranks, 1)};
  simulated.origin_ns = instrumentation::monotonic_now_ns();
  const instrumentation::Detail detail = config.shardscope.detail;

  const auto began = std::chrono::steady_clock::now();
  std::unique_ptr<simulate::EventSenders> sender;
  std::uint64_t made = 0;
  simulate::Simulation simulation(
      model, config, simulated, [&](const std::string& name) { return sender ? sender->name_id(name) : 0; },
      [&](std::uint32_t rank, std::vector<instrumentation::Event> events) {
        if (sender) {
          if (options.live && !events.empty())
            sender->wait_until(static_cast<std::int64_t>(events.back().ticks));
          sender->take(rank, std::move(events));
          made = sender->events();
        } else {
          made += events.size();
        }
      });
  if (!options.publish.empty()) {
    sender = std::make_unique<simulate::EventSenders>(
        simulate::Destination{options.publish, options.key.empty() ? config.shardscope.key : options.key},
        tables_of(options, model, config, simulated.hardware, simulation.groups().topology()), detail,
        simulate::EventSender::most_ranks());
    sender->connect(kConnectSeconds, [&] {
      report("warning: no collector answers at " + options.publish.front() +
             (options.publish.size() > 1 ? " or another of the nodes'" : "") + " yet; waiting for up to " +
             std::to_string(static_cast<int>(kConnectSeconds)) + " s");
    });
    sender->message(instrumentation::Severity::info,
                    "simulated: no rank trained; times are those of a cost model of " +
                        simulated.hardware.name + ", losses and gradient norms are not known");
    if (config.zero.zenflow) {
      sender->message(instrumentation::Severity::info,
                      "zenflow: which columns have the largest gradients is not known; the number chosen is "
                      "that of a run, as if gradients were alike everywhere");
    }
    if (config.shardscope.micro_batches.packing != plan::Packing::fixed) {
      sender->message(instrumentation::Severity::info,
                      "micro_batches.packing: there are no documents; every sample has the longest length, "
                      "without padding. shardscope.micro_batches.shapes plays the lengths that it lists");
    }
    for (const std::string& warning : config.warnings) {
      sender->message(instrumentation::Severity::warning, warning);
    }
  }
  for (const std::string& warning : config.warnings) {
    report("warning: " + warning);
  }
  try {
    instrumentation::g_detail.store(static_cast<int>(detail));
    // Connecting thousands of ranks takes a while.
    if (options.live) simulation.begin_at(instrumentation::monotonic_now_ns());
    simulation.begin();
    nlohmann::json steps = nlohmann::json::array(), evaluations = nlohmann::json::array();
    for (std::int64_t step = 0; step < options.steps; ++step) {
      const double ms = static_cast<double>(simulation.step()) * 1e-6;
      steps.push_back(ms);
      if (options.live) simulation.hand_over();
      if (!options.json) {
        std::printf("step %lld of %lld: %.3f ms simulated\n", static_cast<long long>(step + 1),
                    static_cast<long long>(options.steps), ms);
        std::fflush(stdout);
      }
      if (const std::int64_t every = config.shardscope.eval_interval; every > 0 && (step + 1) % every == 0) {
        const double eval_ms = static_cast<double>(simulation.evaluate()) * 1e-6;
        evaluations.push_back(eval_ms);
        if (!options.json) std::printf("  evaluation: %.3f ms simulated\n", eval_ms);
      }
    }
    simulation.finish();
    if (sender) sender->finish(0, "");
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (options.json) {
      const nlohmann::json outcome{{"simulated", true},
                                   {"model", model.spec.name},
                                   {"params", model.elems},
                                   {"hardware", simulated.hardware.name},
                                   {"world", options.ranks},
                                   {"stage", config.zero.stage},
                                   {"engines", simulation.engines()},
                                   {"step_ms", steps},
                                   {"evaluation_ms", evaluations},
                                   {"events", made},
                                   {"wall_s", seconds}};
      using Json = nlohmann::json;
      const std::string text = outcome.dump(-1, ' ', false, Json::error_handler_t::replace);
      std::printf("%s\n", instrumentation::plain_json(text).c_str());
    } else {
      std::printf("%llu events of %u ranks in %.1f s, played by %zu engine%s\n",
                  static_cast<unsigned long long>(made), options.ranks, seconds, simulation.engines(),
                  simulation.engines() == 1 ? "" : "s");
    }
  } catch (const std::exception& error) {
    if (sender) sender->finish(1, instrumentation::error_text(error));
    throw;
  }
}

}  // namespace

int main(int argc, char** argv) {
  simulate::Options options;
  CLI::App app("Plays the ranks of a ZeRO run that is not made.", "zero_simulate");
  simulate::declare(app, options);
  app.set_version_flag("--version", [] { return base::build_facts("zero_simulate"); });
  config::check_option_values(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    report(std::string(error.what()) + "; see zero_simulate --help");
    return 2;
  }
  try {
    run(options);
    return 0;
  } catch (const train::UsageError& error) {
    report(error.what());
    return 2;
  } catch (const std::exception& error) {
    report(instrumentation::error_text(error));
    return 1;
  }
}
