// A rank's GPU records: how busy each CUDA stream was, how long work waited between launch and start, and why
// a stream was idle.
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

/// Why a GPU stream was idle.
enum class GapCause : std::uint8_t {
  waiting_for_gather,      ///< a recorded wait of the compute stream for parameters
  waiting_for_reduce,      ///< for the reduction of a bucket
  waiting_for_update,      ///< for ZenFlow's deferred update
  waiting_for_data,        ///< for a micro-batch: its loader, or its copy to the device
  host_late,               ///< the host had not yet launched the next work, which could have run
  queued,                  ///< launched: launch latency, or an unrecorded wait for another stream
  queued_while_computing,  ///< the same on a stream other than compute, while compute was busy
  nothing_to_do,           ///< no work for this stream: the compute stream was busy or waited for another one
  unexplained              ///< the launch of the next work was not recorded
};
inline constexpr std::size_t kGapCauses = 9;
[[nodiscard]] const char* name_of(GapCause cause) noexcept;   ///< "waiting_for_gather", as JSON spells it
[[nodiscard]] const char* words_of(GapCause cause) noexcept;  ///< "waiting for gather"
using GapTimes = std::array<std::int64_t, kGapCauses>;

/// A wait of the compute stream and its cause.
struct GpuWait {
  Interval at;
  GapCause cause{};
};

/// Other activity of the rank, which explains the gaps of one of its streams.
struct GpuSurroundings {
  IntervalSet compute_busy;    ///< of gpu_compute; not used for that lane itself
  std::vector<GpuWait> waits;  ///< in order of time, not overlapping
  IntervalSet paused;          ///< by the user: excluded from all figures
};

/// Splits the gap [begin, end) of a stream by cause; the parts sum to its length. `launch_ns`: when the host
/// entered the call that launched the work after the gap; nullopt: not recorded. On the compute stream time
/// in a recorded wait counts for that wait; the rest before the launch is host_late, after it `queued`.
/// Another stream had nothing_to_do before the launch while compute was busy or waited for another one.
[[nodiscard]] GapTimes explain_gap(ev::StreamId lane, Interval gap, std::optional<std::int64_t> launch_ns,
                                   const GpuSurroundings& around);

/// One stream within an interval.
struct GpuStream {
  std::uint64_t kernels = 0, copies = 0;  ///< begun in it; a memset counts as a kernel
  std::int64_t busy_ns = 0;
  GapTimes idle_ns{};  ///< busy + idle = the interval; all three without pauses
  /// Delay from launch to start, of work begun in it whose launch was recorded. May be negative by the error
  /// of the clocks.
  std::uint64_t launches = 0;
  std::int64_t delay_sum_ns = 0;
  std::int64_t delay_min_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t delay_max_ns = std::numeric_limits<std::int64_t>::min();
  void add(const GpuStream& other);
};

struct GpuActivity {
  std::map<ev::StreamId, GpuStream> streams;  ///< streams with any work in the run
  /// From the flushes that began in it: records dropped by CUPTI, work that was not assigned to a lane, and
  /// work whose launch was not found.
  std::uint64_t dropped = 0;
  std::uint64_t not_placed = 0, no_launch = 0;
  /// Upper bound on the error of GPU times in the rank's clock; empty if no step has one.
  std::optional<std::int64_t> clock_residual_ns;
  std::uint32_t steps = 0;  ///< number of steps summed
  void add(const GpuActivity& other);
};

/// The GPU's activity in [begin, end); nullopt if its records do not cover all of it.
[[nodiscard]] std::optional<GpuActivity> gpu_activity(const store::Store& store, std::uint32_t rank,
                                                      std::int64_t begin_ns, std::int64_t end_ns);
/// Whether all GPU records of [begin, end) were received.
[[nodiscard]] bool gpu_known(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                             std::int64_t end_ns);

/// Why the stream was idle before a span of a gpu lane: from the end of the previous span.
struct GapBefore {
  Interval at;
  GapTimes parts{};
  std::int64_t paused_ns = 0;  ///< pauses by the user in it: parts + paused = its length
};
/// nullopt if there was no gap, or the span is the first of its lane.
[[nodiscard]] std::optional<GapBefore> gap_before(const store::Store& store, store::LaneId lane,
                                                  const store::Span& span);
/// Splits the gap that ends at the begin of `next`. Pauses are in no part.
[[nodiscard]] GapTimes explain_gap_before(const store::Store& store, store::LaneId lane, Interval gap,
                                          const store::Span& next);
/// "host late 12 us, queued 3 us": parts above 0, longest first. `duration` formats nanoseconds.
[[nodiscard]] std::string gap_text(const GapTimes& parts, std::string (*duration)(std::int64_t));

}  // namespace shardscope::analysis
