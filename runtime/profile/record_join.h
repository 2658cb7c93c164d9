// Joins the records of the GPU's work with those of the calls that launched it, and converts them to events.
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
/// CUPTI returns buffers in no order: work may arrive before the record of its launch, and a buffer with
/// unfinished work does not arrive at all, nor do launches in it. So work waits one flush for its launch. All
/// work is known up to the earliest of: the flush, the time at which the first buffer not yet returned was
/// taken, and the earliest launch whose work has not arrived, since work begins after its launch. A launch
/// without work for kGiveUpNs queued nothing that is recorded, or its record was dropped; it no longer delays
/// events. Some work is launched through several nested calls: only the outermost is waited for. A record
/// with a time clearly before recording began or after its flush is wrong, and would push all later work off
/// its lane: it counts as dropped.
class RecordJoin {
 public:
  static constexpr std::int64_t kGiveUpNs = 3'000'000'000;
  static constexpr std::int64_t kWrongByNs = 1'000'000'000;

  /// `begin_ns`: when recording began.
  RecordJoin(GpuLanes lanes, std::int64_t begin_ns);
  void add(const RecordBatch& batch);
  /// All final events, in the order to emit them. `flushed_ns`: time just before the flush of the latest
  /// batch. `tolerance_ns`: error bound of the clock conversion.
  [[nodiscard]] std::vector<TimedEvent> take(std::int64_t flushed_ns, std::int64_t tolerance_ns);
  /// The same at the end of recording: returns all remaining events.
  [[nodiscard]] std::vector<TimedEvent> take_all(std::int64_t flushed_ns, std::int64_t tolerance_ns);
  /// Number of work records so far that fitted in no lane.
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
