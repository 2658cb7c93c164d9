// A rank's header is dragged to another place in the timeline.
#pragma once

#include <cstdint>
#include <optional>

#include "app/gui/model/own_order.h"
#include "app/gui/views/context.h"

namespace shardscope::gui {

class RankDrag {
 public:
  /// Before the rows are drawn: a press on a rank's header, what is done while it is held, and where it is
  /// dropped. `gutter`: the column of headers; `top`: where the first row begins, above it when it is
  /// scrolled.
  void look(Context& ctx, const TimelineRows& rows, const Rect& gutter, float top);
  /// The rank whose header was pressed and released where it was.
  [[nodiscard]] std::optional<std::uint32_t> clicked() const noexcept { return clicked_; }
  /// After the rows: where it would be dropped, and its name beside the pointer.
  void draw(Context& ctx, const Rect& room, const Rect& gutter, float top) const;

 private:
  int owner_ = 0;
  double looked_at_ = 0;    ///< Context::seconds of the frame before
  bool cancelled_ = false;  ///< by Escape
  std::optional<std::uint32_t> held_, clicked_;
  std::optional<RankDrop> drop_;  ///< once it is moved
};

}  // namespace shardscope::gui
