// Part of the Stepper: which parameters a rank has, which are on their way and which are not there.
#pragma once

#include <cstdint>
#include <vector>

#include "app/gui/views/context.h"

namespace shardscope::gui {

class ParamLists {
 public:
  enum class Room : std::uint8_t { share, all };
  /// A bar of the elements' shares and the three lists, off the top of `room`: `all` of it, or a share.
  /// Without tables, and below stage 3, a line that says why there is nothing to list.
  void draw(Context& ctx, Rect& room, Room takes);

 private:
  /// `persistent` is marked in the list of what is available.
  void list(Context& ctx, Rect room, const char* title, const std::vector<std::uint32_t>& params,
            std::int64_t elems, int which);

  float scroll_[3]{};
  int scroll_owner_[3]{};  ///< their addresses identify which list is dragged
};

}  // namespace shardscope::gui
