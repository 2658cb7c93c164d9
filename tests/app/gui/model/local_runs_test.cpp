// Runs of this machine that a window offers to connect to.
#include "app/gui/model/local_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "app/collector/collector.h"

namespace shardscope::gui {
namespace {

TEST(LocalRuns, AreFoundWithWhatTheyAreAndLookedForOnceASecond) {
  LocalRuns runs;
  const std::size_t before = runs.at(10).size();
  collector::CollectorOptions options;
  options.listen = "tcp://127.0.0.1:0";
  auto collector = std::make_unique<collector::Collector>(options);
  const std::string endpoint = collector->publish_endpoint();
  EXPECT_EQ(runs.at(10.5).size(), before) << "not yet";
  const auto& now = runs.at(11);
  const auto found = std::ranges::find(now, endpoint, &LocalRun::endpoint);
  ASSERT_NE(found, now.end());
  EXPECT_EQ(found->command.find("gui_model_test"), 0U) << found->command;
  collector.reset();
  EXPECT_EQ(std::ranges::find(runs.at(12), endpoint, &LocalRun::endpoint), runs.at(12).end());
}

}  // namespace
}  // namespace shardscope::gui
