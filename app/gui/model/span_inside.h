// What lies in a span: its children by name, messages of its rank, and how the rank's memory changed over it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/span_key.h"
#include "app/store/store.h"

namespace shardscope::gui {

struct SpanInside {
  struct Children {
    std::string name;
    std::uint64_t count = 0;
    std::int64_t time_ns = 0;   ///< pauses cut out
    std::int64_t first_ns = 0;  ///< where the first of them begins
    friend bool operator==(const Children&, const Children&) = default;
  };
  std::vector<Children> children;            ///< directly inside, the longest in all first
  std::vector<std::size_t> messages;         ///< of Store::messages(), by time
  std::optional<std::int64_t> memory_bytes;  ///< at its end less at its begin, on the device
  bool too_many = false;                     ///< children: more than are read at once
  bool read = true;                          ///< false: asked again, there is more
};
[[nodiscard]] SpanInside inside_of(const store::Store& store, store::LaneId lane, const store::Span& span);

/// Of one span, computed anew when it is another or the store has changed.
class InsideCache {
 public:
  const SpanInside& of(const store::Store& store, store::LaneId lane, const store::Span& span);

 private:
  std::optional<SpanKey> key_;
  SpanInside inside_;
};

/// Whether two spans have the same name (shared_name), without making it: of the same module and pass, the
/// same operation, the same kind of wait.
[[nodiscard]] bool alike(const store::Span& a, const store::Span& b) noexcept;

}  // namespace shardscope::gui
