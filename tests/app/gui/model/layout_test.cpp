#include "app/gui/model/layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <stdexcept>

#include "app/gui/model/palette.h"
#include "app/gui/model/panel_moves.h"
#include "app/gui/model/settings_text.h"
#include "app/gui/model/time_axis.h"

namespace shardscope::gui {
namespace {

void check_sizes(const LayoutNode& node, Rect room, const std::string& name) {
  if (node.children.empty()) {
    EXPECT_GE(room.w, 100) << name << " " << node.view;
    return;
  }
  const std::vector<float> sizes = child_sizes(node, room);
  const bool row = node.axis == Axis::row;
  EXPECT_NEAR(std::accumulate(sizes.begin(), sizes.end(), 0.0F), row ? room.w : room.h, 0.5F) << name;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_GE(sizes[i], node.children[i].smallest - 0.5F) << name << " " << node.children[i].view;
    check_sizes(node.children[i], row ? room.take_left(sizes[i]) : room.take_top(sizes[i]), name);
  }
}

TEST(Layout, PartsFillTheRoomAndNoneIsUnderItsSmallest) {
  for (const std::string& name : layout_names()) {
    for (const Rect room : {Rect{0, 88, 1280, 608}, Rect{0, 88, 1600, 788}, Rect{0, 0, 3840, 2000}}) {
      check_sizes(preset_layout(name), room, name);
    }
  }
}

TEST(Layout, WhereRoomIsShortTheSmallestSizeIsKeptBeforeTheShare) {
  const LayoutNode watch = preset_layout("Watch");
  EXPECT_FLOAT_EQ(child_sizes(watch, {0, 0, 1000, 600}).back(), 280);   // 23 % would be 231
  EXPECT_NEAR(child_sizes(watch, {0, 0, 3000, 600}).back(), 692.3, 1);  // 0.30 of 1.30
}

TEST(Layout, UnknownNameListsTheKnownOnes) {
  try {
    (void)preset_layout("Wide");
    FAIL() << "an unknown layout was accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("Presentation"), std::string::npos);
  }
}

TEST(Settings, WhatWasChangedOrCutIsNotRead) {
  const std::string file = with_checksum("[Window][a]\nSize=3,4\n");
  EXPECT_EQ(checked_text(file), "[Window][a]\nSize=3,4\n");
  for (std::size_t i = 0; i < file.size(); ++i) {
    EXPECT_FALSE(checked_text(file.substr(0, i))) << i;
    std::string changed = file;
    changed[i] ^= 1;
    EXPECT_FALSE(checked_text(changed)) << i;
  }
}

TEST(Palette, TextIsReadableInEveryTheme) {
  for (const ThemeKind theme : kThemes) {
    const Palette& c = palette(theme);
    for (const Rgb ground : {c.base, c.panel, c.raised}) {
      EXPECT_GE(contrast(c.text, ground), 7.0);
      EXPECT_GE(contrast(c.muted, ground), 4.5) << std::hex << c.muted << " on " << ground;
    }
    for (int i = 0; i < kMeaningCount; ++i) {
      EXPECT_GE(contrast(text_on(c.meaning[i]), c.meaning[i]), 4.5) << i;
      EXPECT_GE(contrast(c.meaning[i], c.panel), 2.0) << i;
    }
  }
}

TEST(Palette, ContrastFailsForTheSameColour) { EXPECT_DOUBLE_EQ(contrast(0x808080, 0x808080), 1.0); }

TEST(TimeAxis, ZoomKeepsTheAnchorWhereItIs) {
  TimeAxis axis;
  axis.set({0, 1'000'000}, 10'000'000);
  const std::int64_t anchor = 250'000;
  axis.zoom(0.5, anchor, 10'000'000);
  EXPECT_EQ(axis.range().length(), 500'000);
  EXPECT_NEAR(static_cast<double>(anchor - axis.range().begin_ns) / 500'000.0, 0.25, 1e-5);
}

/// Keys pressed while a glide goes on add up.
TEST(TimeAxis, ZoomsAndPansByKeyGlideFromWhereTheLastOneEnds) {
  constexpr std::int64_t kEnd = 10'000'000;
  TimeAxis axis;
  axis.glides = true;
  axis.set({1'000'000, 2'000'000}, kEnd);
  axis.go_zoom(0.5, 0.5, kEnd);
  EXPECT_EQ(axis.range(), (TimeRange{1'000'000, 2'000'000})) << "it moves with the frames";
  EXPECT_EQ(axis.goal(), (TimeRange{1'250'000, 1'750'000}));
  axis.go_zoom(0.5, 1, kEnd);
  EXPECT_EQ(axis.goal(), (TimeRange{1'500'000, 1'750'000})) << "its end stays";
  axis.go_pan(2, kEnd);
  EXPECT_EQ(axis.goal(), (TimeRange{2'000'000, 2'250'000}));
  for (int i = 0; i < 60; ++i) axis.go_zoom(0.5, 0.5, kEnd);
  EXPECT_GE(axis.goal().length(), TimeAxis::kShortest);
}

TEST(TimeAxis, NeverLeavesTheRun) {
  TimeAxis axis;
  axis.set({0, 1'000'000}, 10'000'000);
  for (int i = 0; i < 100; ++i) axis.pan(5'000'000, 10'000'000);
  EXPECT_LE(axis.range().end_ns, 10'000'000 + axis.range().length() / 10);
  for (int i = 0; i < 100; ++i) axis.pan(-5'000'000, 10'000'000);
  EXPECT_GE(axis.range().begin_ns, -axis.range().length() / 10);
  for (int i = 0; i < 100; ++i) axis.zoom(0.1, 500, 10'000'000);
  EXPECT_GE(axis.range().length(), TimeAxis::kShortest);
}

TEST(TimeAxis, ScaleMapsThereAndBack) {
  const TimeScale scale{{1'000'000, 9'000'000}, 100, 800};
  EXPECT_FLOAT_EQ(scale.x_of(1'000'000), 100);
  EXPECT_FLOAT_EQ(scale.x_of(9'000'000), 900);
  EXPECT_EQ(scale.time_of(scale.x_of(5'000'000)), 5'000'000);
}

TEST(TimeAxis, TicksAreRoundAndApart) {
  const TimeScale scale{{123'456, 98'765'432}, 0, 1000};
  const auto ticks = time_ticks(scale, 100);
  ASSERT_GE(ticks.size(), 3U);
  for (std::size_t i = 1; i < ticks.size(); ++i) {
    EXPECT_GE(scale.x_of(ticks[i].at_ns) - scale.x_of(ticks[i - 1].at_ns), 99.0F);
  }
  EXPECT_EQ(ticks[0].at_ns % 1'000'000, 0);
}

TEST(TimeAxis, ValueTicksOfBytesArePowersOfTwo) {
  const auto ticks = value_ticks(19.1 * 1024 * 1024, 3, true);
  ASSERT_FALSE(ticks.empty());
  EXPECT_DOUBLE_EQ(ticks[0], 8.0 * 1024 * 1024);
}

TEST(TimeAxis, TicksBetweenAreRoundAndInTheRange) {
  EXPECT_EQ(ticks_between(0, 164, 2), (std::vector<double>{0, 100}));
  EXPECT_EQ(ticks_between(5.62, 5.75, 2), (std::vector<double>{5.7}));
  EXPECT_TRUE(ticks_between(3, 3, 4).empty());
  EXPECT_FALSE(std::signbit(ticks_between(-0.05, 6, 2).front())) << "a label of -0";
  for (const int most : {1, 2, 5, 9}) {
    const auto ticks = ticks_between(-0.7, 12.3, most);
    EXPECT_LE(ticks.size(), static_cast<std::size_t>(most) + 1);
    for (const double tick : ticks) EXPECT_TRUE(tick >= -0.7 && tick <= 12.3) << tick;
  }
}

TEST(PlaceBeside, IsTheClosestThatSharesMostOfTheEdge) {
  //  0 | 1 | 2      3 is below all of them
  //    | 4 |
  const Rect places[] = {
      {0, 0, 100, 200}, {101, 0, 100, 80}, {202, 0, 100, 200}, {0, 201, 302, 50}, {101, 81, 100, 119}};
  EXPECT_EQ(place_beside(places, 0, Side::right), 4U) << "the longer part of the edge";
  EXPECT_EQ(place_beside(places, 1, Side::left), 0U);
  EXPECT_EQ(place_beside(places, 1, Side::right), 2U);
  EXPECT_EQ(place_beside(places, 1, Side::down), 4U);
  EXPECT_EQ(place_beside(places, 4, Side::up), 1U);
  EXPECT_EQ(place_beside(places, 2, Side::down), 3U);
  EXPECT_EQ(place_beside(places, 0, Side::left), std::nullopt) << "at the edge";
  EXPECT_EQ(place_beside(places, 3, Side::down), std::nullopt);
}

}  // namespace
}  // namespace shardscope::gui
