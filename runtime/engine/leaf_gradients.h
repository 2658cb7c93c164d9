// Gradients of ZeRO-3 leaf modules (C13): they wait for the end of their module's backward and go together,
// in parameter order, so that every rank reduces alike whatever ran inside. What got no gradient goes as
// zero.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/engine/gradients.h"
#include "runtime/execution/context.h"

namespace shardscope::engine {

class LeafGradients {
 public:
  LeafGradients(const execution::Context& context, Gradients& gradients);

  /// A forward visit, not a recomputation: its backward will end in left(), or with the whole backward.
  void entered(plan::ModuleId module);
  /// Takes a gradient that is ready if it has to wait. Returns whether it does.
  [[nodiscard]] bool hold(plan::ParamId param);
  /// The backward of a visit is queued.
  void left(plan::ModuleId module);
  /// Modules whose input needs no gradient have no end of their own (P12).
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
