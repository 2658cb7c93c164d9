#pragma once

#include <stdexcept>
#include <string>

namespace shardscope::plan {

/// Throws std::invalid_argument: `where` is the path in the model's description ("" for its root).
[[noreturn]] inline void fail_model(const std::string& where, const std::string& what) {
  throw std::invalid_argument("model: " + (where.empty() ? std::string("root") : where) + ": " + what);
}

}  // namespace shardscope::plan
