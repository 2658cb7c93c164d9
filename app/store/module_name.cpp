#include "app/store/module_name.h"

namespace shardscope::store {

std::string module_name(const Store& store, std::uint32_t module) {
  if (module == ev::kNoId) return "no module";
  const auto& modules = store.tables().modules;
  if (module >= modules.size()) return "module " + std::to_string(module);
  if (!modules[module].path.empty()) return modules[module].path;
  return store.tables().model.empty() ? "model" : store.tables().model;
}

}  // namespace shardscope::store
