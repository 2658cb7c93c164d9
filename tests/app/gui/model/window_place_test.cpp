// The window's place between two starts: its line of the settings, and screens that are no longer there.
#include "app/gui/model/window_place.h"

#include <gtest/gtest.h>

#include <array>

namespace shardscope::gui {
namespace {

TEST(WindowPlace, IsReadAsItWasWrittenAndWrongLinesChangeNothing) {
  for (const WindowPlace& place :
       {WindowPlace{-1200, 40, 1600, 900, false}, WindowPlace{0, 0, 640, 400, true}}) {
    WindowPlace read;
    EXPECT_FALSE(read.known());
    take_line(read, line_of(place));
    EXPECT_EQ(read, place);
    for (const char* wrong : {"WindowPlace=1,2,3,4", "WindowPlace=1,2,0,4,0", "WindowPlace=1,2,3,-4,0",
                              "WindowPlace=1,2,3,4,2", "WindowPlace=1,2,3,4,x", "WindowPlace=1;2,3,4,0",
                              "WindowPlace=1,2,99999,4,0", "WindowPlace=", "Theme=dark"}) {
      take_line(read, wrong);
      EXPECT_EQ(read, place) << wrong;
    }
  }
}

TEST(WindowPlace, IsKeptWhereItsTitleCanBeReachedAndElseMovedToTheFirstScreen) {
  const std::array<ScreenArea, 2> two{ScreenArea{0, 30, 1920, 1050}, ScreenArea{1920, 0, 2560, 1440}};
  const std::array<ScreenArea, 1> one{two[0]};
  const WindowPlace right{2000, 100, 2400, 1300, false};
  EXPECT_EQ(reachable(right, two), right);
  EXPECT_EQ(reachable(right, one), (WindowPlace{0, 30, 1920, 1050, false})) << "as large as there is room";
  const WindowPlace small{5000, 2000, 800, 600, true};
  EXPECT_EQ(reachable(small, one), (WindowPlace{1120, 480, 800, 600, true})) << "no smaller than it was";
  const WindowPlace partly{-700, 200, 900, 600, false};
  EXPECT_EQ(reachable(partly, one), partly) << "the title can be dragged";
  const WindowPlace hardly{-850, 200, 900, 600, false};
  EXPECT_EQ(reachable(hardly, one).x, 0);
  const WindowPlace above{100, -400, 900, 600, false};
  EXPECT_EQ(reachable(above, one).y, 30) << "its title is above the screen";
  EXPECT_EQ(reachable(above, {}), above) << "no screen is known";
}

}  // namespace
}  // namespace shardscope::gui
