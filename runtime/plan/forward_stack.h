// The modules whose forward is running, as DeepSpeed's FWD_MODULE_STACK knows them (docs/zero.md P10, P11).
#pragma once

#include <span>
#include <vector>

#include "runtime/plan/ids.h"

namespace shardscope::plan {

/// Call enter() and leave() for every forward, a recomputation's too. Modules without hooks (lists) are left
/// out.
class ForwardStack {
 public:
  void enter(ModuleId module) { running_.push_back(module); }
  /// The innermost one is through.
  void leave() {
    if (!running_.empty()) running_.pop_back();
  }
  /// A new iteration: drops what an aborted iteration left.
  void clear() { running_.clear(); }
  /// Outermost first, without the innermost: what runs around the module whose forward ends now.
  [[nodiscard]] std::span<const ModuleId> around() const noexcept {
    return {running_.data(), running_.empty() ? 0 : running_.size() - 1};
  }

 private:
  std::vector<ModuleId> running_;
};

}  // namespace shardscope::plan
