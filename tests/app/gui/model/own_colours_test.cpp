// Colours that the user chooses: over those of one theme, kept in the settings, warned of where hard to see.
#include "app/gui/model/own_colours.h"

#include <gtest/gtest.h>

namespace shardscope::gui {
namespace {

TEST(OwnColours, ReplaceThoseOfOneThemeUntilReset) {
  OwnColours own;
  EXPECT_FALSE(own.any(ThemeKind::dark));
  own.set(ThemeKind::dark, Meaning::gather, 0x11AA22);
  EXPECT_EQ(own.applied(ThemeKind::dark).of(Meaning::gather), 0x11AA22U);
  EXPECT_EQ(own.applied(ThemeKind::dark).of(Meaning::reduce), palette(ThemeKind::dark).of(Meaning::reduce));
  EXPECT_EQ(own.applied(ThemeKind::dark).panel, palette(ThemeKind::dark).panel);
  EXPECT_EQ(own.applied(ThemeKind::light).of(Meaning::gather), palette(ThemeKind::light).of(Meaning::gather));
  own.set(ThemeKind::light, Meaning::gather, 0x115522);
  own.reset(ThemeKind::dark);
  EXPECT_EQ(own.applied(ThemeKind::dark).of(Meaning::gather), palette(ThemeKind::dark).of(Meaning::gather));
  EXPECT_TRUE(own.any(ThemeKind::light));
  own.set(ThemeKind::light, Meaning::gather, palette(ThemeKind::light).of(Meaning::gather));
  EXPECT_EQ(own, OwnColours{}) << "the theme's colour is no choice";
}

TEST(OwnColours, AreReadAgainFromTheSettings) {
  OwnColours own;
  for (int i = 0; i < kMeaningCount; ++i)
    own.set(ThemeKind::light_colour_blind, static_cast<Meaning>(i), 0x0000A0U + static_cast<Rgb>(i));
  own.set(ThemeKind::dark, Meaning::copy, 0xFFFFFF);
  OwnColours read;
  for (const std::string& line : own.lines()) read.take_line(line);
  EXPECT_EQ(read, own);
  for (const char* wrong :
       {"Colour=", "Colour=dark", "Colour=dark gather", "Colour=dark gather 112233",
        "Colour=dark gather #11223", "Colour=dark gather #11223G", "Colour=dim gather #112233",
        "Colour=dark music #112233", "Color=dark gather #112233"})
    read.take_line(wrong);
  EXPECT_EQ(read, own);
}

TEST(OwnColours, ThatAreHardToSeeAreNamed) {
  OwnColours own;
  EXPECT_EQ(own.warning(ThemeKind::dark, Meaning::compute), "");
  own.set(ThemeKind::dark, Meaning::compute, palette(ThemeKind::dark).panel);
  EXPECT_EQ(own.warning(ThemeKind::dark, Meaning::compute), "1.0:1 with the background, below 3:1");
  own.set(ThemeKind::dark, Meaning::compute, 0xFFFFFF);
  EXPECT_EQ(own.warning(ThemeKind::dark, Meaning::compute), "");
  own.set(ThemeKind::light, Meaning::compute, 0xFFFFFF);
  EXPECT_NE(own.warning(ThemeKind::light, Meaning::compute), "") << "by the theme's background";
}

}  // namespace
}  // namespace shardscope::gui
