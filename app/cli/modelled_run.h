// A run on a virtual clock, for `what-if`: one cost model, calibrated to a recording.
#pragma once

#include <cstdint>
#include <string>

#include "app/analysis/pace.h"
#include "app/cli/config_override.h"
#include "app/cli/scratch_folder.h"
#include "app/cli/simulation.h"
#include "app/store/store.h"

namespace shardscope::cli {

/// A recording and the pace measured from it.
struct Measured {
  store::Store store;
  analysis::Pace pace;
};

/// Throws as open_recording and measure_pace do.
[[nodiscard]] Measured read_measured(const std::string& path);

class ModelledRun {
 public:
  ModelledRun(const std::string& model, std::uint32_t ranks);

  /// Sets the machine for later plays: its rates, and the slower ranks of `pace`.
  void set_machine(const analysis::Rates& rates, const std::string& description, std::uint32_t ranks_per_node,
                   const analysis::Pace& pace);
  void set_ranks(std::uint32_t ranks) { command_.ranks = ranks; }
  void set_quiet(bool quiet) { command_.quiet = quiet; }

  /// Plays `config` and returns the recording's path. Throws UserError, also where it was interrupted.
  std::string play(const TemporaryConfig& config, const std::string& name, std::int64_t steps);

  struct Machine {
    std::string description;
    std::uint32_t ranks_per_node = 1;
    std::int64_t steps = 4;  ///< to play
  };
  /// Changes `rates` until `config` played with them computes as long as in `wanted`: at most 12 runs.
  /// Returns the last of them.
  Measured fit(analysis::Rates& rates, const TemporaryConfig& config, const analysis::Pace& wanted,
               const Machine& machine);

 private:
  ScratchFolder folder_;
  SimulationCommand command_;
};

}  // namespace shardscope::cli
