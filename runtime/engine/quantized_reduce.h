// qgZ: gradients are reduced to their owners as int4, in two hops (ZeRO++; docs/zero.md P19). Inside the node
// every rank receives from each peer the slices owned by the ranks with its own local rank on all nodes; it
// sums them, rounds the sums to int4 again and exchanges them with those ranks. Each element crosses between
// nodes once per node instead of once per rank, and in four bits.
//
// With zeropp_loco_param the rounding error of each hop is added to the next gradient (LoCo).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops.h"
#include "runtime/execution/context.h"
#include "runtime/plan/quantization.h"

namespace shardscope::engine {

class QuantizedReduce {
 public:
  /// `context` must outlive it. Throws std::invalid_argument if it has no intra- and inter-node
  /// communicators.
  explicit QuantizedReduce(const execution::Context& context);

  /// Whether this parameter's gradient is reduced here; the others are reduce-scattered.
  [[nodiscard]] bool takes(plan::ParamId param) const;

  /// The whole gradient of one parameter in the wire type, and memory for this rank's slice.
  struct Part {
    plan::ParamId param{};
    kernels::ConstPtr gradient;
    kernels::Ptr out;
  };
  /// out = factor * sum over all ranks, rounded twice to int4. Queued on the reduce stream.
  void reduce(std::span<const Part> parts, float factor, comm::CollectiveLabel label);
  /// End of an optimizer step: LoCo resets its errors every reset_T steps.
  void end_step(std::uint32_t step);

 private:
  /// int4 values and scales of `slices` slices, one after the other.
  struct Values {
    device::Buffer values;     ///< [slices, groups.elems / 2] bytes, two int4 in each
    device::Buffer scales;     ///< [slices, groups.groups] fp32
    plan::QuantGroups groups;  ///< of one slice
    [[nodiscard]] kernels::Int4Source slice(std::int64_t index) const;
    [[nodiscard]] std::uint8_t* values_at(std::int64_t index) const;
    [[nodiscard]] float* scales_at(std::int64_t index) const;
  };
  /// LoCo: the quantization error of each of these slices.
  struct Error {
    device::Buffer values;  ///< [slices, groups.elems] int8
    device::Buffer scales;  ///< [slices, groups.groups] fp32
  };
  struct Errors {
    Error first, second;
  };
  /// One parameter between the hops.
  struct Travel {
    Part part;
    plan::QuantGroups groups;
    Values first_out, first_in, second_out, second_in;
  };

  void first_hop(std::vector<Travel>& travels, comm::CollectiveLabel label);
  void second_hop(std::vector<Travel>& travels, comm::CollectiveLabel label);
  /// Exchanges values and scales; `slices` go to each rank of `comm`.
  void exchange(comm::Communicator& comm, std::vector<Travel>& travels, Values Travel::*out,
                Values Travel::*in, std::int64_t slices, comm::CollectiveLabel label);
  [[nodiscard]] Values allocate(const plan::QuantGroups& groups, std::int64_t slices, std::uint32_t param);
  [[nodiscard]] kernels::ErrorFeedback feedback(Error& error, const plan::QuantGroups& groups,
                                                std::int64_t slices, std::int64_t index, std::uint32_t param);
  [[nodiscard]] device::Stream& stream() const { return context_.device.reduce(); }

  const execution::Context& context_;
  comm::Communicator& inside_;
  comm::Communicator& between_;
  const plan::Topology topology_;
  const std::vector<std::uint32_t> order_;  ///< plan::swizzle
  std::vector<Errors> errors_;              ///< by ParamId; of the reduce stream
  std::int64_t steps_ = 0;
};

}  // namespace shardscope::engine
