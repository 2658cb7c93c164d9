// A CUPTI for the CUDA runtime of host threads: a library in the place of libcupti.so, by which what the
// project asks of CUPTI can be tested where there is no GPU. It keeps CUPTI's rules where a program could
// break them and only notice on a busy GPU:
// - A record of work is in the buffer of the thread that launched it from the launch on; its times are set
//   when the work has ended. A flush gives back no buffer in which any work still runs; a forced one gives
//   back all, with such records at time 0, and their times never come.
// - Callbacks are called while CUPTI holds its lock: by a thread that launches, flushes or runs a stream.
// - An owner (external correlation) is recorded for calls that are recorded, by a record before theirs; the
//   runtime's call and the driver's inside it have one correlation id.
// - Buffers declared as zeroed must be zeroed (else the program ends). Only one tool may subscribe.
// - Times are the realtime clock's, which the test may set, or those of a function that the program gives.
// - Every query of an event is recorded as a wait, unless the test turns this off.
#pragma once

#include <atomic>
#include <cstdint>

namespace shardscope::host_cuda {

/// What a test decides. One in the process: host_cupti().
struct HostCupti {
  std::atomic<std::int64_t> clock_ns{0};  ///< added to the realtime clock: changed, the clock was set
  std::atomic<int> refused_kind{-1};      ///< of activity: enabling it fails with `refusal`
  std::atomic<int> refusal{0};            ///< a CUptiResult
  std::atomic<bool> no_times{false};      ///< work ends without times, as where device memory is short
  std::atomic<bool> late{false};          ///< buffers come back a while after the flush that gives them back
  std::atomic<std::uint64_t> waits{0};    ///< records of waits so far
  /// Number of further records of work whose times are those of the realtime clock, whatever clock was
  /// chosen.
  std::atomic<int> realtime_work{0};
};

}  // namespace shardscope::host_cuda

extern "C" shardscope::host_cuda::HostCupti* host_cupti();
