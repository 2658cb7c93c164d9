// What an exception says to a user.
#pragma once

#include <exception>
#include <new>

namespace shardscope::instrumentation {

/// The standard library says "std::bad_alloc" of memory that the machine does not have.
[[nodiscard]] inline const char* error_text(const std::exception& error) noexcept {
  return dynamic_cast<const std::bad_alloc*>(&error) == nullptr
             ? error.what()
             : "this machine does not have the memory that it takes";
}

}  // namespace shardscope::instrumentation
