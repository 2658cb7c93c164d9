// The tour of the window: a sequence of places, with an explanation of each.
#pragma once

#include <span>
#include <string_view>

namespace shardscope::gui {

struct TourStop {
  std::string_view panel;  ///< name of a view; "top" and "steps": the bars above the panels
  std::string_view title;
  std::string_view text;
};
[[nodiscard]] std::span<const TourStop> tour_stops();

}  // namespace shardscope::gui
