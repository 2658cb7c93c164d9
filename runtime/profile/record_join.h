// Joins the records of the GPU's work with those of the calls that launched it, and makes our events of them.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "instrumentation/event.h"
#include "runtime/profile/gpu_lanes.h"
#include "runtime/profile/gpu_records.h"

namespace shardscope::profile {

/// An event and its time on the host's monotonic clock.
using TimedEvent = std::pair<std::int64_t, instrumentation::Event>;

/// [Note: what is known up to when]
/// CUPTI gives buffers back in no order: work may come before the record of its launch, and a buffer in which
/// something still runs does not come at all, with the launches of a thread that it holds beside their work.
/// So work waits one flush for its launch. All of it is known up to the flush, to when the first buffer was
/// taken that has not come back, or to the earliest launch whose work has not been seen, whichever is
/// earliest: work begins after its launch. A launch of which nothing came for kGiveUp queued nothing that is
/// recorded, or its record was dropped; it holds up nothing any more. The same work is launched through
/// several calls at times, one inside the other: only the outermost can be waited for.
/// What claims to have happened clearly before recording began or after the flush that brought it has a wrong
/// time, and would push all that comes later off its lane: it counts as dropped.
class RecordJoin {
 public:
  static constexpr std::int64_t kGiveUpNs = 3'000'000'000;
  static constexpr std::int64_t kWrongByNs = 1'000'000'000;

  /// `begin_ns`: when recording began.
  RecordJoin(GpuLanes lanes, std::int64_t begin_ns);
  void add(const RecordBatch& batch);
  /// Everything that is settled, ready to be emitted in this order. `flushed_ns`: just before the flush that
  /// brought the latest batch. `tolerance_ns`: what the conversion of clocks may be wrong by.
  [[nodiscard]] std::vector<TimedEvent> take(std::int64_t flushed_ns, std::int64_t tolerance_ns);
  /// The same at the end: nothing waits any more.
  [[nodiscard]] std::vector<TimedEvent> take_all(std::int64_t flushed_ns, std::int64_t tolerance_ns);
  /// Work that fitted in no lane so far.
  [[nodiscard]] std::uint64_t not_placed() const noexcept { return not_placed_; }
  /// Launches remembered: bounded by kGiveUpNs of launching.
  [[nodiscard]] std::size_t remembered() const noexcept { return launches_.size(); }

 private:
  struct Launch {
    std::int64_t begin_ns = 0;
    bool pending = true;  ///< no work of it yet
  };
  struct Call {
    std::uint32_t correlation = 0;
    std::int64_t begin_ns = 0, end_ns = 0;
  };
  struct Waiting {
    WorkRecord record;
    std::uint64_t since_flush = 0;
  };

  void add_launch(const LaunchRecord& launch);
  [[nodiscard]] std::vector<TimedEvent> settle(std::int64_t flushed_ns, std::int64_t tolerance_ns, bool end);
  void emit_work(const WorkRecord& record, std::int64_t tolerance_ns, std::vector<TimedEvent>& out);
  void forget(std::int64_t before_ns);
  void drop_impossible(std::int64_t flushed_ns);

  GpuLanes lanes_;
  const std::int64_t begin_ns_;
  std::int64_t known_until_ns_;
  std::int64_t sync_end_ns_ = INT64_MIN;
  std::int64_t held_since_ns_ = INT64_MAX;  ///< as the latest batch says
  std::uint64_t flush_ = 0;
  std::uint64_t not_placed_ = 0;
  std::unordered_map<std::uint32_t, Launch> launches_;          ///< by correlation
  std::unordered_map<std::uint32_t, std::uint64_t> owners_;     ///< by correlation
  std::unordered_map<std::uint32_t, std::vector<Call>> calls_;  ///< by thread: latest ones, in order of begin
  std::vector<Waiting> waiting_;
  std::vector<SyncRecord> syncs_;
  std::vector<MemoryRecord> memory_;
  // Since the last gpu_records.
  std::uint64_t records_ = 0, dropped_ = 0;
  std::uint32_t no_place_ = 0, no_launch_ = 0;
};

}  // namespace shardscope::profile
