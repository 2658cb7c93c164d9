// The states of a rank between two steps, as fp32 on the host: those of its owned range, stored by the
// optimizer, and after it the frozen weights, stored with the parameters in the storage type.
#pragma once

#include <vector>

#include "runtime/engine/parameters.h"
#include "runtime/execution/context.h"
#include "runtime/optim/optimizer_state.h"
#include "runtime/plan/ownership.h"

namespace shardscope::engine {

class HeldStates {
 public:
  /// All arguments must outlive this object.
  HeldStates(const execution::Context& context, const plan::Ownership& ownership,
             optim::OptimizerState& optimizer, Parameters& parameters)
      : context_(context), ownership_(ownership), optimizer_(optimizer), parameters_(parameters) {}

  /// The kinds of the owned range; frozen weights have `master` only.
  [[nodiscard]] std::vector<base::StateKind> kinds() const { return optimizer_.kinds(); }
  /// Elements [range), numbered as plan::OwnedSlice does, within the slices of `param` or, in the owned
  /// range, of parameters that follow it. Call between steps; synchronous. Throws std::logic_error for frozen
  /// weights and a kind other than `master`.
  void read(base::StateKind kind, plan::ParamId param, plan::Range range, float* to);
  /// A frozen weight is rounded to the storage type.
  void write(base::StateKind kind, plan::ParamId param, plan::Range range, const float* from);

 private:
  [[nodiscard]] std::int64_t first_elem(plan::ParamId param) const;
  void check(base::StateKind kind, plan::ParamId param) const;

  const execution::Context& context_;
  const plan::Ownership& ownership_;
  optim::OptimizerState& optimizer_;
  Parameters& parameters_;
};

}  // namespace shardscope::engine
