// The partition map by keyboard: onto a parameter and back, nearer and farther.
#include "app/gui/model/element_zoom.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "app/gui/model/element_axis.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::gui {
namespace {

/// Four parameters of 100 elements each.
class ElementZoom : public testing::Test {
 protected:
  void SetUp() override {
    test::RunBuilder run(1);
    run.span(0, 0, 1000, ev::EventKind::step_begin, ev::StreamId::host, 0);
    store::Store& store = run.build();
    ev::RunTables tables = store.tables();
    tables.params.clear();
    for (std::uint32_t i = 0; i < 4; ++i)
      tables.params.push_back({i, "p" + std::to_string(i), "f32", {100}, 100, 100, 0, {1}, false});
    store.set_tables(0, tables);
    app.run = std::make_unique<Session>(std::move(store));
    app.run->settle();
  }
  AppState app;
};

TEST_F(ElementZoom, ToTheSelectedParameterAndBackToTheWholeModel) {
  EXPECT_FALSE(zoom_to_param(app)) << "nothing is selected";
  app.select_param(2, 0);
  ASSERT_TRUE(zoom_to_param(app));
  EXPECT_NEAR(app.elements.begin, 0.475, 1e-6);
  EXPECT_NEAR(app.elements.end, 0.775, 1e-6);
  ASSERT_TRUE(zoom_to_param(app));
  EXPECT_EQ(app.elements.begin, 0);
  EXPECT_EQ(app.elements.end, 1);
  app.select_param(0, 0);
  ASSERT_TRUE(zoom_to_param(app));
  EXPECT_EQ(app.elements.begin, 0) << "no margin before the first element";
}

TEST_F(ElementZoom, NearerAroundWhatIsSelected) {
  zoom_elements(app, 0.5);
  EXPECT_NEAR((app.elements.begin + app.elements.end) / 2, 0.5, 1e-6);
  app.elements = {};
  app.select_param(3, 0);
  zoom_elements(app, 0.5);
  EXPECT_NEAR(app.elements.end - app.elements.begin, 0.5, 1e-6);
  EXPECT_LE(app.elements.begin, 0.75);
  EXPECT_GE(app.elements.end, 0.999) << "the last parameter stays in view";
  zoom_elements(app, 4);
  EXPECT_NEAR(app.elements.end - app.elements.begin, 1, 1e-6);
}

}  // namespace
}  // namespace shardscope::gui
