// Where the plugin's events go: into the run of the process it was loaded into, or into one of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "instrumentation/event.h"

namespace shardscope::nccl_profiler {

class Sink {
 public:
  virtual ~Sink() = default;
  [[nodiscard]] virtual bool enabled(instrumentation::Detail detail) const = 0;
  virtual void emit_at(std::int64_t monotonic_ns, const instrumentation::Event& event) = 0;
  /// The process emits its collectives itself; what comes from here is added to them.
  [[nodiscard]] virtual bool joins() const = 0;
};

/// Sequence of the collective that the calling thread is handing to NCCL, in a program that says so
/// (nccl_host.h, or shardscope_nccl_calls()); kNoId otherwise.
[[nodiscard]] std::uint32_t current_collective() noexcept;
/// Whether the program says so.
[[nodiscard]] bool says_collectives() noexcept;
/// Whether it is one of nccl_host.h, whose all-to-alls are sends and receives.
[[nodiscard]] bool has_host() noexcept;

/// The run that the process has, as nccl_host.h or libshardscope has it; null while there is none.
[[nodiscard]] std::unique_ptr<Sink> sink_of_process();

/// Rank, world and names of this process in a run that no other component describes.
struct OwnRun {
  std::string run_id;
  std::uint32_t rank = 0, world = 1, local_world = 1;
};
/// From the environment of torchrun, Open MPI or Slurm; otherwise from the process's first communicator:
/// `communicator` is the same on all its ranks.
[[nodiscard]] OwnRun own_run(std::uint64_t communicator, int nodes, int ranks, int rank);
/// A run of its own, sent to SHARDSCOPE_ENDPOINT until the process ends. Null with the reason in `problem`
/// when it cannot be, such as without an endpoint.
[[nodiscard]] std::unique_ptr<Sink> start_own_run(const OwnRun& run, std::string& problem);
/// Ends it, once no thread emits any more; nothing without one.
void end_own_run();
/// Text for the run's log, where there is a run of its own.
void message_of_own_run(const std::string& text);

}  // namespace shardscope::nccl_profiler
