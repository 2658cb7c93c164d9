// The name of a module, used everywhere.
#pragma once

#include <cstdint>
#include <string>

#include "app/store/store.h"

namespace shardscope::store {

/// Its path; for the root, which has none, the model's name. "module 7" where the tables lack it, "no module"
/// for kNoId.
[[nodiscard]] std::string module_name(const Store& store, std::uint32_t module);

}  // namespace shardscope::store
