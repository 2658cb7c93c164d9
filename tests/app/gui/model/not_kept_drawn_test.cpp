// What is drawn at a time whose events a recorder with limits has deleted.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "app/gui/model/app_state.h"
#include "tests/app/gui/limited_run.h"
#include "tests/app/gui/written.h"

namespace shardscope::gui {
namespace {

using NotKeptDrawn = LimitedRun;

/// The timeline marks the time whose events were deleted, and says why there are none.
TEST_F(NotKeptDrawn, TheTimelineSaysWhereEventsWereDeleted) {
  AppState app;
  app.run = std::make_unique<Session>(std::move(store_));
  app.run->settle();
  app.fit();
  Written timeline(app, "timeline", 1200, 600);
  const auto says_why = [&](float share) {
    bool found = false;
    for (float y = 60; y < 560 && !found; y += 40) {
      timeline.point_at({200 + share * 980, y});
      found = timeline.has("did not keep");
    }
    return found;
  };
  EXPECT_TRUE(says_why(0.3F)) << timeline.text();
  EXPECT_FALSE(says_why(0.98F)) << "the newest events are kept";
}

}  // namespace
}  // namespace shardscope::gui
