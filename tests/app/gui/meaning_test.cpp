// Pictures that mean what they show: the colours at known places of a run in which every owner and every
// status is known, and one colour for one thing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "app/gui/model/owner_bands.h"
#include "app/gui/platform/frame.h"
#include "app/gui/platform/offscreen.h"
#include "app/gui/views/part_bars.h"
#include "app/gui/views/partition_cells.h"
#include "app/gui/views/span_painter.h"
#include "tests/app/gui/known_run.h"
#include "tests/app/gui/picture.h"
#include "tests/app/store/odd_ends.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

/// Where the partition map puts an element: four parameters of the same size beside one another.
struct Map {
  static constexpr int kWidth = 900, kHeight = 400;
  static constexpr float kLeft = 76, kTop = 50, kLength = 808, kPitch = 60;
  static float x(double element) {
    return kLeft +
           kLength * static_cast<float>(element / static_cast<double>(known::kParams * known::kElems));
  }
  static float row(std::uint32_t rank) { return kTop + kPitch * static_cast<float>(rank); }
};

// Of lines and letters only the hue holds: their edges are mixed with the ground.
bool red(Rgb c) {
  return channel(c, 16) > channel(c, 8) + 50 && std::abs(channel(c, 8) - channel(c, 0)) < 30;
}
bool teal(Rgb c) { return channel(c, 8) > channel(c, 16) + 50 && channel(c, 0) > channel(c, 16) + 30; }
bool yellow(Rgb c) { return channel(c, 16) > channel(c, 0) + 60 && channel(c, 8) > channel(c, 0) + 50; }

AppState known_state(ThemeKind theme) {
  AppState app;
  app.run = std::make_unique<Session>(known::run());
  app.run->settle();
  app.place_once();
  app.cursor_ns = known::kLook;
  app.theme = theme;
  return app;
}

TEST(PartitionMap, ShowsWhoOwnsWhatAndWhatIsHere) {
  for (const ThemeKind theme : kThemes) {
    AppState app = known_state(theme);
    const Picture picture = render(app, "partition", Map::kWidth, Map::kHeight);
    const Palette& c = palette(theme);
    for (std::uint32_t rank = 0; rank < known::kRanks; ++rank) {
      for (std::uint32_t param = 0; param < known::kParams; ++param) {
        for (std::uint32_t third = 0; third < known::kThirds; ++third) {
          const double middle = (param + (third + 0.5) / known::kThirds) * static_cast<double>(known::kElems);
          // Above the name, which stands in the middle of the first row.
          const Rgb seen = picture.at(Map::x(middle), Map::row(rank) + 8);
          const std::string where = "rank " + std::to_string(rank) + ", parameter " + std::to_string(param) +
                                    ", third " + std::to_string(third);
          if (known::owner(param, third) == rank) {
            EXPECT_EQ(seen, c.of(Meaning::compute)) << where << " is its own";
          } else if (known::kStatus[rank][param] == plan::ParamStatus::available) {
            EXPECT_EQ(seen, c.of(Meaning::gather)) << where << " is gathered";
          } else if (known::kStatus[rank][param] == plan::ParamStatus::not_available) {
            EXPECT_EQ(seen, c.panel) << where << " is not there";
          } else {
            // Hatched: of two colours between the panel's and that of gathered parameters.
            std::set<Rgb> colours;
            for (float dx = -8; dx <= 8; ++dx)
              colours.insert(picture.at(Map::x(middle) + dx, Map::row(rank) + 8));
            EXPECT_GT(colours.size(), 2U) << where << " is on its way";
            EXPECT_FALSE(colours.contains(c.panel)) << where;
            EXPECT_FALSE(colours.contains(c.of(Meaning::compute))) << where;
          }
        }
      }
    }
  }
}

/// By owner: pale where it is not there, or, where pale colours are not distinguishable, low and in full
/// colour.
TEST(PartitionMap, ShowsAnOwnerAlsoWhereItsElementsAreNotThere) {
  for (const ThemeKind theme : kThemes) {
    AppState app = known_state(theme);
    Frame frame;
    for (const Choice& choice : frame.workspace().registry().find("partition")->choices(app)) {
      const auto by_owner = std::ranges::find(choice.labels, "by owner");
      if (by_owner != choice.labels.end())
        choice.choose(app, static_cast<int>(by_owner - choice.labels.begin()));
    }
    Offscreen offscreen(Map::kWidth, Map::kHeight);
    const Picture picture{Map::kWidth, Map::kHeight, offscreen.render(frame, app, "partition", 1)};
    const Palette& c = palette(theme);
    std::size_t away = 0;
    for (std::uint32_t rank = 0; rank < known::kRanks; ++rank) {
      for (std::uint32_t param = 0; param < known::kParams; ++param) {
        for (std::uint32_t third = 0; third < known::kThirds; ++third) {
          const double middle = (param + (third + 0.5) / known::kThirds) * static_cast<double>(known::kElems);
          const Rgb top = picture.at(Map::x(middle), Map::row(rank) + 8);
          const Rgb bottom = picture.at(Map::x(middle), Map::row(rank) + 50);
          const std::uint32_t owner = known::owner(param, third);
          const Rgb full = owner_hue(owner_colour(owner, known::kRanks), known::kRanks, c);
          const std::string where = "theme " + std::string(name_of(theme)) + ", rank " +
                                    std::to_string(rank) + ", parameter " + std::to_string(param) +
                                    ", third " + std::to_string(third);
          if (owner == rank || known::kStatus[rank][param] == plan::ParamStatus::available) {
            EXPECT_EQ(top, full) << where;
            EXPECT_EQ(bottom, full) << where;
            continue;
          }
          ++away;
          EXPECT_NE(top, full) << where;
          EXPECT_EQ(top == c.panel, is_for_colour_blind(theme)) << where;
          EXPECT_EQ(bottom == full, is_for_colour_blind(theme)) << where;
        }
      }
    }
    EXPECT_GT(away, 0U);
  }
}

/// Of a step in which a rank was held for nearly all the time.
TEST(Compare, DrawsNoPauseAsComputation) {
  const auto computed = [](bool held) {
    AppState app;
    for (std::unique_ptr<Session>* run : {&app.run, &app.other}) {
      store::Store store = store::odd_ends(held);
      store::end_the_step(store);
      *run = std::make_unique<Session>(std::move(store));
      (*run)->settle();
    }
    app.place_once();
    app.cursor_ns = store::kMs;
    const store::Span module = app.store().spans({0, ev::StreamId::compute}, 0).front();
    return render(app, "compare", 1200, 900)
        .count(span_color(palette(app.theme), ev::StreamId::compute, module));
  };
  EXPECT_GT(computed(false), 5000U);
  EXPECT_LT(computed(true), computed(false) / 5);
}

/// A rank is held for nearly all of the run, and the other one is killed long before its end.
TEST(Timeline, DrawsNeitherAPauseNorTheTimeAfterAKilledRanksEndAsComputation) {
  const auto computed = [](bool held) {
    AppState app;
    app.run = std::make_unique<Session>(store::odd_ends(held));
    app.run->settle();
    app.place_once();
    const Palette& c = palette(app.theme);
    // As an outermost module is drawn.
    return render(app, "timeline", 1200, 500).count(mix(c.of(Meaning::compute), c.panel, 0.5F));
  };
  EXPECT_GT(computed(false), 5000U);
  EXPECT_LT(computed(true), computed(false) / 5);
}

TEST(PartitionMap, MarksPersistentParametersAndNoOthers) {
  AppState app = known_state(ThemeKind::dark);
  const Picture picture = render(app, "partition", Map::kWidth, Map::kHeight);
  // Of rank 2 the third in the middle of parameter 3 is gathered, and so is that of parameter 2.
  const Rgb dot = text_on(palette(ThemeKind::dark).of(Meaning::gather));
  const float y = Map::row(2) + 28;
  EXPECT_EQ(picture.at(Map::x(3.5 * known::kElems), y), dot);
  EXPECT_NE(picture.at(Map::x(2.5 * known::kElems), y), dot);
}

TEST(ExposedCommunication, HasOneColourWhereverItIsDrawn) {
  for (const ThemeKind theme : kThemes) {
    const Palette& c = palette(theme);
    analysis::RankSummary rank;
    rank.time.total_ns = 10;
    rank.time.compute_ns = 6;
    rank.time.comm_ns = 5;
    rank.time.exposed_comm_ns = 3;
    rank.time.idle_ns = 1;
    const auto exposed = [](const std::vector<Part>& parts) {
      const auto found = std::ranges::find_if(parts, [](const Part& part) {
        return part.label.starts_with("exposed (") || part.label == "exposed communication";
      });
      return found == parts.end() ? Part{} : *found;
    };
    for (const Part& part : {exposed(time_parts(c, rank)), exposed(overlap_parts(c, rank))}) {
      EXPECT_EQ(part.value, 3);
      EXPECT_EQ(part.color, c.of(kExposedComm));
      EXPECT_TRUE(part.hatched);
    }
    EXPECT_NE(c.of(kExposedComm), c.of(Meaning::trouble)) << "exposed is not waiting";
  }
}

TEST(ExposedCommunication, IsNotDrawnAsAWaitInTheCommunicationPanel) {
  store::SyntheticOptions options;
  options.prefetch_elems = 0;  // of prefetches late ones are red, and rightly
  AppState app;
  app.run = std::make_unique<Session>(store::make_synthetic_store(options));
  app.run->settle();
  app.place_once();
  const Picture picture = render(app, "communication", 1400, 900);
  // Left: volume, operations, and below them the plot of what was exposed by step. On the right the lengths
  // of waits are red.
  const auto count = [&](const Rect& in, bool (*of)(Rgb)) {
    std::size_t found = 0;
    for (float y = in.y; y < in.bottom(); ++y) {
      for (float x = in.x; x < in.right(); ++x) found += of(picture.at(x, y)) ? 1 : 0;
    }
    return found;
  };
  EXPECT_EQ(count({12, 70, 668, 820}, red), 0U);
  EXPECT_GT(count({30, 215, 640, 208}, teal), 500U) << "the plot is a thin line";
}

TEST(Partial, EveryPanelThatShowsWhatIsAnalysedMarksWhatIsNotCompleteUntilItIs) {
  for (const char* panel : {"overview", "timeline", "memory", "communication", "findings", "inspector"}) {
    AppState app;
    app.run = std::make_unique<Session>(store::make_synthetic_store());  // nothing of it is analysed yet
    ASSERT_NE(app.run->partial(), "");
    app.place_once();
    const auto in_title = [&](const Picture& picture) {
      std::size_t found = 0;
      for (float y = 4; y < 26; ++y) {
        for (float x = 70; x < 600; ++x) found += yellow(picture.at(x, y)) ? 1 : 0;
      }
      return found;
    };
    EXPECT_GT(in_title(render(app, panel, 1200, 600)), 20U) << panel << " shows no mark";
    app.run->settle();
    EXPECT_EQ(in_title(render(app, panel, 1200, 600)), 0U) << panel << " is marked though it is complete";
  }
}

}  // namespace
}  // namespace shardscope::gui
