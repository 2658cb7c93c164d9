// What a span lies in, and how much of its time is its own.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/gui/model/span_key.h"
#include "app/store/store.h"

namespace shardscope::gui {

struct SpanFamily {
  std::vector<store::Span> parents;  ///< on its lane, the innermost first
  std::uint64_t children = 0;        ///< directly inside
  /// Its time without theirs, pauses cut out; nothing where there are too many to read at once.
  std::optional<std::int64_t> self_ns;
  bool read = true;  ///< false: a block has still to be read; asked again, there is more
};
[[nodiscard]] SpanFamily family_of(const store::Store& store, store::LaneId lane, const store::Span& span);

/// The family of one span, computed anew when the span is another, the store has changed or not all was read:
/// the Inspector asks in every frame, and there may be 20 000 children.
class FamilyCache {
 public:
  /// Lasts until the next call.
  const SpanFamily& of(const store::Store& store, store::LaneId lane, const store::Span& span);
  [[nodiscard]] std::uint64_t computed() const noexcept { return computed_; }

 private:
  std::optional<SpanKey> key_;
  SpanFamily family_;
  std::uint64_t computed_ = 0;
};

}  // namespace shardscope::gui
