// Dragging a rank's header to another position in the timeline.
#pragma once

#include <cstdint>
#include <optional>

#include "app/gui/model/own_order.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

class RankDrag {
 public:
  /// Call before the rows are drawn: handles press, drag and drop of a header. `gutter`:
  /// the column of headers; `top`: position of the first row, above the gutter when
  /// scrolled.
  void look(Context& ctx, const TimelineRows& rows, const Rect& gutter, float top);
  /// The rank whose header was clicked without moving it.
  [[nodiscard]] std::optional<std::uint32_t> clicked() const noexcept { return clicked_; }
  /// Call after the rows are drawn: shows the drop position, and the name beside the pointer.
  void draw(Context& ctx, const Rect& room, const Rect& gutter, float top) const;

 private:
  int owner_ = 0;
  double looked_at_ = 0;    ///< Context::seconds of the last frame
  bool cancelled_ = false;  ///< by Escape
  std::optional<std::uint32_t> held_, clicked_;
  std::optional<RankDrop> drop_;  ///< set once the rank is moved
};

}  // namespace shardscope::gui
