// Which of its owned gradients a rank counts, so that the sum over ranks has each element once: their sum of
// squares, whether they are finite and, where they are not, whose it is.
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
  /// Everything named outlives this.
  CountedGradients(const execution::Context& context, const Gradients& gradients,
                   const plan::Ownership& ownership);

  /// Queues the sum of squares on the compute stream, once the owned gradients are complete there.
  void queue();
  /// Waits for it. A copy of a shard that another rank counts has a sum of squares of 0.
  [[nodiscard]] optim::GradientNorm::Local read();
  /// read() has found an element that is not finite: emits whose it is. Only then, so that a step whose
  /// gradients are finite pays nothing for it; the host waits once for each parameter of the partition.
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
