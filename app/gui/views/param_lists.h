// Part of the Stepper: a rank's parameters that are available, in flight and not available.
#pragma once

#include <cstdint>
#include <vector>

#include "app/gui/views/context.h"

namespace shardscope::gui {

class ParamLists {
 public:
  enum class Room : std::uint8_t { share, all };
  /// Draws a bar with the shares of elements and the three lists at the top of `room`, in all of it or a
  /// share. Without tables, and below stage 3, a line that explains why there is no list.
  void draw(Context& ctx, Rect& room, Room takes);

 private:
  /// Marks `persistent` ones in the list of available parameters.
  void list(Context& ctx, Rect room, const char* title, const std::vector<std::uint32_t>& params,
            std::int64_t elems, int which);

  float scroll_[3]{};
  int scroll_owner_[3]{};  ///< addresses serve as drag owners
};

}  // namespace shardscope::gui
