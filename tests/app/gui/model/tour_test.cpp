// The tour: every place that it talks of is on the window when it does.
#include "app/gui/model/tour.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/app/gui/written.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

TEST(Tour, ShowsEachPlaceWithItsWordsAndEnds) {
  AppState app;
  app.run = std::make_unique<Session>(store::make_synthetic_store());
  app.run->settle();
  app.place_once();
  app.set_layout("Memory");
  Written window(app, "workspace", 1600, 900);
  UiState& ui = window.frame().workspace().ui();
  EXPECT_FALSE(window.has(tour_stops().front().text)) << "the tour was not requested";
  ui.tour = 0;
  window.frames();
  EXPECT_EQ(app.layout_name, "Watch");
  for (std::size_t i = 0; i < tour_stops().size(); ++i) {
    const TourStop& stop = tour_stops()[i];
    ASSERT_EQ(ui.tour, i);
    EXPECT_TRUE(window.has(stop.text.substr(0, 30))) << stop.title << ": " << window.text();
    const auto& placed = window.frame().workspace().placed();
    EXPECT_TRUE(std::ranges::any_of(placed, [&](const PlacedForDump& one) { return one.name == stop.panel; }))
        << stop.panel << " is not on the window";
    const bool last = i + 1 == tour_stops().size();
    const auto button = window.last_place_of(last ? "Done" : "Next");
    ASSERT_TRUE(button) << window.text();
    window.click(*button);
  }
  EXPECT_FALSE(ui.tour);
  EXPECT_FALSE(window.has(tour_stops().back().text.substr(0, 30)));
}

}  // namespace
}  // namespace shardscope::gui
