// Message of an exception for users.
#pragma once

#include <exception>
#include <new>

namespace shardscope::instrumentation {

/// Replaces "std::bad_alloc" by a message that says what is missing.
[[nodiscard]] inline const char* error_text(const std::exception& error) noexcept {
  return dynamic_cast<const std::bad_alloc*>(&error) == nullptr
             ? error.what()
             : "this machine does not have the memory that it takes";
}

}  // namespace shardscope::instrumentation
