// What the GPU's own records say of a rank: how busy each CUDA stream was, how long work waited between its
// launch and its start, and why a stream was idle.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/analysis/intervals.h"
#include "app/store/store.h"

namespace shardscope::analysis {

namespace ev = shardscope::instrumentation;

/// Why a stream of the GPU did nothing.
enum class GapCause : std::uint8_t {
  waiting_for_gather,      ///< a recorded wait of computation for parameters
  waiting_for_reduce,      ///< for a bucket's reduction
  waiting_for_update,      ///< for ZenFlow's deferred update
  waiting_for_data,        ///< for a micro-batch: its loader, or its copy to the device
  host_late,               ///< the host had not launched what came next, and it was wanted
  queued,                  ///< launched: launch latency, or an unrecorded wait for another stream
  queued_while_computing,  ///< the same of another stream than computation's, while that one had work
  nothing_to_do,  ///< nothing was wanted of this stream: computation went on, or waited for another one
  unexplained     ///< the launch of what came next was not recorded
};
inline constexpr std::size_t kGapCauses = 9;
[[nodiscard]] const char* name_of(GapCause cause) noexcept;   ///< "waiting_for_gather", as JSON spells it
[[nodiscard]] const char* words_of(GapCause cause) noexcept;  ///< "waiting for gather"
using GapTimes = std::array<std::int64_t, kGapCauses>;

/// A wait of the compute stream, and for what.
struct GpuWait {
  Interval at;
  GapCause cause{};
};

/// What else went on in the rank, for explaining the gaps of one of its streams.
struct GpuSurroundings {
  IntervalSet compute_busy;    ///< of gpu_compute; not needed for that lane itself
  std::vector<GpuWait> waits;  ///< in order of time, not overlapping
  IntervalSet paused;          ///< by the user: in no figure
};

/// Divides the gap [begin, end) of a stream by cause; the parts add up to its length. `launch_ns`: when the
/// host entered the call that launched what ended it; nullopt: not recorded. Of the compute stream what lies
/// in a wait is that wait's, what is left before the launch the host's, and after it `queued`. Another stream
/// had nothing to do before the launch while computation ran, or waited for something else than this stream.
[[nodiscard]] GapTimes explain_gap(ev::StreamId lane, Interval gap, std::optional<std::int64_t> launch_ns,
                                   const GpuSurroundings& around);

/// One stream within a window.
struct GpuStream {
  std::uint64_t kernels = 0, copies = 0;  ///< that began in it; memsets are kernels
  std::int64_t busy_ns = 0;
  GapTimes idle_ns{};  ///< busy + idle = the window, pauses cut out of all three
  /// Launch to start, of those that began in it and whose launch was recorded. It may be below 0 by the error
  /// of the clocks.
  std::uint64_t launches = 0;
  std::int64_t delay_sum_ns = 0;
  std::int64_t delay_min_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t delay_max_ns = std::numeric_limits<std::int64_t>::min();
  void add(const GpuStream& other);
};

struct GpuActivity {
  std::map<ev::StreamId, GpuStream> streams;  ///< that did anything in the run
  /// Counts of the flushes that began in it: records that CUPTI dropped, work that fitted in no lane, and
  /// work whose launch was not found.
  std::uint64_t dropped = 0;
  std::uint64_t not_placed = 0, no_launch = 0;
  /// What a time of the GPU may be wrong by on its rank's clock, at most; empty if no step has it.
  std::optional<std::int64_t> clock_residual_ns;
  std::uint32_t steps = 0;  ///< summed over
  void add(const GpuActivity& other);
};

/// The GPU's activity in [begin, end). Nothing where its records do not cover all of it.
[[nodiscard]] std::optional<GpuActivity> gpu_activity(const store::Store& store, std::uint32_t rank,
                                                      std::int64_t begin_ns, std::int64_t end_ns);
/// Whether every record of the GPU in [begin, end) is known.
[[nodiscard]] bool gpu_known(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                             std::int64_t end_ns);

/// Why the stream was idle before a span of one of the gpu lanes: from the end of the one before.
struct GapBefore {
  Interval at;
  GapTimes parts{};
  std::int64_t paused_ns = 0;  ///< of it, by the user: parts + paused = its length
};
/// Nothing if there was no gap, or the span is the first of its lane.
[[nodiscard]] std::optional<GapBefore> gap_before(const store::Store& store, store::LaneId lane,
                                                  const store::Span& span);
/// The gap right before `next`, whose begin is known: `gap` ends there. Pauses are in no part.
[[nodiscard]] GapTimes explain_gap_before(const store::Store& store, store::LaneId lane, Interval gap,
                                          const store::Span& next);
/// "host late 12 us, queued 3 us": parts above 0, the longest first. `duration` spells nanoseconds.
[[nodiscard]] std::string gap_text(const GapTimes& parts, std::string (*duration)(std::int64_t));

}  // namespace shardscope::analysis
