// Converts CUPTI's records to ours; makes no CUPTI calls.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "runtime/profile/gpu_recorder.h"
#include "runtime/profile/gpu_records.h"
#include "runtime/profile/record_clock.h"

namespace shardscope::profile::cuda {

/// Caches for each kernel name its short name's id and, if the name determines it, its usual lane.
class Names {
 public:
  explicit Names(NameId name_id) : name_id_(std::move(name_id)) {}
  struct Kernel {
    std::uint32_t id = instrumentation::kNoId;
    std::optional<instrumentation::StreamId> usual_lane;
  };
  [[nodiscard]] Kernel of_kernel(const char* symbol);
  [[nodiscard]] Kernel of(instrumentation::GpuWork work);

 private:
  NameId name_id_;
  std::unordered_map<std::string, Kernel> kernels_;  ///< by symbol
  std::unordered_map<int, Kernel> others_;
};

/// Shorter synchronizations are no waits: CUPTI records every query of an event or a stream as one.
inline constexpr std::uint64_t kShortestWaitNs = 5'000;

/// Appends a record to the batch. Work without times (unfinished at a forced flush) counts as dropped. Other
/// kinds are ignored.
void take_record(const CUpti_Activity& record, RecordClock& clock, Names& names, RecordBatch& batch);

}  // namespace shardscope::profile::cuda
