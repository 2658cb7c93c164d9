// Rows and texts that scroll, drawn by hand in a child window of ImGui, so that wheel, scroll bar and
// keyboard work as in ImGui's own lists.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "app/gui/views/context.h"

namespace shardscope::gui {

/// Directs drawing, hit testing and keyboard items to a child window, until it is destroyed.
class ScrollArea {
 public:
  ScrollArea(Context& ctx, const char* id, const Rect& place);
  ~ScrollArea();
  ScrollArea(const ScrollArea&) = delete;
  ScrollArea& operator=(const ScrollArea&) = delete;

  /// Where to draw, scrolled; of unlimited height. What is drawn is cut off from its top (Rect::take_top).
  Rect room;
  /// False: skip drawing it. Its item for the keyboard must be made all the same (Context::row).
  [[nodiscard]] bool shows(const Rect& rect) const {
    return rect.bottom() >= place_.y && rect.y <= place_.bottom();
  }
  /// Scrolls so that the top of the content is `y` pixels above the place.
  static void scroll_to(float y);

 private:
  Context& ctx_;
  Rect place_;
  float top_ = 0;
  ImDrawList* outside_;
  bool was_over_;
};

/// Rows of one height; only those that are seen are drawn. `draw(row, rect, over)`. Returns the row that was
/// chosen with the pointer or Enter.
std::optional<std::size_t> row_list(Context& ctx, const char* id, const Rect& place, std::size_t rows,
                                    float height,
                                    const std::function<void(std::size_t, const Rect&, bool)>& draw);

}  // namespace shardscope::gui
