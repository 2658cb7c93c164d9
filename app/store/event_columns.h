// Shared by the encoder and the decoder of a chunk's columns: how events are grouped and predicted.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "instrumentation/event.h"

namespace shardscope::store {

// [Note: columns grouped by tag]
// A tag is one combination of kind, stream and code; a run has a few dozen. The tag column holds the tag of
// each event; the time column holds differences between consecutive events. Every other
// field is stored tag by tag, as the difference from the previous event of the same tag, because events of
// one tag resemble each other (the next module, the next gather) and their neighbours in time do not.
// A field that never changes within a tag (mostly kNoId) has its bit in the tag's mask unset and takes
// no bytes. v1 of memory events ("pool bytes after") is predicted from the pool's previous event.
inline constexpr std::size_t kColumnFields = 5;  ///< a, b, c, v0, v1

// [Note: states apart]
// Parameter statuses, memory and gradient buckets make up the state at a time, and are a third of a run's
// events; spans are most of the others. In a large chunk each of the two has columns of its own, so that a
// query for one does not decode the other. How they alternate is stored as run lengths.
[[nodiscard]] constexpr bool is_of_state(instrumentation::EventKind kind) noexcept {
  return instrumentation::role_of(kind) == instrumentation::EventRole::state;
}

static_assert(offsetof(instrumentation::Event, kind) == 8 && offsetof(instrumentation::Event, stream) == 10 &&
              offsetof(instrumentation::Event, code) == 11);
static_assert(std::endian::native == std::endian::little, "a tag's key is read as it lies in the event");

/// The combination of kind, stream and code as one number, as the tag table stores it.
[[nodiscard]] inline std::uint32_t tag_key(const instrumentation::Event& event) noexcept {
  std::uint32_t key = 0;
  std::memcpy(&key, reinterpret_cast<const std::byte*>(&event) + offsetof(instrumentation::Event, kind),
              sizeof key);
  return key;
}
inline void set_tag_key(instrumentation::Event& event, std::uint32_t key) noexcept {
  std::memcpy(reinterpret_cast<std::byte*>(&event) + offsetof(instrumentation::Event, kind), &key,
              sizeof key);
}
[[nodiscard]] constexpr instrumentation::EventKind kind_of(std::uint32_t key) noexcept {
  return static_cast<instrumentation::EventKind>(key & 0xFFFFU);
}
[[nodiscard]] constexpr bool is_memory(std::uint32_t key) noexcept {
  return kind_of(key) == instrumentation::EventKind::memory_alloc ||
         kind_of(key) == instrumentation::EventKind::memory_free;
}

// Differences wrap, so that any values are restored exactly.
[[nodiscard]] constexpr std::int64_t minus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
[[nodiscard]] constexpr std::int64_t plus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// Predicted value of a field before the first event of a tag.
[[nodiscard]] constexpr std::int64_t initial_field(std::size_t f) noexcept {
  return f < 3 ? static_cast<std::int64_t>(instrumentation::kNoId) : 0;
}

/// Pool bytes after the previous memory event, event by event in the chunk's order; 0 at a pool's first.
class PoolPrediction {
 public:
  /// v1: pool bytes before, plus or minus the event's own bytes.
  [[nodiscard]] std::int64_t expect(const instrumentation::Event& event) const noexcept {
    const std::int64_t before = last_[instrumentation::pool_number(event.code)];
    return event.kind == instrumentation::EventKind::memory_alloc ? plus(before, event.v0)
                                                                  : minus(before, event.v0);
  }
  void saw(const instrumentation::Event& event) noexcept {
    last_[instrumentation::pool_number(event.code)] = event.v1;
  }

 private:
  std::array<std::int64_t, 16> last_{};
};

}  // namespace shardscope::store
