// Records of a GPU profiler in plain form: times are nanoseconds of this host's monotonic clock, names are
// ids of Publisher::name_id. cuda/cupti_records.cpp fills them from CUPTI's records; all later code is
// independent of the driver.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "instrumentation/event.h"

namespace shardscope::profile {

/// A call of the host that queued work, from its entry to its return.
struct LaunchRecord {
  std::uint32_t correlation = 0;  ///< the same in the records of the work it queued
  std::uint32_t thread = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
};

/// The id that was pushed when a call was made: owner_id().
struct OwnerRecord {
  std::uint32_t correlation = 0;
  std::uint64_t owner = 0;
};

/// A kernel, a copy or a memset on a CUDA stream.
struct WorkRecord {
  instrumentation::GpuWork work{};
  std::uint32_t name = instrumentation::kNoId;
  std::uint32_t stream = 0;  ///< CUPTI's id of the CUDA stream
  std::uint32_t correlation = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t amount = 0;                              ///< bytes; threads of a kernel
  std::optional<instrumentation::StreamId> usual_lane;  ///< of this kind of work, if its stream is unknown
};

/// A call in which the host waited.
struct SyncRecord {
  instrumentation::GpuSync sync{};
  std::uint32_t stream = instrumentation::kNoId;
  std::int64_t begin_ns = 0, end_ns = 0;
};

/// Memory allocated from or returned to the driver.
struct MemoryRecord {
  instrumentation::MemoryPool pool{};
  bool freed = false;
  std::int64_t bytes = 0;
  std::uint64_t address = 0;
  std::int64_t at_ns = 0;
};

/// The records of one flush.
struct RecordBatch {
  std::vector<LaunchRecord> launches;
  std::vector<OwnerRecord> owners;
  std::vector<WorkRecord> work;
  std::vector<SyncRecord> syncs;
  std::vector<MemoryRecord> memory;
  std::uint64_t dropped = 0;  ///< records that CUPTI had no room for
  /// When the earliest buffer still being filled was taken: work in it was queued later.
  std::int64_t held_since_ns = INT64_MAX;
  [[nodiscard]] std::size_t records() const noexcept {
    return launches.size() + owners.size() + work.size() + syncs.size() + memory.size();
  }
  void clear() noexcept {
    launches.clear();
    owners.clear();
    work.clear();
    syncs.clear();
    memory.clear();
    dropped = 0;
    held_since_ns = INT64_MAX;
  }
};

}  // namespace shardscope::profile
