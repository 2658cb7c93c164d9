// Another run is shown: what was selected, looked at and kept of the one before is gone, also where the same
// recording is opened once more.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/gui/model/connection_facts.h"
#include "app/gui/model/labelled_run.h"
#include "app/gui/model/places.h"
#include "app/gui/model/trace_info.h"
#include "app/store/recording.h"
#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

namespace fs = std::filesystem;

/// What a user has done to the window.
void look_around(AppState& app) {
  app.select_rank(app.store().ranks().back().rank);
  app.hovered_span = store::Span{};
  app.rank_to_show = 1;
  app.what_if_changes.emplace();
  app.measured = TimeRange{10, 20};
  app.cursor_ns = 15;
  app.find.words = "gather";
  follow_param(app.timeline, 0);
  app.timeline.view.lane_height = 30;
  app.history.note({}, 0);
  Place other;
  other.range = {1, 2};
  app.history.note(other, 10);
  app.history.note(other, 20);
  app.breaks.add(app.store(), {BreakKind::step, 1, 0, true});
}

void expect_nothing_of_before(const AppState& app) {
  EXPECT_EQ(app.selection.kind, SelectionKind::none);
  EXPECT_FALSE(app.hovered_span);
  EXPECT_FALSE(app.rank_to_show);
  EXPECT_FALSE(app.what_if_changes);
  EXPECT_FALSE(app.measured);
  EXPECT_FALSE(app.cursor_ns);
  EXPECT_FALSE(app.time_placed);
  EXPECT_FALSE(app.ranks_placed);
  EXPECT_FALSE(app.breaks.stopped());
  EXPECT_FALSE(app.history.can_go_back());
  EXPECT_TRUE(app.timeline.params.empty());
  EXPECT_EQ(app.timeline.view.lane_height, 30) << "the user's, whichever run is shown";
}

TEST_F(Model, RunsThatAreSwappedForgetWhatWasLookedAtOfTheOther) {
  app_.other = std::make_unique<Session>(store::make_synthetic_store());
  const std::uint64_t a = app_.run->number(), b = app_.other->number();
  EXPECT_NE(a, b);
  look_around(app_);
  app_.swap_runs();
  EXPECT_EQ(app_.run->number(), b);
  EXPECT_EQ(app_.other->number(), a);
  expect_nothing_of_before(app_);
}

TEST_F(Model, WithoutASecondRunNothingIsSwapped) {
  look_around(app_);
  app_.swap_runs();
  EXPECT_NE(app_.run, nullptr);
  EXPECT_EQ(app_.selection.kind, SelectionKind::rank) << "and nothing is forgotten";
}

TEST_F(Model, TheOtherRunIsShownAtTheSameStepsAndTheFirstOneAgainAsItWas) {
  store::SyntheticOptions slow;
  slow.compute_gflops = 20;
  app_.other = std::make_unique<Session>(store::make_synthetic_store(slow));
  app_.other->settle();
  const std::uint64_t a = app_.run->number(), b = app_.other->number();
  ASSERT_TRUE(app_.go_to_step(data().steps()[1].step));
  app_.time.advance(100);  // where the glide ends
  app_.select_rank(1);
  follow_param(app_.timeline, 2);
  const TimeRange before = app_.time.goal();
  const std::int64_t cursor = *app_.cursor_ns;

  app_.show_other_run();
  EXPECT_EQ(app_.run->number(), b);
  EXPECT_STREQ(app_.letter_of(*app_.run), "B");
  EXPECT_STREQ(app_.letter_of(*app_.other), "A");
  EXPECT_EQ(app_.run_a().number(), a) << "A stays A";
  EXPECT_EQ(app_.run_b()->number(), b);
  const store::StepRow& same = data().steps()[1];
  EXPECT_LT(app_.time.range().begin_ns, same.begin_ns);
  EXPECT_GT(app_.time.range().end_ns, same.end_ns);
  ASSERT_TRUE(app_.cursor_ns);
  EXPECT_GT(*app_.cursor_ns, same.begin_ns);
  EXPECT_LT(*app_.cursor_ns, same.end_ns);
  EXPECT_EQ(app_.selection.kind, SelectionKind::rank);
  EXPECT_EQ(app_.selection.rank, 1U);
  EXPECT_TRUE(follows(app_.timeline, 2));

  app_.show_other_run();
  EXPECT_EQ(app_.run->number(), a);
  EXPECT_STREQ(app_.letter_of(*app_.run), "A");
  EXPECT_NEAR(static_cast<double>(app_.time.range().begin_ns), static_cast<double>(before.begin_ns), 1000);
  EXPECT_NEAR(static_cast<double>(app_.time.range().end_ns), static_cast<double>(before.end_ns), 1000);
  EXPECT_NEAR(static_cast<double>(*app_.cursor_ns), static_cast<double>(cursor), 1000);
}

TEST_F(Model, AnOwnOrderOfRanksIsOfItsRun) {
  app_.other = std::make_unique<Session>(store::make_synthetic_store({.seed = 2}));
  const std::vector<std::uint32_t> mine{3, 1, 0, 2};
  app_.timeline.own_order = mine;
  app_.timeline.order = RankOrder::own;
  app_.show_other_run();
  EXPECT_TRUE(app_.timeline.own_order.empty());
  EXPECT_EQ(app_.timeline.order, RankOrder::number);
  app_.show_other_run();
  EXPECT_EQ(app_.timeline.own_order, mine);
  EXPECT_EQ(app_.timeline.order, RankOrder::own);
}

TEST_F(Model, AMeasuredRangeStaysWithinTheRunThatIsShown) {
  app_.other = std::make_unique<Session>(store::make_synthetic_store({.steps = 2}));
  app_.other->settle();
  const store::Store& b = app_.other->store();
  ASSERT_LT(b.end_ns(), data().steps()[3].begin_ns) << "B lacks the last steps";
  app_.measured = TimeRange{data().steps()[1].begin_ns, data().end_ns()};
  app_.show_other_run();
  ASSERT_TRUE(app_.measured);
  EXPECT_EQ(app_.measured->begin_ns, b.steps()[1].begin_ns);
  EXPECT_EQ(app_.measured->end_ns, b.end_ns());
  app_.show_other_run();
  app_.measured = TimeRange{data().steps()[3].begin_ns, data().end_ns()};
  app_.show_other_run();
  EXPECT_FALSE(app_.measured) << "nothing of it is in B";
}

TEST_F(Model, ASpanIsSelectedAgainWhenItsRunIsShownAgain) {
  app_.other = std::make_unique<Session>(store::make_synthetic_store({.seed = 2}));
  app_.other->settle();
  const store::LaneId lane{0, ev::StreamId::compute};
  const std::vector<store::Span> spans = data().spans(lane, 0);
  ASSERT_FALSE(spans.empty());
  app_.select_span(lane, spans.front());
  app_.show_other_run();
  EXPECT_EQ(app_.selection.kind, SelectionKind::none);
  app_.show_other_run();
  ASSERT_TRUE(app_.selection.span);
  EXPECT_EQ(app_.selection.span->begin_ns, spans.front().begin_ns);
}

TEST_F(Model, OneRunHasNoLetterAndNoOtherOne) {
  const std::uint64_t run = app_.run->number();
  EXPECT_STREQ(app_.letter_of(*app_.run), "");
  app_.show_other_run();
  EXPECT_EQ(app_.run->number(), run);
  EXPECT_EQ(labelled_runs(app_).size(), 1U);
}

TEST_F(Model, AThenBWhicheverIsShown) {
  app_.other = std::make_unique<Session>(store::make_synthetic_store({.seed = 2}));
  const std::uint64_t a = app_.run->number();
  for (int i = 0; i < 2; ++i) {
    const std::vector<LabelledRun> runs = labelled_runs(app_);
    ASSERT_EQ(runs.size(), 2U);
    EXPECT_EQ(runs[0].run->number(), a);
    EXPECT_STREQ(runs[0].letter, "A");
    EXPECT_STREQ(runs[1].letter, "B");
    EXPECT_STREQ(shown_run(app_).letter, i == 0 ? "A" : "B");
    app_.show_other_run();
  }
}

TEST_F(Model, SwappingExchangesTheLettersAndShowsA) {
  app_.other = std::make_unique<Session>(store::make_synthetic_store({.seed = 2}));
  const std::uint64_t b = app_.other->number();
  app_.show_other_run();
  app_.swap_runs();
  EXPECT_EQ(app_.run->number(), b);
  EXPECT_STREQ(app_.letter_of(*app_.run), "A");
}

class Reopened : public ::testing::Test {
 protected:
  Reopened()
      : path_((fs::temp_directory_path() / ("shardscope-shown-" + std::to_string(getpid()))).string()) {
    record({});
    EXPECT_EQ(app_.open({path_, {}}), "");
  }
  ~Reopened() override { fs::remove(path_); }
  void record(const store::SyntheticOptions& options) const {
    fs::remove(path_);
    store::RecordingWriter writer(path_);
    store::record(writer, store::make_synthetic_run(options));
  }
  const std::string path_;
  AppState app_;
};

TEST_F(Reopened, TheSameFileIsAnotherRun) {
  app_.run->settle();
  app_.place_once();
  const std::uint64_t first = app_.run->number();
  look_around(app_);
  app_.timeline.view.set(ItemClass::waits, false);
  app_.timeline.counters = {RowCounter::loss};
  app_.timeline.order = RankOrder::own;
  ASSERT_EQ(app_.open({path_, {}}), "");
  EXPECT_NE(app_.run->number(), first);
  expect_nothing_of_before(app_);
  EXPECT_TRUE(app_.timeline.view.hides(ItemClass::waits)) << "an option is the user's, not the run's";
  EXPECT_EQ(app_.timeline.counters, std::set{RowCounter::loss});
  EXPECT_EQ(app_.timeline.order, RankOrder::number) << "an own order is that of one run";
}

TEST_F(Reopened, ASecondRunReplacesBWhicheverIsShown) {
  app_.run->settle();
  const std::uint64_t a = app_.run->number();
  for (const bool shows_b : {false, true, false}) {
    if (shows_b) app_.show_other_run();
    const std::uint64_t before = app_.other ? app_.run_b()->number() : 0;
    ASSERT_EQ(app_.open({.source = path_, .key_file = {}, .second = true}), "");
    EXPECT_EQ(app_.run_a().number(), a);
    EXPECT_STREQ(app_.letter_of(app_.run_a()), "A");
    EXPECT_EQ(app_.run->number(), a) << "A is shown";
    ASSERT_NE(app_.run_b(), nullptr);
    EXPECT_NE(app_.run_b()->number(), before);
    EXPECT_STREQ(app_.letter_of(*app_.run_b()), "B");
  }
}

TEST_F(Reopened, ARunThatCannotBeOpenedLeavesTheOneThatIsShown) {
  look_around(app_);
  EXPECT_NE(app_.open({path_ + ".none", {}}), "");
  EXPECT_EQ(app_.selection.kind, SelectionKind::rank);
}

/// Within the second in which the tables of a run that grows are not made anew.
TEST_F(Reopened, TheTraceInfoIsOfTheRunThatIsShown) {
  TraceInfo info;
  const auto ranks = [&] {
    for (const auto& row : info.of(app_, 10).facts.rows)
      if (row[0].text == "ranks") return row[1].text;
    return std::string();
  };
  const std::string before = ranks();
  EXPECT_NE(before, "");
  store::SyntheticOptions options;
  options.world = 6;
  record(options);
  ASSERT_EQ(app_.open({path_, {}}), "");
  EXPECT_NE(ranks(), before);
}

TEST_F(Reopened, ATimeOfLoadingIsOfAWindowAndOfNoPicture) {
  const auto has = [&](const std::string& what) {
    return std::ranges::any_of(trace_table(app_).rows, [&](const auto& row) { return row[0].text == what; });
  };
  ASSERT_EQ(app_.open({path_, {}}), "");
  TraceInfo info;
  (void)info.of(app_, 10);  // before it is analysed
  app_.run->settle();       // as for a picture
  EXPECT_FALSE(has("load: opened in"));
  app_.run->poll(std::chrono::milliseconds(1));
  EXPECT_TRUE(has("load: opened in"));
  EXPECT_TRUE(has("load: rate"));
  EXPECT_EQ(info.of(app_, 12).facts.rows.size(), trace_table(app_).rows.size()) << "and the panel follows";
}

TEST_F(Reopened, AFileIsARecordingAndARunWithoutItsConnectionIsNone) {
  EXPECT_TRUE(app_.run->recorded());
  EXPECT_EQ(link_of(app_).find('/'), std::string::npos) << "the file's name alone";
  ASSERT_EQ(app_.open({"tcp://127.0.0.1:1", {}}), "");
  EXPECT_FALSE(app_.run->recorded());
  app_.run->disconnect();
  EXPECT_FALSE(app_.run->recorded());
  EXPECT_FALSE(app_.run->live());
  EXPECT_EQ(trace_table(app_).rows.front()[2].text, "disconnected");
  for (const auto& row : trace_table(app_).rows) EXPECT_NE(row[0].text, "recorded");
  EXPECT_NE(link_of(app_).find("127.0.0.1"), std::string::npos) << link_of(app_);
  EXPECT_NE(link_of(app_).find("tcp"), std::string::npos) << "an endpoint is no path";
}

}  // namespace
}  // namespace shardscope::gui
