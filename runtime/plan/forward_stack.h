// The modules whose forward is running, as in DeepSpeed's FWD_MODULE_STACK (docs/zero.md P10, P11).
#pragma once

#include <span>
#include <vector>

#include "runtime/plan/ids.h"

namespace shardscope::plan {

/// Call enter() and leave() for every forward, a recomputation's too. Modules without hooks (lists) are not
/// on the stack.
class ForwardStack {
 public:
  void enter(ModuleId module) { running_.push_back(module); }
  /// The forward of the innermost module has ended.
  void leave() {
    if (!running_.empty()) running_.pop_back();
  }
  /// A new iteration: drops entries of an aborted iteration.
  void clear() { running_.clear(); }
  /// The modules around the innermost one, whose forward ends now; outermost first.
  [[nodiscard]] std::span<const ModuleId> around() const noexcept {
    return {running_.data(), running_.empty() ? 0 : running_.size() - 1};
  }

 private:
  std::vector<ModuleId> running_;
};

}  // namespace shardscope::plan
