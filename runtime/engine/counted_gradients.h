// The owned gradients that a rank counts, so that the sum over ranks has each element once: their sum of
// squares, whether they are finite and, if not, which parameter is not.
#pragma once

#include <cstdint>

#include "runtime/engine/gradients.h"
#include "runtime/execution/context.h"
#include "runtime/optim/gradient_norm.h"
#include "runtime/optim/gradient_parts.h"
#include "runtime/plan/ownership.h"
#include "runtime/plan/partition.h"

namespace shardscope::engine {

class CountedGradients {
 public:
  /// All arguments must outlive this object.
  CountedGradients(const execution::Context& context, const Gradients& gradients,
                   const plan::Ownership& ownership);

  /// Queues the sum of squares on the compute stream, once the owned gradients are complete there.
  void queue();
  /// Waits for it. If another rank counts this rank's copy of the shard, the sum of squares is 0.
  [[nodiscard]] optim::GradientNorm::Local read();
  /// Emits which parameter is not finite. Call only if read() found such an element, so that it costs nothing
  /// in other steps: the host waits once for each parameter of the partition.
  void name_not_finite(std::uint32_t step);

 private:
  [[nodiscard]] plan::Range range() const;
  [[nodiscard]] optim::GradientParts parts() const;
  [[nodiscard]] bool counts() const;

  const execution::Context& context_;
  const Gradients& gradients_;
  const plan::Ownership& ownership_;
  optim::GradientNorm norm_;
};

}  // namespace shardscope::engine
