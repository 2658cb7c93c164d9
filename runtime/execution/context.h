// Objects shared by one rank's engine, optimizer and offloaded states.
#pragma once

#include <cstddef>
#include <cstdint>

#include "instrumentation/gate.h"
#include "kernels/types.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/zero_communicators.h"
#include "runtime/config/config.h"
#include "runtime/device/device.h"
#include "runtime/plan/model_plan.h"

namespace shardscope::execution {

/// Nothing here is owned: the creator of the engine keeps all of it alive.
struct Context {
  const plan::ModelPlan& model;
  const config::TrainingConfig& config;
  device::Device& device;
  comm::Communicator& gather_comm;   ///< all-gathers, on the device's gather stream
  comm::Communicator& reduce_comm;   ///< gradient collectives, on the device's reduce stream
  comm::Communicator& control_comm;  ///< small host values: norms, flags, consolidation
  instrumentation::GateKeeper& gates;
  /// ZeRO++ and MiCS; null if the configuration uses neither.
  const comm::ZeroCommunicators* groups = nullptr;
  /// The ranks with this rank's number in other copies of the model (shardscope.data_parallel_groups); null:
  /// there is one copy. All communicators above are of this copy.
  comm::Communicator* peers = nullptr;

  [[nodiscard]] std::uint32_t rank() const noexcept { return control_comm.rank(); }
  [[nodiscard]] std::uint32_t world() const noexcept { return control_comm.world(); }
  /// Storage type of parameters, activations and the gradients that backward writes.
  [[nodiscard]] kernels::DType type() const noexcept { return config.storage_type(); }
  /// Type in which micro-steps are summed (data_types.grad_accum_dtype): the storage type or fp32.
  [[nodiscard]] kernels::DType sum_type() const noexcept { return config.grad_accum_type; }
  /// Type in which gradients are reduced over ranks (communication_data_type).
  [[nodiscard]] kernels::DType wire_type() const noexcept { return config.communication_type; }
  [[nodiscard]] std::size_t element_bytes() const noexcept { return kernels::size_of(type()); }
  [[nodiscard]] std::size_t bytes_of(std::int64_t elems) const noexcept {
    return static_cast<std::size_t>(elems) * element_bytes();
  }
  [[nodiscard]] std::int64_t elems_of(plan::ParamId param) const {
    return model.params[plan::raw(param)].elems;
  }
};

[[nodiscard]] inline std::size_t bytes_of(std::int64_t elems, kernels::DType type) noexcept {
  return static_cast<std::size_t>(elems) * kernels::size_of(type);
}

/// `elems` elements beyond `base`.
[[nodiscard]] inline kernels::Ptr advance(kernels::Ptr base, std::int64_t elems) noexcept {
  return {static_cast<std::byte*>(base.data) + elems * static_cast<std::int64_t>(kernels::size_of(base.type)),
          base.type};
}
[[nodiscard]] inline kernels::ConstPtr advance(kernels::ConstPtr base, std::int64_t elems) noexcept {
  return {static_cast<const std::byte*>(base.data) +
              elems * static_cast<std::int64_t>(kernels::size_of(base.type)),
          base.type};
}

}  // namespace shardscope::execution
