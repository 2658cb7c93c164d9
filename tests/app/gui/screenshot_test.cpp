// Every panel rendered off screen, in both themes and several sizes: drawn, not blank, and different from
// the empty state. No display is needed.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/app/gui/picture.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

AppState synthetic(std::int32_t stage = 3) {
  store::SyntheticOptions options;
  options.stage = stage;
  AppState app;
  app.run = std::make_unique<Session>(store::make_synthetic_store(options));
  options.prefetch_elems = 0;
  app.other = std::make_unique<Session>(store::make_synthetic_store(options));
  app.run->settle();
  app.other->settle();
  app.place_once();
  app.notes.show(*app.run);
  for (std::int64_t i = 1; i < 12; ++i) {
    Note note;
    note.begin_ns = note.end_ns = i * 5'000'000;
    note.text = "a note of some length, so that the panel has something to show";
    app.notes.put(note);
  }
  app.go_to_step(2);
  return app;
}

class Panel : public ::testing::TestWithParam<const char*> {};

TEST_P(Panel, IsDrawnInBothThemes) {
  const std::string panel = GetParam();
  for (const ThemeKind theme : kThemes) {
    AppState app = synthetic();
    app.theme = theme;
    app.select_param(4, 0);
    const Picture picture = render(app, panel, 900, 600);
    EXPECT_GT(picture.colours(), 20U) << panel;
    // Of a recording Connection has a sentence alone.
    EXPECT_GT(picture.drawn(palette(theme).panel), panel == "connection" ? 0.005 : 0.015) << panel;
  }
}

TEST_P(Panel, HasAnEmptyStateThatIsNotBlank) {
  AppState app;
  app.run = std::make_unique<Session>(store::Store());
  const Picture picture = render(app, GetParam(), 900, 600);
  EXPECT_GT(picture.colours(), 4U) << GetParam();
  // Below the line with the title and the panel's buttons.
  constexpr int kBody = 44;
  EXPECT_GT(picture.drawn(palette(ThemeKind::dark).panel, kBody), 0.001) << GetParam();
}

TEST_P(Panel, SurvivesTheSmallestSize) {
  AppState app = synthetic();
  const Picture picture = render(app, GetParam(), 320, 200);
  EXPECT_GT(picture.colours(), 4U);
}

INSTANTIATE_TEST_SUITE_P(All, Panel,
                         ::testing::Values("overview", "timeline", "partition", "memory", "communication",
                                           "stepper", "compare", "findings", "inspector", "messages",
                                           "buckets", "critical_path", "whatif", "find", "statistics",
                                           "flame", "lecture", "notes", "why", "trace_info", "options",
                                           "connection", "workspace"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Screenshot, EveryStageAndLayoutIsDrawn) {
  for (const std::int32_t stage : {0, 1, 2, 3}) {
    AppState app = synthetic(stage);
    EXPECT_GT(render(app, "workspace", 1280, 720).colours(), 60U) << stage;
  }
  for (const std::string& layout : layout_names()) {
    AppState app = synthetic();
    app.set_layout(layout);
    EXPECT_GT(render(app, "workspace", 1280, 720).drawn(palette(ThemeKind::dark).panel), 0.1) << layout;
  }
}

TEST(Screenshot, ABlankPictureWouldBeNoticed) {
  const Picture blank{10, 10, std::vector<std::uint8_t>(400, 27)};
  EXPECT_EQ(blank.colours(), 1U);
  EXPECT_DOUBLE_EQ(blank.drawn(0x1B1B1B), 0.0);
}

TEST(Screenshot, SelectionIsSeenInTheOtherPanels) {
  AppState app = synthetic();
  const Picture before = render(app, "partition", 900, 400);
  const store::LaneId lane{0, ev::StreamId::gather};
  for (std::uint8_t depth = 0; depth < app.store().depth_count(lane); ++depth) {
    for (const store::Span& span : app.store().spans(lane, depth)) {
      if (app.run->index().fetch_of(0, span) != nullptr) app.select_span(lane, span);
    }
  }
  ASSERT_EQ(app.selection.kind, SelectionKind::collective);
  EXPECT_NE(render(app, "partition", 900, 400).rgba, before.rgba)
      << "a gather selected in the timeline is marked in the map";
}

}  // namespace
}  // namespace shardscope::gui

int main(int argc, char** argv) {
  // Without a display on purpose: pictures must not need one.
  unsetenv("DISPLAY");
  unsetenv("WAYLAND_DISPLAY");
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
