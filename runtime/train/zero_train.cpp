// zero_train: the program of every rank of a training run, started by mpirun or alone. The only place where a
// failure becomes an exit code.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "instrumentation/error_text.h"
#include "instrumentation/gate.h"
#include "runtime/base/build_facts.h"
#include "runtime/checkpoint/consolidate.h"
#include "runtime/comm/launch_check.h"
#include "runtime/comm/world.h"
#include "runtime/config/option_checks.h"
#include "runtime/engine/stop_signals.h"
#include "runtime/train/options.h"
#include "runtime/train/setup.h"
#include "runtime/train/terminal.h"
#include "runtime/train/training.h"

namespace {

using shardscope::train::report;

/// Under a launcher only one rank reports wrong arguments.
bool first_of_launch() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"}) {
    if (const char* value = std::getenv(name)) return std::string(value) == "0";
  }
  return true;
}

/// 2 for a wrong command line.
int exit_code_of(const std::exception& error) {
  return dynamic_cast<const shardscope::train::UsageError*>(&error) != nullptr ? 2 : 1;
}

int consolidate(const shardscope::train::Options& options) {
  try {
    if (options.save.empty()) {
      throw shardscope::train::UsageError("--consolidate " + options.consolidate +
                                          ": give the file to write with --save");
    }
    shardscope::checkpoint::consolidate(options.consolidate, options.save);
    return 0;
  } catch (const std::exception& error) {
    report(error.what());
    return exit_code_of(error);
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace shardscope;
  train::Options options;
  CLI::App app("One rank of a ZeRO training run; start several with mpirun.", "zero_train");
  train::declare(app, options);
  app.set_version_flag("--version", [] { return base::build_facts("zero_train"); });
  config::check_option_values(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return first_of_launch() ? app.exit(error) : 0;
    if (first_of_launch()) {
      report(std::string(error.what()) + "; see zero_train --help");
    }
    return 2;
  }

  if (!options.consolidate.empty()) return consolidate(options);

  std::unique_ptr<comm::World> world;
  try {
    if (options.print_config_world > 0) {
      const config::TrainingConfig config = train::load_training_config(options, options.print_config_world);
      if (!first_of_launch()) return 0;
      for (const std::string& warning : config.warnings) {
        report("warning: " + warning);
      }
      std::printf("%s\n", config::effective_json(config).c_str());
      return 0;
    }
    engine::StopSignals signals([] { instrumentation::GateKeeper::instance().release_for_shutdown(); });
    comm::WorldOptions world_options;
    world_options.timeout = std::chrono::seconds(options.collective_timeout_s);
    world = comm::make_world(&argc, &argv, world_options);
    train::train(options, *world, signals);
    return 0;
  } catch (const comm::LaunchError& error) {
    if (first_of_launch()) report(error.what());
    return 1;
  } catch (const std::exception& error) {
    // Only the rank that failed first reports. Its message is the cause; the exception of another rank may be
    // a wait that ended because of it.
    const std::string first = world ? world->first_failure() : std::string();
    const std::string mine = world ? "rank " + std::to_string(world->rank()) + " failed: " : std::string();
    if (first.empty() || first.rfind(mine, 0) == 0) {
      const std::string cause = first.empty() ? first : first.substr(mine.size());
      const std::string what = instrumentation::error_text(error);  // not cut to the length of a shared note
      report(what.rfind(cause, 0) == 0 ? what : cause);
    }
    return exit_code_of(error);
  }
}
