// Breakpoints on a recording, and playing it.
#include "app/gui/model/breakpoints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

TEST_F(Model, ABreakpointIsHitWhereItsConditionFirstHolds) {
  const std::int64_t end = data().end_ns();
  const store::StepRow& second = data().steps()[1];
  const std::vector<Breakpoint> step{{BreakKind::step, second.step, 0, true}};
  const auto hit = next_hit(*app_.run, 0, step, 0, end);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->at_ns, second.begin_ns);
  EXPECT_FALSE(next_hit(*app_.run, 0, step, second.begin_ns, end)) << "it is passed";
  std::vector<Breakpoint> off = step;
  off[0].enabled = false;
  EXPECT_FALSE(next_hit(*app_.run, 0, off, 0, end));

  const auto waits = app_.run->index().waits(0);
  ASSERT_FALSE(waits.empty());
  const std::vector<Breakpoint> wait{{BreakKind::wait, ev::kNoId, 0, true}};
  EXPECT_EQ(next_hit(*app_.run, 0, wait, 0, end)->at_ns, waits.front().end_ns);
  const std::vector<Breakpoint> long_wait{{BreakKind::wait, ev::kNoId, 1e9, true}};
  EXPECT_FALSE(next_hit(*app_.run, 0, long_wait, 0, end));
}

TEST_F(Model, OfSeveralBreakpointsTheEarliestStops) {
  const std::vector<Breakpoint> both{{BreakKind::step, data().steps()[1].step, 0, true},
                                     {BreakKind::wait, ev::kNoId, 0, true}};
  const auto hit = next_hit(*app_.run, 0, both, 0, data().end_ns());
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->at_ns, std::min(data().steps()[1].begin_ns, app_.run->index().waits(0).front().end_ns));
}

TEST_F(Model, LiveElementsAboveAThresholdStopAtAGateWhereThereAreMore) {
  const std::vector<Breakpoint> any{{BreakKind::live_elements, ev::kNoId, 1, true}};
  const auto hit = next_hit(*app_.run, 0, any, 0, data().end_ns());
  ASSERT_TRUE(hit);
  const StatusLists lists = status_lists(data(), 0, hit->at_ns);
  EXPECT_GT(lists.available_elems + lists.persistent_elems + lists.in_flight_elems, 1);
  const std::vector<Breakpoint> never{{BreakKind::live_elements, ev::kNoId, 1e15, true}};
  EXPECT_FALSE(next_hit(*app_.run, 0, never, 0, data().end_ns()));
}

TEST(Playback, MovesBySpeedAndStopsAtTheEnd) {
  Playback playback{true, 0.01};
  EXPECT_EQ(playback.advance(1000, 0.5, 1'000'000'000), 1000 + 5'000'000);
  EXPECT_TRUE(playback.playing);
  EXPECT_EQ(playback.advance(1000, 0.5, 2000), 2000);
  EXPECT_FALSE(playback.playing);
}

}  // namespace
}  // namespace shardscope::gui
