// A launcher that meant several ranks, and ranks that did not find one another (docs/zero.md P2): each
// would train a whole model of its own and say nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

namespace shardscope::comm {

/// The environment as std::getenv gives it; null where a variable is not set.
using Environment = std::function<const char*(const char*)>;

/// What a launcher says of this process that the process does not find.
class LaunchError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What to tell the user when the environment names more ranks than the group that was found has, which is
/// one: the launcher, its variable and value, and what to do. Empty when all is well. Read are the variables
/// of mpirun (Open MPI, PMI, MVAPICH), of srun inside a step (SLURM_STEP_ID) where no MPI launcher stands
/// between, and WORLD_SIZE, of torchrun and deepspeed. Source: DeepSpeed's zero.Init raises on WORLD_SIZE
/// alone.
[[nodiscard]] std::optional<std::string> unmet_launch(const Environment& environment, std::uint32_t found);

}  // namespace shardscope::comm
