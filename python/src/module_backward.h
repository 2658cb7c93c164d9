// Spans of modules in the backward, begun and ended by hooks of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "module_call.h"
#include "session.h"

namespace shardscope::python {

/// torch calls the hooks of one tensor in the order in which they were registered: where a group returns what
/// a module in it returned, that module's backward would begin before its group's, and where a module returns
/// what a group returned, after it. So the order of spans is that of the calls: a module waits until its
/// group has begun, and a group's backward begins those around it first. Requires the GIL.
class ModuleBackward {
 public:
  /// `session` must outlive this.
  explicit ModuleBackward(SessionState& session) : session_(session) {}

  /// The first gradient of a call's outputs is ready: the calls around it have begun, others have ended.
  void begin(const std::shared_ptr<const ModuleCall>& call);
  /// The gradient of one of its inputs is ready.
  void end(const std::shared_ptr<const ModuleCall>& call);
  /// FSDP2's hook before the backward of a group, by the number of its module, has run.
  void group_begun(std::uint32_t module);
  /// The forward of a group's module has returned.
  void of_group(std::shared_ptr<const ModuleCall> call) { groups_[call->module] = std::move(call); }

  /// The innermost call whose backward is open; null: none.
  [[nodiscard]] std::shared_ptr<const ModuleCall> innermost() const {
    return open_.empty() ? nullptr : open_.back();
  }
  /// Calls that wait for their group: left over after an exception.
  void forget_early() { early_.clear(); }
  void forget();

 private:
  /// Closes all but the outermost `count`. FSDP2's hooks end the spans of groups.
  void close(std::size_t count);

  SessionState& session_;
  Calls open_;   ///< calls whose backward is open, the outermost first
  Calls early_;  ///< calls whose backward has begun before that of their group
  std::unordered_map<std::uint32_t, std::shared_ptr<const ModuleCall>> groups_;  ///< latest, by module
};

}  // namespace shardscope::python
