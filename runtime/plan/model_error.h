#pragma once

#include <stdexcept>
#include <string>

namespace shardscope::plan {

/// Throws std::invalid_argument: the place in the model's description ("" for its root), what is wrong there.
[[noreturn]] inline void fail_model(const std::string& where, const std::string& what) {
  throw std::invalid_argument("model: " + (where.empty() ? std::string("root") : where) + ": " + what);
}

}  // namespace shardscope::plan
