// The themes for colour blindness: whatever means different things is distinguishable as protanopia,
// deuteranopia and tritanopia see it, and text is readable.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/gui/model/colour_vision.h"
#include "app/gui/model/owner_bands.h"
#include "app/gui/views/canvas.h"
#include "app/gui/views/partition_cells.h"
#include "assets/assets.h"
#include "tests/app/gui/colour_distance.h"

namespace shardscope::gui {
namespace {

constexpr Vision kVisions[] = {Vision::all, Vision::no_red, Vision::no_green, Vision::no_blue};
constexpr double kApart = 20;        // about nine times what is just noticeable
constexpr double kOwnersApart = 16;  // sixteen colours have less room

struct Named {
  std::string name;
  Rgb color;
};

/// The least distance of any two of them, as the eyes that tell them apart worst see them, and which two.
struct Closest {
  double distance = 1e9;
  std::string pair;
};
Closest closest(const std::vector<Named>& all) {
  Closest out;
  for (const Vision vision : kVisions) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const double distance = test::colour_distance(seen(all[i].color, vision), seen(all[j].color, vision));
        if (distance < out.distance)
          out = {distance, all[i].name + " and " + all[j].name + ", vision " +
                               std::to_string(static_cast<int>(vision))};
      }
    }
  }
  return out;
}

/// Lanes and categories of memory, the runs of a comparison, and the ground where nothing is.
std::vector<Named> meanings(const Palette& c) {
  std::vector<Named> all{{"panel", c.panel}, {"run A", c.runs[0]}, {"run B", c.runs[1]}};
  for (int i = 0; i < kMeaningCount; ++i) all.push_back({"meaning " + std::to_string(i), c.meaning[i]});
  return all;
}

std::vector<Palette> for_colour_blind() {
  std::vector<Palette> all;
  for (const ThemeKind theme : kThemes)
    if (is_for_colour_blind(theme)) all.push_back(palette(theme));
  return all;
}

TEST(ColourBlindThemes, KeepWhateverMeansDifferentThingsApart) {
  for (const Palette& c : for_colour_blind()) {
    const Closest lanes = closest(meanings(c));
    EXPECT_GT(lanes.distance, kApart) << lanes.pair;
    const Closest states = closest({{"owned", c.of(Meaning::compute)},
                                    {"replica", replica(c)},
                                    {"available", c.of(Meaning::gather)},
                                    {"not available", c.panel}});
    EXPECT_GT(states.distance, kApart) << states.pair;
    const Closest gradients = closest({{"reduced", c.of(Meaning::reduce)},
                                       {"flushed", mix(c.panel, c.of(Meaning::reduce), 0.45F)},
                                       {"none", c.panel}});
    EXPECT_GT(gradients.distance, kApart) << gradients.pair;
    const Closest severities =
        closest({{"error", c.of(Meaning::trouble)}, {"warning", c.warning}, {"info", c.accent}});
    EXPECT_GT(severities.distance, kApart) << severities.pair;
  }
}

TEST(ColourBlindThemes, GiveEveryOwnerThatHasAColourOneOfItsOwn) {
  for (const Palette& c : for_colour_blind()) {
    ASSERT_EQ(c.owners.size(), kOwnColours);
    std::vector<Named> all{{"panel", c.panel}};
    for (std::uint32_t rank = 0; rank < kOwnColours; ++rank)
      all.push_back({"rank " + std::to_string(rank), owner_hue(rank, kOwnColours, c)});
    const Closest found = closest(all);
    EXPECT_GT(found.distance, kOwnersApart) << found.pair;
    // Most cells of stage 3 show what is not gathered now.
    for (Named& owner : all) {
      if (owner.name == "panel") continue;
      const RemoteShardStyle look = not_here(owner.color, c);
      EXPECT_LT(look.height, 1) << "else it looks as if it were here";
      owner.color = look.color;
    }
    const Closest away = closest(all);
    EXPECT_GT(away.distance, kOwnersApart) << away.pair << ", not here";
  }
}

TEST(ColourBlindThemes, HaveReadableText) {
  for (const Palette& c : for_colour_blind()) {
    for (const Rgb owner : c.owners) EXPECT_GE(contrast(text_on(owner), owner), 4.5) << std::hex << owner;
    for (const Rgb words : {c.of(Meaning::trouble), c.warning, c.good, c.accent})
      EXPECT_GE(contrast(words, c.panel), 4.5) << std::hex << words;
  }
}

// Else a warning looks like a reduction, and what is better like a gather.
TEST(Themes, HaveColoursOfTheirOwnForWarningsAndForWhatIsGood) {
  for (const ThemeKind theme : kThemes) {
    const Palette& c = palette(theme);
    constexpr double kSeen = 10;  // of words: they never stand side by side with what is drawn to scale
    for (const Rgb words : {c.warning, c.good}) {
      EXPECT_GE(contrast(words, c.panel), 4.5) << name_of(theme);
      for (const Rgb meaning : c.meaning)
        EXPECT_GT(test::colour_distance(words, meaning), kSeen) << name_of(theme) << " " << std::hex << words;
    }
    EXPECT_GT(test::colour_distance(c.warning, c.good), kApart) << name_of(theme);
  }
}

// Labels of hatched spans stand on a plate through which what lies below shows a little.
TEST(Plates, MakeTextReadableOverEveryColour) {
  for (const ThemeKind theme : kThemes) {
    const Palette& c = palette(theme);
    for (const Rgb below : c.meaning)
      EXPECT_GE(contrast(c.text, mix(below, c.panel, kPlateAlpha)), 7.0) << name_of(theme);
  }
}

// Else they would not be needed, and the distance would find nothing.
TEST(ColourBlindThemes, AreNeededSinceTheUsualOnesAreCloser) {
  for (const ThemeKind theme : {ThemeKind::dark, ThemeKind::light})
    EXPECT_LT(closest(meanings(palette(theme))).distance, kApart) << name_of(theme);
  std::vector<Named> all;
  for (std::uint32_t rank = 0; rank < kOwnColours; ++rank)
    all.push_back({"rank", owner_hue(rank, kOwnColours, palette(ThemeKind::dark))});
  EXPECT_LT(closest(all).distance, kOwnersApart);
}

TEST(Themes, TheScaleOfManyOwnersGetsLighterWithTheRankNumber) {
  for (const ThemeKind theme : kThemes) {
    const Palette& c = palette(theme);
    ASSERT_GE(c.owner_scale.size(), 2U) << name_of(theme);
    double before = 0;
    for (std::uint32_t colour = 0; colour < kScaleColours; ++colour) {
      const double lightness = contrast(owner_hue(colour, kOwnColours + 1, c), 0x000000);
      EXPECT_GT(lightness, before) << name_of(theme) << " " << colour;
      before = lightness;
    }
    EXPECT_EQ(owner_hue(0, kOwnColours + 1, c), c.owner_scale.front());
    EXPECT_EQ(owner_hue(kScaleColours - 1, kOwnColours + 1, c), c.owner_scale.back());
  }
}

TEST(Themes, AFileWithoutAScaleOrWithOneColourInItIsRefused) {
  std::string theme(assets::theme_dark);
  EXPECT_NO_THROW((void)parse_palette(theme));
  const std::size_t begin = theme.find("\"owner_scale\": ["), end = theme.find(']', begin);
  ASSERT_NE(begin, std::string::npos);
  std::string one = theme;
  EXPECT_THROW((void)parse_palette(one.replace(begin, end - begin, "\"owner_scale\": [\"#3B4CC0\"")),
               std::invalid_argument);
  theme.erase(begin, theme.find('"', end) - begin);
  EXPECT_THROW((void)parse_palette(theme), std::exception);
}

TEST(Themes, AreSwitchedByGroundAndByColoursAndFoundByTheirNames) {
  for (const ThemeKind theme : kThemes) {
    EXPECT_EQ(theme_of(name_of(theme)), theme);
    EXPECT_NE(is_dark(with_other_ground(theme)), is_dark(theme));
    EXPECT_EQ(is_for_colour_blind(with_other_ground(theme)), is_for_colour_blind(theme));
    EXPECT_EQ(is_dark(with_other_colours(theme)), is_dark(theme));
    EXPECT_NE(is_for_colour_blind(with_other_colours(theme)), is_for_colour_blind(theme));
  }
  EXPECT_EQ(theme_of("blue"), std::nullopt);
}

}  // namespace
}  // namespace shardscope::gui
