#include "app/collector/gate_names.h"

#include <algorithm>

namespace shardscope::collector {

using instrumentation::GateKind;

void GateNames::learn(const instrumentation::RunTables& tables) {
  for (std::size_t m = names_.size(); m < std::min(tables.modules.size(), kMostNames); ++m) {
    const instrumentation::ModuleInfo& module = tables.modules[m];
    names_.push_back(module.path.empty() ? module.type : module.path);  // a root has no path
  }
}

std::string GateNames::name(GateKind kind, std::uint32_t id) const {
  const auto module = [&](const char* when) {
    const bool known = id < names_.size() && !names_[id].empty();
    return std::string(when) + " " + (known ? names_[id] : "module " + std::to_string(id));
  };
  switch (kind) {
    case GateKind::step:
      return "step " + std::to_string(id);
    case GateKind::micro_step:
      return "micro-step " + std::to_string(id);
    case GateKind::pre_forward:
      return module("before the forward of");
    case GateKind::post_forward:
      return module("after the forward of");
    case GateKind::pre_backward:
      return module("before the backward of");
    case GateKind::post_backward:
      return module("after the backward of");
    case GateKind::bucket:
      return "the flush of bucket " + std::to_string(id);
    case GateKind::optimizer:
      return "the optimizer of step " + std::to_string(id);
  }
  return "a gate that this program does not know";
}

}  // namespace shardscope::collector
