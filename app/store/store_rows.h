// Result types of a store's queries: spans, densities, steps, states, memory samples, ranks,
// messages, gaps. Times are nanoseconds on the run's common clock, as in store.h, unless stated
// otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "app/store/clock_drift.h"
#include "app/store/step_values.h"
#include "instrumentation/emitter.h"
#include "instrumentation/event.h"
#include "instrumentation/gate.h"

namespace shardscope::store {

namespace ev = shardscope::instrumentation;
inline constexpr std::int64_t kOpen = INT64_MAX;  ///< end of a span that has not ended

struct Span {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = kOpen;
  ev::EventKind kind{};  ///< the begin kind
  std::uint8_t code = 0;
  std::uint8_t depth = 0;
  std::uint32_t a = ev::kNoId, b = ev::kNoId, c = ev::kNoId;
  std::int64_t v0 = 0, v1 = 0;
  std::int64_t mark_ns = 0;  ///< collectives: when every rank had entered (0: unknown)
};

struct LaneId {
  std::uint32_t rank = 0;
  ev::StreamId stream{};
  friend auto operator<=>(const LaneId&, const LaneId&) = default;
};

/// Density of a lane in one pixel column or bucket.
struct Density {
  float busy = 0;            ///< 0..1
  std::uint32_t count = 0;   ///< spans; 0 only where the lane is idle
  ev::EventKind dominant{};  ///< largest share of the busy time; exact where one kind has more than half
  std::uint8_t dominant_code = 0;
};

/// [Note: steps that begin again]
/// Ranks that are started again continue from a checkpoint and repeat steps. The newest attempt counts: the
/// rows from the first repeated step on are removed when a rank begins a step that is not later than its last
/// one. The ranks of a run end and start together, so one time separates the attempts on all of them: the
/// middle between that rank's last event about a step and its new begin.
struct Rewind {
  std::uint32_t step = 0;  ///< the first step that is repeated
  std::int64_t at_ns = 0;  ///< separates the attempts, run time
};

struct StepRow : StepValues {  ///< loss: mean over ranks and micro-steps
  std::uint32_t step = 0;
  std::int64_t begin_ns = 0, end_ns = kOpen;  ///< earliest begin and latest end over ranks
  std::int64_t paused_ns = 0;                 ///< excluded from every metric
  std::int64_t tokens = 0;                    ///< all ranks
  bool skipped = false;
  /// A rank recorded a loss, or a norm, that is NaN or infinite. Of events that were read: not stored in
  /// recordings.
  bool loss_not_finite = false, norm_not_finite = false;
};

/// Sums of one rank over its completely recorded steps in [first_step, last_step].
struct OwnTimeRow {
  std::uint32_t rank = 0;
  std::uint32_t first_step = 0, last_step = 0;  ///< the same on every rank; last_step is included
  std::uint32_t steps = 0;                      ///< number measured, at least 1
  std::int64_t own_ns = 0, waited_ns = 0;       ///< summed over `steps`; metrics.md 2.15
};

struct ParamState {
  std::uint8_t status = 0;  ///< plan::ParamStatus
  ev::StatusCause cause{};
  std::int64_t since_ns = 0;
  std::uint32_t module = ev::kNoId;  ///< the module for which it changed
  std::uint32_t gather = ev::kNoId;
};

using CategoryBytes = std::array<std::int64_t, ev::kMemoryCategoryCount>;

struct MemorySample {
  std::int64_t at_ns = 0;
  CategoryBytes bytes{};
  [[nodiscard]] std::int64_t total() const {
    return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  }
};

/// A gradient bucket that is being filled.
struct BucketState {
  std::uint32_t bucket = ev::kNoId, buffer = ev::kNoId;
  std::int64_t since_ns = 0;
  std::int64_t elems = 0;
  std::vector<std::uint32_t> params;  ///< in the order in which they were added
};

struct RankRow {
  std::uint32_t rank = 0;
  bool connected = false, finished = false;
  bool outlived_recording = false;  ///< in a file: it was still connected when recording ended
  std::int32_t exit_code = 0;
  std::string host, exit_message;
  std::int32_t pid = 0;
  std::uint64_t events = 0, dropped = 0, lost_messages = 0;
  std::int64_t clock_offset_ns = 0;            ///< of the newest chunk
  std::int64_t clock_residual_ns = 0;          ///< of the newest chunk: bounds the error of that offset
  std::int64_t largest_clock_residual_ns = 0;  ///< in a store, of all chunks: holds for the whole run
  std::optional<ClockDrift> clock_drift;       ///< from a store's own input; set_rank() does not set it
  std::int64_t last_ns = 0;
  ev::GateKeeper::Position gate;  ///< last known
};

struct Message {
  std::int64_t at_ns = 0;
  std::uint32_t rank = 0;
  ev::Severity severity{};
  std::string text;
  std::uint64_t stands_for = 0;  ///< number of removed texts that this one replaces
};

/// An interval in which events of a rank are missing.
struct Gap {
  std::uint32_t rank = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint64_t events = 0;  ///< dropped; 0 if a message was lost as well (number unknown)
  std::uint64_t shed = 0;  ///< of the dropped ones, those shed by a collector; the others: by the rank itself
  std::uint64_t messages = 0;          ///< lost in transit
  std::uint64_t messages_between = 0;  ///< of these, lost between two collectors; the others: from the rank
  bool damaged = false;                ///< not lost: recorded, but unreadable
  bool evicted = false;                ///< were in this store: Store::bound()
  bool cut_off = false;                ///< the recording ends before the run did; 0 events: number unknown
  bool not_kept = false;               ///< deleted within the limits of store::Retention
  std::uint32_t stretches = 1;         ///< number of gaps merged into this one, because there were too many
};

/// Ended spans of one kind and code in a lane.
struct SpanTotal {
  LaneId lane;
  ev::EventKind kind{};  ///< the begin kind
  std::uint8_t code = 0;
  std::int64_t count = 0, total_ns = 0, min_ns = 0, max_ns = 0;
};

}  // namespace shardscope::store
