// Common parts of the C interface's functions: status codes with a message per thread, and structures that
// begin with their size.
#pragma once

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "shardscope/shardscope.h"

namespace shardscope::instrumentation::c_api {

/// An error and its status code.
class Failure : public std::runtime_error {
 public:
  Failure(shardscope_status status, const std::string& words) : std::runtime_error(words), status_(status) {}
  [[nodiscard]] shardscope_status status() const noexcept { return status_; }

 private:
  shardscope_status status_;
};

/// Throws Failure with SHARDSCOPE_INVALID_ARGUMENT unless `good`.
inline void require(bool good, const std::string& words) {
  if (!good) throw Failure(SHARDSCOPE_INVALID_ARGUMENT, words);
}
/// The same for a literal: it costs nothing if the check passes, as at every gate.
inline void require(bool good, const char* words) {
  if (!good) throw Failure(SHARDSCOPE_INVALID_ARGUMENT, words);
}

/// Stores the message for shardscope_last_error() of this thread. Never throws.
void remember(const char* words) noexcept;
/// Converts the current exception into its status code and stores its message.
[[nodiscard]] shardscope_status status_of_exception() noexcept;

/// Whether this process is a fork of one that had the library loaded: its threads do not exist here and locks
/// may never be released (fork.cpp).
[[nodiscard]] bool is_forked_child() noexcept;

/// Runs the body of a C function and converts exceptions into a status.
template <typename Body>
[[nodiscard]] shardscope_status guarded(Body&& body) noexcept {
  try {
    if (is_forked_child())
      throw Failure(SHARDSCOPE_INVALID_STATE,
                    "this process was forked from the one that has the run; only that one may use it");
    body();
    return SHARDSCOPE_OK;
  } catch (...) {
    return status_of_exception();
  }
}

/// The caller's structure in this library's version: fields that are missing in an older header keep the
/// defaults of `known`. Fields that only a newer header has must be zero: they could not be obeyed.
template <typename Sized>
[[nodiscard]] Sized take(const Sized* given, Sized known, const char* name) {
  require(given != nullptr, std::string(name) + " is NULL");
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  require(size > sizeof size && size <= (1U << 16), std::string(name) + ".size is " + std::to_string(size) +
                                                        "; begin with the SHARDSCOPE_..._INIT macro");
  std::memcpy(static_cast<void*>(&known), given, std::min(size, sizeof known));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  require(
      std::all_of(bytes + std::min(size, sizeof known), bytes + size, [](unsigned char b) { return b == 0; }),
      std::string(name) + " sets fields that this library (" + shardscope_version() +
          ") does not know; use one as new as the header");
  return known;
}

[[nodiscard]] inline std::string text_or_empty(const char* text) { return text != nullptr ? text : ""; }

/// Throws if the text is longer than a collector accepts.
[[nodiscard]] inline std::string limited(const char* text, std::size_t limit, const char* name) {
  std::string out = text_or_empty(text);
  require(out.size() <= limit, std::string(name) + " has " + std::to_string(out.size()) + " bytes, at most " +
                                   std::to_string(limit) + " are allowed");
  return out;
}

}  // namespace shardscope::instrumentation::c_api
