// The state of a dashboard that shows a synthetic run.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "app/gui/model/app_state.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {

class Model : public ::testing::Test {
 protected:
  Model() {
    app_.run = std::make_unique<Session>(store::make_synthetic_store());
    app_.run->settle();
    app_.place_once();
  }
  [[nodiscard]] const store::Store& data() const { return app_.store(); }
  AppState app_;
};

}  // namespace shardscope::gui
