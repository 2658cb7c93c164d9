// Gradients of ZeRO-3 leaf modules (C13): they wait for the end of their module's backward and become ready
// together, in parameter order, so that every rank reduces the same list whatever ran inside. Parameters
// without a gradient contribute zero.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/engine/gradients.h"
#include "runtime/execution/context.h"

namespace shardscope::engine {

class LeafGradients {
 public:
  LeafGradients(const execution::Context& context, Gradients& gradients);

  /// A forward visit, not a recomputation: its backward ends in left() or with the whole backward.
  void entered(plan::ModuleId module);
  /// Holds back a complete gradient if it has to wait for a leaf module. Returns whether it does.
  [[nodiscard]] bool hold(plan::ParamId param);
  /// The backward of a visit is queued.
  void left(plan::ModuleId module);
  /// End of the whole backward, for modules whose input needs no gradient, which have no left() (P12).
  void end_backward();

 private:
  void give(plan::ModuleId module);

  const execution::Context& context_;
  Gradients& gradients_;
  std::vector<std::vector<plan::ParamId>> params_;  ///< by ModuleId
  std::vector<plan::ModuleId> leaf_of_;             ///< by ParamId
  std::vector<bool> ready_;                         ///< by ParamId: held
  std::vector<std::uint32_t> visits_;               ///< by ModuleId: visits whose backward is to come
};

}  // namespace shardscope::engine
