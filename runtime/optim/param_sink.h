// Receives the optimizer's new parameters: implemented by the parameter storage, called by the optimizer;
// neither depends on where the other's memory is.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "kernels/types.h"
#include "runtime/device/device.h"
#include "runtime/plan/ids.h"
#include "runtime/plan/partition.h"

namespace shardscope::optim {

/// A parameter's part of the owned range in its storage: device memory for the compute stream, or host memory
/// for the worker stream.
struct StoredPart {
  kernels::Ptr data;  ///< [elements of the part], of ParamSink::type()
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
  /// false if a part of it is stored elsewhere, so that it must be written by put().
  [[nodiscard]] virtual bool in_place() const noexcept = 0;
  /// Where in_place(): elements [range) of the owned range, which lie in one sub-group. Sub-groups of
  /// different parameter groups are not contiguous.
  [[nodiscard]] virtual kernels::Ptr at(plan::Range) {
    throw std::logic_error("parameters that are not in place have no address");
  }
  /// Queues copying new values of `range` (elements of the owned range) from `from`: device or host memory in
  /// storage type that stays valid until the copy stream has reached this point. Runs on the copy stream;
  /// `group` is the sub-group, for events.
  virtual void put(plan::Range range, const void* from, std::uint32_t group) = 0;
  /// Where they are not in_place(): queues loading the part of `param` to memory, from NVMe through a buffer.
  /// Work queued on the part's stream is ordered after all work queued on the copy stream. One at a time;
  /// close() is called when that work is queued.
  [[nodiscard]] virtual StoredPart open(plan::ParamId) {
    throw std::logic_error("parameters that are in place are not opened");
  }
  /// Work queued on the copy stream from now on is ordered after the work on the part.
  virtual void close(plan::ParamId, PartUse) {
    throw std::logic_error("parameters that are in place are not closed");
  }
};

}  // namespace shardscope::optim
