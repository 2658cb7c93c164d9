#include "app/gui/model/window_place.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <system_error>

namespace shardscope::gui {
namespace {

constexpr std::string_view kPlaceKey = "WindowPlace=";
constexpr int kLargest = 32768;  // px: limit of X11

/// Whether enough of the title bar, which is above the place, lies on the screen for the pointer to drag it.
bool has_title(const ScreenArea& screen, const WindowPlace& place) {
  constexpr int kWide = 120, kHigh = 32;
  const int wide = std::min(place.x + place.width, screen.x + screen.width) - std::max(place.x, screen.x);
  return wide >= std::min(kWide, place.width) && place.y >= screen.y &&
         place.y + kHigh <= screen.y + screen.height;
}

}  // namespace

WindowPlace reachable(WindowPlace place, std::span<const ScreenArea> screens) {
  if (screens.empty() || std::ranges::any_of(screens, [&](const auto& one) { return has_title(one, place); }))
    return place;
  const ScreenArea& screen = screens.front();
  place.width = std::min(place.width, screen.width);
  place.height = std::min(place.height, screen.height);
  place.x = std::clamp(place.x, screen.x, screen.x + screen.width - place.width);
  place.y = std::clamp(place.y, screen.y, screen.y + screen.height - place.height);
  return place;
}

std::string line_of(const WindowPlace& place) {
  std::string out(kPlaceKey);
  for (const int number : {place.x, place.y, place.width, place.height}) out += std::to_string(number) + ",";
  return out + (place.maximized ? "1" : "0");
}

void take_line(WindowPlace& place, std::string_view line) {
  if (!line.starts_with(kPlaceKey)) return;
  line.remove_prefix(kPlaceKey.size());
  std::array<int, 5> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), numbers[i]);
    if (error != std::errc{} || numbers[i] < -kLargest || numbers[i] > kLargest) return;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    if (i + 1 == numbers.size()) break;
    if (!line.starts_with(',')) return;
    line.remove_prefix(1);
  }
  const WindowPlace read{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4] == 1};
  if (line.empty() && read.known() && numbers[4] >= 0 && numbers[4] <= 1) place = read;
}

}  // namespace shardscope::gui
