// Detects a launch of several ranks that did not find one another (docs/zero.md P2): each would silently
// train a whole model of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

namespace shardscope::comm {

/// The environment, as by std::getenv; null for a variable that is not set.
using Environment = std::function<const char*(const char*)>;

/// The launcher's environment contradicts the ranks that this process finds.
class LaunchError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Error message if the environment names more ranks than were found, which is one: the launcher, its
/// variable and value, and what to do. nullopt if there is no contradiction. Reads the variables of mpirun
/// (Open MPI, PMI, MVAPICH), of srun inside a step (SLURM_STEP_ID) if there is no MPI launcher, and
/// WORLD_SIZE of torchrun and deepspeed. Source: DeepSpeed's zero.Init raises on WORLD_SIZE only.
[[nodiscard]] std::optional<std::string> launch_problem(const Environment& environment, std::uint32_t found);

}  // namespace shardscope::comm
