// Destination of the plugin's events: the run of its process, or one of its own.
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
  /// The process emits its collectives itself; the plugin's events are joined to them.
  [[nodiscard]] virtual bool joins() const = 0;
};

/// Sequence of the collective that the calling thread is passing to NCCL, if the program reports it
/// (nccl_host.h, or shardscope_nccl_calls()); kNoId otherwise.
[[nodiscard]] std::uint32_t current_collective() noexcept;
/// Whether the program reports it.
[[nodiscard]] bool reports_collectives() noexcept;
/// Whether the program exports nccl_host.h's symbol; its all-to-alls are sends and receives.
[[nodiscard]] bool has_host() noexcept;

/// The run of the process, through nccl_host.h or libshardscope; null while there is none.
[[nodiscard]] std::unique_ptr<Sink> sink_of_process();

/// Rank, world and names of this process in a run that no other component describes.
struct OwnRun {
  std::string run_id;
  std::uint32_t rank = 0, world = 1, local_world = 1;
};
/// From the environment of torchrun, Open MPI or Slurm; otherwise from the process's first communicator,
/// whose id `communicator` is equal on all its ranks.
[[nodiscard]] OwnRun own_run(std::uint64_t communicator, int nodes, int ranks, int rank);
/// Starts a run of the plugin's own, sent to SHARDSCOPE_ENDPOINT until the process ends. Null with the reason
/// in `problem` if that fails, for example without an endpoint.
[[nodiscard]] std::unique_ptr<Sink> start_own_run(const OwnRun& run, std::string& problem);
/// Ends the plugin's own run, if any; no thread may emit any more.
void end_own_run();
/// Message in the plugin's own run, if there is one.
void message_of_own_run(const std::string& text);

}  // namespace shardscope::nccl_profiler
