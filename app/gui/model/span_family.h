// What a span lies in, and how much of its time is its own.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/store/store.h"

namespace shardscope::gui {

struct SpanFamily {
  std::vector<store::Span> parents;  ///< on its lane, the innermost first
  std::uint64_t children = 0;        ///< directly inside
  /// Its time without theirs, pauses cut out; nothing where there are too many to read at once.
  std::optional<std::int64_t> self_ns;
};
[[nodiscard]] SpanFamily family_of(const store::Store& store, store::LaneId lane, const store::Span& span);

}  // namespace shardscope::gui
