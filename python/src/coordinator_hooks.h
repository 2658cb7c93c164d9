#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace shardscope::python {

/// What ModuleHooks calls at a release.
class KeptReasons {
 public:
  KeptReasons() = default;
  KeptReasons(const KeptReasons&) = delete;
  KeptReasons& operator=(const KeptReasons&) = delete;
  virtual ~KeptReasons() = default;
  /// Emits why parameters of the module, whose number is given, stay.
  virtual void kept(nanobind::handle coordinator, nanobind::handle module, std::uint32_t number) = 0;
};

/// `CoordinatorHooks`: hooks before and after methods of DeepSpeed's parameter coordinator.
void add_coordinator_hooks(nanobind::module_& module);

}  // namespace shardscope::python
