#include "runtime/comm/launch_check.h"

#include <charconv>
#include <cstring>

namespace shardscope::comm {
namespace {

/// 0 if it is not set or is no number.
std::uint32_t number(const Environment& environment, const char* name) {
  const char* const text = environment(name);
  if (text == nullptr) return 0;
  std::uint32_t value = 0;
  const char* const end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, value);
  return error == std::errc() && at == end ? value : 0;
}

std::string message(const char* launcher, const char* name, std::uint32_t ranks, const char* advice) {
  return std::string(launcher) + " started this process as one of " + std::to_string(ranks) + " ranks (" +
         name + "=" + std::to_string(ranks) + "), but it finds no other: each would train alone; " + advice;
}

}  // namespace

// Only a lone process is checked: it would train alone, without any error. MPI's variables come first, since
// mpirun inside an srun step has SLURM's in its environment too.
std::optional<std::string> launch_problem(const Environment& environment, std::uint32_t found) {
  if (found != 1) return std::nullopt;
  // Open MPI, PMI, MVAPICH.
  bool by_mpi = false;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"}) {
    const std::uint32_t ranks = number(environment, name);
    by_mpi = by_mpi || ranks > 0;
    if (ranks < 2) continue;
    return message(
        "mpirun", name, ranks,
        "it is another MPI's than the one that zero_train is built with: use Open MPI's own mpirun, or "
        "build with the MPI that is here");
  }
  // In an allocation without srun SLURM_NTASKS is the number of tasks that may be started, not that of this
  // process.
  if (!by_mpi && environment("SLURM_STEP_ID") != nullptr) {
    // The step's own count first; a step of one task is not an error.
    for (const char* name : {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}) {
      const std::uint32_t ranks = number(environment, name);
      if (ranks == 0) continue;
      if (ranks == 1) break;
      return message(
          "srun", name, ranks,
          "start the ranks with srun --mpi=pmix (srun --mpi=list says what there is), or with mpirun "
          "inside the allocation");
    }
  }
  if (const std::uint32_t ranks = number(environment, "WORLD_SIZE"); ranks > 1) {
    return message("torchrun or deepspeed", "WORLD_SIZE", ranks,
                   "start the ranks with mpirun -n or shardscope run --ranks; if one rank is meant, unset "
                   "WORLD_SIZE");
  }
  return std::nullopt;
}

}  // namespace shardscope::comm
