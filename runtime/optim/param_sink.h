// Where the optimizer's new parameters go: the parameter storage implements it, the optimizer writes to it,
// and neither knows where the other's memory is.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "kernels/types.h"
#include "runtime/device/device.h"
#include "runtime/plan/ids.h"
#include "runtime/plan/partition.h"

namespace shardscope::optim {

/// A parameter's part of the owned range where it is stored: device memory for the compute stream, or host
/// memory for the worker stream.
struct StoredPart {
  kernels::Ptr data;
  device::Stream* stream = nullptr;
};
/// Whether a part was changed while it was open.
enum class PartUse : std::uint8_t { read, changed };

class ParamSink {
 public:
  ParamSink() = default;
  virtual ~ParamSink() = default;
  ParamSink(const ParamSink&) = delete;
  ParamSink& operator=(const ParamSink&) = delete;

  /// Storage type of the parameters.
  [[nodiscard]] virtual kernels::DType type() const noexcept = 0;
  /// Whether the owned range (plan::Ownership) is in device memory for the compute stream to write in place;
  /// false when a part of it is stored elsewhere and put() is the only way in.
  [[nodiscard]] virtual bool in_place() const noexcept = 0;
  /// Where in_place(): elements [range) of the owned range, which lie in one sub-group. Sub-groups of several
  /// parameter groups are apart.
  [[nodiscard]] virtual kernels::Ptr at(plan::Range) {
    throw std::logic_error("parameters that are not in place have no address");
  }
  /// Queues taking new values of `range` (elements of the owned range) from `from`: device or host memory in
  /// storage type that stays until the copy stream has come here. Runs on the copy stream; `group` is the
  /// sub-group, for events.
  virtual void put(plan::Range range, const void* from, std::uint32_t group) = 0;
  /// Where they are not in_place(): queues bringing the part of `param` to memory, from NVMe through a
  /// buffer. Work queued on the part's stream follows all that was queued on the copy stream. One at a time;
  /// close() is called when that work is queued.
  [[nodiscard]] virtual StoredPart open(plan::ParamId) {
    throw std::logic_error("parameters that are in place are not opened");
  }
  /// What is queued on the copy stream from now on follows the work on the part.
  virtual void close(plan::ParamId, PartUse) {
    throw std::logic_error("parameters that are in place are not closed");
  }
};

}  // namespace shardscope::optim
