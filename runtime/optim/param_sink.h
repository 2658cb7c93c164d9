// Where the optimizer's new parameters go: the parameter storage implements it, the optimizer writes to it,
// and neither knows where the other's memory is.
#pragma once

#include <cstdint>

#include "kernels/types.h"
#include "runtime/plan/partition.h"

namespace shardscope::optim {

class ParamSink {
 public:
  ParamSink() = default;
  virtual ~ParamSink() = default;
  ParamSink(const ParamSink&) = delete;
  ParamSink& operator=(const ParamSink&) = delete;

  /// The owned range (plan::Ownership) in device memory, storage type, for the compute stream to write in
  /// place; data is null when a part of it rests elsewhere and put() is the only way in.
  [[nodiscard]] virtual kernels::Ptr in_place() noexcept = 0;
  /// Queues taking new values of `range` (elements of the owned range) from `from`: device or host memory in
  /// storage type that stays until the copy stream has come here. Runs on the copy stream; `group` is the
  /// sub-group, for events.
  virtual void put(plan::Range range, const void* from, std::uint32_t group) = 0;
};

}  // namespace shardscope::optim
