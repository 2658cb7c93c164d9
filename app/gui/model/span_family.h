// Enclosing spans of a span, and its self time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/gui/model/span_key.h"
#include "app/store/store.h"

namespace shardscope::gui {

struct SpanFamily {
  std::vector<store::Span> parents;  ///< on its lane, innermost first
  std::uint64_t children = 0;        ///< number of spans directly inside
  /// Duration without children and pauses; nullopt with too many children to read at once.
  std::optional<std::int64_t> self_ns;
  bool read = true;  ///< false: a block is still to be read; call again
};
[[nodiscard]] SpanFamily family_of(const store::Store& store, store::LaneId lane, const store::Span& span);

/// family_of() cached for one span and store revision, until all is read: the Inspector asks in every frame,
/// and a span may have 20 000 children.
class FamilyCache {
 public:
  /// Valid until the next call.
  const SpanFamily& of(const store::Store& store, store::LaneId lane, const store::Span& span);
  [[nodiscard]] std::uint64_t computed() const noexcept { return computed_; }

 private:
  std::optional<SpanKey> key_;
  SpanFamily family_;
  std::uint64_t computed_ = 0;
};

}  // namespace shardscope::gui
