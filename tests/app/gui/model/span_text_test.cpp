// What tool tips, the Inspector and the Stepper say of pauses, of spans that never ended, and of whom a
// gather is for.
#include "app/gui/model/span_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "app/gui/model/details.h"
#include "app/gui/model/stepping.h"
#include "instrumentation/param_status.h"
#include "tests/app/store/odd_ends.h"

namespace shardscope::gui {
namespace {

using ev::StreamId;

class OddEnds : public ::testing::Test {
 protected:
  OddEnds() {
    app_.run = std::make_unique<Session>(store::odd_ends());
    app_.run->settle();
    app_.place_once();
  }
  [[nodiscard]] Details of(std::uint32_t rank, StreamId stream, std::uint8_t depth = 0) const {
    const store::LaneId lane{rank, stream};
    return describe_span(app_, lane, app_.store().spans(lane, depth).front());
  }
  static std::string field(const Details& details, const std::string& label) {
    const auto found = std::ranges::find(details.fields, label, &Field::label);
    return found == details.fields.end() ? "no " + label
           : found->unit.empty()         ? found->value
                                         : found->value + " " + found->unit;
  }
  AppState app_;
};

TEST_F(OddEnds, APauseIsInNoDuration) {
  const Details module = of(0, StreamId::compute);
  EXPECT_EQ(field(module, "duration"), "10.0 ms");
  EXPECT_EQ(field(module, "paused"), "6.47 s");
  const Details gather = of(0, StreamId::gather);
  EXPECT_EQ(field(gather, "duration"), "1.00 ms");
  EXPECT_EQ(field(gather, "paused"), "no paused");
  const Details pause =
      describe_span(app_, {0, StreamId::host}, app_.store().spans({0, StreamId::host}, 1).front());
  EXPECT_EQ(field(pause, "duration"), "6.47 s");
  app_.select_step(0);
  EXPECT_EQ(field(describe_selection(app_), "paused"), "6.47 s");
  const store::Span module_span = app_.store().spans({0, StreamId::compute}, 0).front();
  EXPECT_EQ(length_text(store::time_of(app_.store(), 0, module_span)), "10.0 ms + 6.47 s paused");
}

TEST_F(OddEnds, AMeasuredOrNotedRangeIsWithoutPausesToo) {
  store::Store store = store::odd_ends();
  store::end_the_step(store);
  EXPECT_EQ(measured_text(store, 0, 20 * store::kMs + store::kPauseNs),
            "20.0 ms + 6.47 s paused, 1.00 steps");
  EXPECT_EQ(measured_text(store, 0, 5 * store::kMs), "5.00 ms, 0.25 steps");
  Note note;
  note.begin_ns = store::kMs;
  note.end_ns = 11 * store::kMs + store::kPauseNs;
  app_.notes.show(*app_.run);
  app_.notes.put(note);
  const Table table = note_table(app_);
  EXPECT_EQ(table.rows.at(0).at(1).text, "10.0 ms + 6.47 s paused");
  EXPECT_EQ(table.rows[0][1].value, 10.0 * store::kMs);
  EXPECT_NE(flag_text(app_.store(), app_.notes.notes(), {0, 0, {0}}).find("10.0 ms + 6.47 s paused"),
            std::string::npos);
}

TEST_F(OddEnds, AnOpenSpanIsSaidToBeOpenAndWhy) {
  for (std::uint8_t depth = 0; depth < 2; ++depth) {
    const Details open = of(1, StreamId::compute, depth);
    EXPECT_EQ(field(open, "up to the last event"), depth == 0 ? "24.0 ms" : "10.0 ms");
    EXPECT_EQ(field(open, "so far"), "no so far");
    EXPECT_EQ(field(open, "duration"), "no duration");
    EXPECT_EQ(field(open, "not ended"), "rank 1 was killed by signal 9 (SIGKILL) at 0.025 s");
  }
  const store::Span wait = app_.store().spans({1, StreamId::compute}, 1).front();
  EXPECT_EQ(length_text(store::time_of(app_.store(), 1, wait)), "not ended, 10.0 ms up to the last event");
  // Only where the rank may go on.
  EXPECT_EQ(length_text({.ended = false, .still_running = true, .running_ns = 10 * store::kMs}),
            "open, 10.0 ms so far");
  app_.select_rank(1);
  EXPECT_EQ(field(describe_selection(app_), "state"), "rank 1 was killed by signal 9 (SIGKILL)");
}

TEST_F(OddEnds, AGatherIsCalledAfterWhatItHoldsAndNotAfterWhereItWasIssued) {
  const Details gather = of(0, StreamId::gather);
  EXPECT_EQ(gather.reason, "Prefetched at net.first, for net.second");
  EXPECT_EQ(field(gather, "contents"), "net.second");
  EXPECT_NE(of(1, StreamId::compute, 1).reason.find("until gather 5 of net.second had arrived"),
            std::string::npos);
  const store::LaneId lane{0, StreamId::gather};
  app_.select_span(lane, app_.store().spans(lane, 0).front());
  EXPECT_EQ(app_.selection.module, 2U);
  EXPECT_EQ(describe_param(app_, 1, 0, 4 * store::kMs).reason, "prefetched at net.first, for net.second");
  EXPECT_EQ(describe_param(app_, 1, 0, 15 * store::kMs + store::kPauseNs).reason,
            "prefetched, for net.second");
  // Coalesced gathers bring the parameters of other modules too.
  const std::uint32_t second = 1;
  const auto available = ev::status_code(2, ev::StatusCause::prefetch);
  EXPECT_EQ(reason_of(app_.store(), available, 1, std::span(&second, 1)),
            "prefetched, used first at net.first");
  const auto fetched = ev::status_code(1, ev::StatusCause::fetch);
  EXPECT_EQ(reason_of(app_.store(), fetched, 1, std::span(&second, 1)),
            "fetched at net.first, for net.second");
  EXPECT_EQ(reason_of(app_.store(), fetched, 2, std::span(&second, 1)), "fetched for net.second");
}

TEST_F(OddEnds, TheStepperSaysWhereAPrefetchWasIssuedAndForWhom) {
  const auto actions = scheduler_actions(app_.store(), 0, 0, store::Store::kEnd);
  const auto started = std::ranges::find_if(
      actions, [](const SchedulerAction& action) { return action.text.starts_with("Prefetch started"); });
  ASSERT_NE(started, actions.end());
  EXPECT_EQ(started->reason, "prefetched at net.first, for net.second");
  const auto ended = std::ranges::find_if(
      actions, [](const SchedulerAction& action) { return action.text.starts_with("Prefetch 5"); });
  ASSERT_NE(ended, actions.end());
  EXPECT_EQ(ended->text, "Prefetch 5, for net.second: early");
  EXPECT_EQ(ended->reason, "there 8.00 ms before it was needed at net.second");
}

TEST_F(OddEnds, AWaitIsAtOneModuleForTheParametersOfAnother) {
  store::Span wait = app_.store().spans({1, StreamId::compute}, 1).front();
  const auto text = [&] { return wait_text(app_.store(), 1, wait, app_.run->index()); };
  EXPECT_EQ(text(), "fetch for net.second");
  wait.a = 1;
  EXPECT_EQ(text(), "fetch at net.first, for net.second");
  wait.b = 99;  // not in the index
  EXPECT_EQ(text(), "fetch at net.first");
  wait.a = ev::kNoId;
  EXPECT_EQ(text(), "gather of persistent parameters");
}

}  // namespace
}  // namespace shardscope::gui
