// How the parameters of a plan::Gather become whole: over which ranks and by which collectives. Where their
// memory is and when they are gathered is decided elsewhere (partitioned_parameters.cpp).
#pragma once

#include <span>

#include "runtime/engine/context.h"
#include "runtime/plan/ownership.h"

namespace shardscope::engine {

class GatherPath {
 public:
  /// What it is given outlives it.
  GatherPath(const Context& context, const plan::Ownership& ownership);

  /// One parameter of a gather: this rank's shard and room for the whole, padding included. The shard may
  /// lie at its place in the whole.
  struct Part {
    plan::ParamId param{};
    const void* shard = nullptr;
    void* whole = nullptr;
  };
  /// Queues the collectives of one gather on the gather stream.
  void gather(std::span<const Part> parts, comm::CollectiveLabel label);

 private:
  const Context& context_;
  const plan::Ownership& ownership_;
};

}  // namespace shardscope::engine
