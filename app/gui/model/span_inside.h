// Contents of a span: children by name, messages of its rank, and the change of the rank's memory.
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
    std::int64_t time_ns = 0;   ///< without pauses
    std::int64_t first_ns = 0;  ///< begin of the first of them
    friend bool operator==(const Children&, const Children&) = default;
  };
  std::vector<Children> children;            ///< directly inside; longest total time first
  std::vector<std::size_t> messages;         ///< indexes into Store::messages(), by time
  std::optional<std::int64_t> memory_bytes;  ///< change of device memory from begin to end
  bool too_many = false;                     ///< more children than are read at once
  bool read = true;                          ///< false: incomplete, call again
};
[[nodiscard]] SpanInside inside_of(const store::Store& store, store::LaneId lane, const store::Span& span);

/// inside_of() cached for one span and store revision.
class InsideCache {
 public:
  const SpanInside& of(const store::Store& store, store::LaneId lane, const store::Span& span);

 private:
  std::optional<SpanKey> key_;
  SpanInside inside_;
};

/// Whether two spans have the same shared_name(), without building it: same module and pass, same operation,
/// same kind of wait.
[[nodiscard]] bool alike(const store::Span& a, const store::Span& b) noexcept;

}  // namespace shardscope::gui
