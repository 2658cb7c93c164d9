// What leads on from where there is nothing yet: the first page, a comparison without a second run, a
// finding's settings.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "app/gui/model/state_dump.h"
#include "tests/app/gui/written.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

TEST(StartPage, SaysWhatThisIsAndHowToOpenARun) {
  AppState app;
  app.run = std::make_unique<Session>(store::Store());
  app.start_page = true;
  EXPECT_EQ(app.title(), "Shardscope");
  Written page(app, "workspace", 1000, 640);
  EXPECT_TRUE(page.has("Shows what ZeRO does while it does it")) << page.text();
  EXPECT_TRUE(page.has("No recent files")) << page.text();
  EXPECT_FALSE(page.has("Partition map")) << "no panels";
  page.click(*page.last_place_of("Open a recording"));
  EXPECT_EQ(page.frame().workspace().ui().dialog, Dialog::open_recording);
  page.frame().workspace().ui().dialog = Dialog::none;
  page.frames();

  page.frame().workspace().opened({"/somewhere/that/is/gone.zscope", {}, false});
  page.frame().workspace().opened({"tcp://127.0.0.1:5711", {}, false});
  page.frames();
  EXPECT_TRUE(page.has("gone.zscope")) << page.text();
  ASSERT_TRUE(page.has("tcp://127.0.0.1:5711"));
  page.click(*page.place_of("gone.zscope"));
  EXPECT_FALSE(app.open_request) << "it is not there";
  page.click(*page.place_of("tcp://127.0.0.1:5711"));
  ASSERT_TRUE(app.open_request);
  EXPECT_EQ(app.open_request->source, "tcp://127.0.0.1:5711");
}

TEST(StartPage, AComparisonOfOneRunLeadsToASecond) {
  AppState app;
  app.run = std::make_unique<Session>(store::make_synthetic_store());
  app.run->settle();
  Written panel(app, "compare", 900, 500);
  panel.frame().workspace().opened({"/somewhere/before.zscope", {}, false});
  panel.frames();
  ASSERT_TRUE(panel.has("Compare with before.zscope")) << panel.text();
  panel.click(*panel.place_of("before.zscope"));
  ASSERT_TRUE(app.open_request);
  EXPECT_EQ(app.open_request->source, "/somewhere/before.zscope");
  EXPECT_TRUE(app.open_request->second);
  panel.click(*panel.place_of("Open a second run"));
  EXPECT_EQ(panel.frame().workspace().ui().dialog, Dialog::open_second);
}

TEST(StartPage, AFindingsSettingsGoToWhatIf) {
  store::SyntheticOptions options;
  options.prefetch_elems = 0;
  AppState app;
  app.run = std::make_unique<Session>(store::make_synthetic_store(options));
  app.run->settle();
  const auto& findings = app.run->findings();
  const auto found = std::ranges::find_if(findings, [](const auto& one) { return !one.changes.empty(); });
  if (found == findings.end()) GTEST_SKIP() << "no finding of this run names a setting";
  Written panel(app, "findings", 1200, 900);
  panel.click(*panel.place_of(found->title));
  ASSERT_TRUE(panel.has("Try in What if")) << panel.text();
  EXPECT_TRUE(panel.has(found->changes.front().key)) << panel.text();
  panel.click(*panel.place_of("Try in What if"));
  EXPECT_EQ(panel.frame().workspace().ui().show_panel, "whatif");
  ASSERT_TRUE(app.what_if_changes);
  EXPECT_EQ(app.what_if_changes->front().key, found->changes.front().key);
}

}  // namespace
}  // namespace shardscope::gui
