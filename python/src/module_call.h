// Calls of modules, as the hooks of their forward and backward share them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace shardscope::python {

/// How a module is recorded: with gates; one in a model of groups, which have the gates; the module of a
/// group, whose spans and gates FSDP2's hooks emit.
enum class Watched : std::uint8_t { gated, plain, group };

/// A call of a module, within the calls around it.
struct ModuleCall {
  std::uint32_t module;
  std::uint8_t pass;
  Watched how;
  std::shared_ptr<const ModuleCall> outer;  ///< null: the outermost

  /// The calls around `call` and itself, the outermost first.
  [[nodiscard]] static std::vector<std::shared_ptr<const ModuleCall>> path(
      std::shared_ptr<const ModuleCall> call) {
    std::vector<std::shared_ptr<const ModuleCall>> calls;
    for (; call != nullptr; call = call->outer) calls.push_back(call);
    std::reverse(calls.begin(), calls.end());
    return calls;
  }
};
using Calls = std::vector<std::shared_ptr<const ModuleCall>>;

}  // namespace shardscope::python
