// Private to the decoder: checks of a single field, and the limit on the memory that a frame may unpack to.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "instrumentation/possible_time.h"

namespace shardscope::instrumentation::wire {

/// Thrown and caught inside decode(): a field has a value that no correct sender writes.
struct BadValue : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// `what` is a literal: it costs nothing if the check passes.
inline void require(bool good, const char* what) {
  if (!good) throw BadValue(what);
}

/// Sets the limit for this thread's next frame from its size in bytes; spend() throws beyond it.
void set_budget(std::size_t frame_bytes) noexcept;
/// Call before the copy is made, so that a frame never allocates much more memory than its limit.
void spend(std::size_t bytes);

/// A copy, charged to the budget; `limit` in bytes, `what` for the message.
[[nodiscard]] std::string text_of(const flatbuffers::String* s, std::size_t limit, const char* what);
/// Any length within the budget; validate() checks the ids themselves.
[[nodiscard]] std::vector<std::uint32_t> ids_of(const flatbuffers::Vector<std::uint32_t>* v);

/// For enumerations that count from 0 without gaps. A larger number would become a value that no switch
/// handles.
template <typename Enum>
[[nodiscard]] Enum enum_of(int value, Enum last, const char* what) {
  require(value >= 0 && value <= static_cast<int>(last), what);
  return static_cast<Enum>(value);
}

[[nodiscard]] inline std::int64_t time_of(std::int64_t ns) {
  require(is_time(ns), "a time is out of range");
  return ns;
}

}  // namespace shardscope::instrumentation::wire
