// Places: undo and redo of navigation, links, and what "go to" understands.
#include "app/gui/model/places.h"

#include <algorithm>
#include <fstream>

#include "app/gui/model/file_list.h"
#include "app/gui/model/find_names.h"
#include "app/gui/model/finding_place.h"
#include "app/gui/model/match.h"
#include "app/gui/model/recent.h"
#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

Place at(std::int64_t begin, std::int64_t end) {
  Place place;
  place.range = {begin, end};
  return place;
}

TEST(PlaceHistory, ADragIsOneEntryAndGoingBackLeadsToWhereItBegan) {
  PlaceHistory history;
  history.note(at(0, 100), 0);
  for (int i = 1; i <= 20; ++i) history.note(at(i, 100 + i), 5 + i * 0.02);
  const auto before = history.back(6);
  ASSERT_TRUE(before);
  EXPECT_EQ(before->range, (TimeRange{0, 100}));
  EXPECT_FALSE(history.can_go_back()) << "the way of the drag is no place";
  const auto after = history.forward(6);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->range, (TimeRange{20, 120}));
}

TEST(PlaceHistory, EachPlaceThatWasRestedUponIsKeptAndANewOneEndsRedo) {
  PlaceHistory history;
  for (int i = 0; i < 4; ++i) history.note(at(i * 1000, i * 1000 + 100), i * 10.0);
  EXPECT_EQ(history.back(40)->range.begin_ns, 2000);
  EXPECT_EQ(history.back(41)->range.begin_ns, 1000);
  ASSERT_TRUE(history.can_go_forward());
  history.note(at(7777, 7800), 60);
  EXPECT_FALSE(history.can_go_forward());
  EXPECT_EQ(history.back(61)->range.begin_ns, 1000);
}

TEST(PlaceHistory, WhatFollowsALiveRunIsNoNewPlaceInEveryFrame) {
  PlaceHistory history;
  for (int i = 0; i < 50; ++i) {
    Place place = at(i * 10, i * 10 + 100);
    place.follow = true;
    history.note(place, i);
  }
  EXPECT_FALSE(history.can_go_back());
}

TEST(TimeFromText, ReadsUnitsAndKeepsWholeNanoseconds) {
  EXPECT_EQ(time_from_text("1.25 s"), 1'250'000'000);
  EXPECT_EQ(time_from_text("830ms"), 830'000'000);
  EXPECT_EQ(time_from_text("12 µs"), 12'000);
  EXPECT_EQ(time_from_text("9007199254740993ns"), 9007199254740993) << "a double would round it";
  for (const char* wrong : {"", "12", "s", "1.2 parsec", "1e300s", "nan s"})
    EXPECT_FALSE(time_from_text(wrong)) << wrong;
}

TEST_F(Model, ALinkLeadsBackToThePlaceItWasCopiedFrom) {
  ASSERT_TRUE(app_.go_to_step(2));
  app_.select_param(4, 1);
  app_.set_now(app_.store().end_ns() / 3);
  const Place there = place_of(app_);
  const std::string link = link_of(app_);
  app_.fit();
  app_.clear_selection();
  app_.cursor_ns.reset();
  ASSERT_EQ(go_to_text(app_, link), "") << link;
  const Place back = place_of(app_);
  EXPECT_EQ(back.range, there.range);
  EXPECT_EQ(back.cursor_ns, there.cursor_ns);
  EXPECT_EQ(back.selection.kind, SelectionKind::param);
  EXPECT_EQ(back.selection.param, 4U);
  EXPECT_EQ(back.selection.rank, 1U);
  EXPECT_EQ(app_.rank_to_show, 1U) << "the timeline scrolls to the rank";
}

TEST_F(Model, ALinkHasTheSelectedSpanAndTheMeasuredRange) {
  const store::LaneId lane{1, ev::StreamId::gather};
  const auto spans = data().spans(lane, 0);
  ASSERT_GT(spans.size(), 3U);
  app_.select_span(lane, spans[2]);
  app_.measured = TimeRange{spans[1].begin_ns, spans[3].begin_ns};
  const std::string link = link_of(app_);
  app_.selection = {};
  app_.measured.reset();
  EXPECT_EQ(go_to_text(app_, link), "");
  ASSERT_TRUE(app_.selection.span) << link;
  EXPECT_EQ(app_.selection.lane, lane);
  EXPECT_EQ(app_.selection.span->begin_ns, spans[2].begin_ns);
  EXPECT_EQ(app_.measured, (TimeRange{spans[1].begin_ns, spans[3].begin_ns}));
  for (const char* wrong : {"gather", "gather.0", "gather.0.1ns", "gather.999.5ns", "x.0.5ns", "gather.0.x"})
    EXPECT_NE(go_to_text(app_, std::string("rank=1&span=") + wrong).find("is not a span"), std::string::npos)
        << wrong;
}

TEST_F(Model, GoToTakesStepsTimesAndRanksAndNamesWhatIsWrong) {
  EXPECT_EQ(go_to_text(app_, "step 1"), "");
  EXPECT_TRUE(app_.time.range().contains(data().steps()[1].begin_ns));
  EXPECT_EQ(go_to_text(app_, " 2 "), "");
  EXPECT_EQ(go_to_text(app_, "1ms"), "");
  EXPECT_EQ(app_.cursor_ns, 1'000'000);
  EXPECT_EQ(go_to_text(app_, "rank 1"), "");
  EXPECT_EQ(app_.selection.kind, SelectionKind::rank);
  EXPECT_NE(go_to_text(app_, "rank 99").find("no such rank"), std::string::npos);
  EXPECT_NE(go_to_text(app_, "step 4000000").find("no step 4000000"), std::string::npos);
  EXPECT_NE(go_to_text(app_, "90h").find("outside the run"), std::string::npos);
  EXPECT_NE(go_to_text(app_, "yesterday").find("is not a place"), std::string::npos);
  EXPECT_NE(go_to_text(app_, "x#param=nothing").find("is not a param of this run"), std::string::npos);
  EXPECT_NE(go_to_text(app_, "#range=5ms-2ms").find("is not a time range"), std::string::npos);
}

TEST_F(Model, NowIsWhereItIsSetAndStaysWithinTheRun) {
  app_.set_now(5);
  EXPECT_EQ(app_.now_ns(), 5);
  app_.set_now(INT64_MAX);
  EXPECT_EQ(app_.now_ns(), data().end_ns());
}

TEST_F(Model, AFindingWithoutRankOrTimeShowsTheWholeRunAndOneWithARankScrollsToIt) {
  ASSERT_TRUE(app_.go_to_step(1));
  app_.show_finding({});
  EXPECT_LE(app_.time.range().begin_ns, 0);
  EXPECT_GE(app_.time.range().end_ns, data().end_ns());
  analysis::Finding finding;
  finding.rank = 1;
  finding.at_ns = data().end_ns() / 2;
  app_.show_finding(finding);
  EXPECT_EQ(app_.rank_to_show, 1U);
  EXPECT_TRUE(app_.timeline.expanded.contains(1));
  EXPECT_EQ(app_.now_ns(), finding.at_ns);
}

/// A click on a finding shows its stretch of time whole, also one that begins with the run.
TEST_F(Model, AFindingWithAStretchOfTimeShowsAllOfItAndItsStep) {
  const std::int64_t end = data().end_ns();
  for (const store::StepRow& row : data().steps()) {
    ASSERT_NE(row.end_ns, store::kOpen);
    app_.time.set({end - 1000, end}, end);  // somewhere else
    analysis::Finding finding;
    finding.at_ns = row.begin_ns;
    finding.until_ns = row.end_ns;
    finding.rank = 0;
    app_.show_finding(finding);
    EXPECT_LE(app_.time.goal().begin_ns, row.begin_ns) << row.step;
    EXPECT_GE(app_.time.goal().end_ns, row.end_ns) << row.step;
    EXPECT_LT(app_.time.goal().length(), end) << row.step << ": not the whole run";
    EXPECT_EQ(app_.now_ns(), row.begin_ns);
    EXPECT_EQ(step_of(data(), finding), row.step);
  }
}

/// Of a run that provokes some: each leads to its rank and time.
TEST_F(Model, EachFindingOfARunOpensItsEvidence) {
  const auto& findings = app_.run->findings();
  ASSERT_FALSE(findings.empty());
  const std::int64_t end = data().end_ns();
  for (const analysis::Finding& finding : findings) {
    ASSERT_TRUE(finding.placed()) << finding.title;
    app_.time.set({0, 1000}, end);
    app_.set_now(0);
    app_.rank_to_show.reset();
    app_.show_finding(finding);
    EXPECT_EQ(app_.now_ns(), finding.at_ns) << finding.title;
    EXPECT_LE(app_.time.goal().begin_ns, finding.at_ns) << finding.title;
    EXPECT_GE(app_.time.goal().end_ns, std::max(finding.until_ns, finding.at_ns)) << finding.title;
    EXPECT_TRUE(step_of(data(), finding)) << finding.title;
    if (finding.rank != ev::kNoId) {
      EXPECT_EQ(app_.rank_to_show, finding.rank) << finding.title;
    }
  }
}

TEST_F(Model, NamesAreFoundByAllWordsTyped) {
  const auto hits = find_names(app_, "step 1");
  ASSERT_FALSE(hits.empty());
  EXPECT_EQ(hits.front().kind, NameKind::step);
  EXPECT_TRUE(find_names(app_, "   ").empty());
  const std::string param = data().tables().params[4].name;
  bool found = false;
  for (const NameHit& hit : find_names(app_, param)) {
    if (hit.kind != NameKind::param || hit.text != param) continue;
    found = true;
    go_to_name(app_, hit);
  }
  ASSERT_TRUE(found);
  EXPECT_EQ(app_.selection.param, 4U);
}

TEST(Match, EveryWordWhateverItsCase) {
  EXPECT_TRUE(matches("h.3.attn.c_attn", "ATTN 3"));
  EXPECT_FALSE(matches("h.3.attn.c_attn", "attn 4"));
  EXPECT_FALSE(matches("h.3.attn.c_attn", "  attn  4")) << "every word, however many spaces are before it";
  EXPECT_TRUE(matches("anything", "  "));
}

TEST(Recent, NewestFirstOnceEachAndBackFromItsLines) {
  Recent recent;
  for (int i = 0; i < 20; ++i) recent.opened("/runs/" + std::to_string(i) + ".zscope");
  recent.opened("/runs/10.zscope");
  ASSERT_EQ(recent.files.size(), Recent::kMost);
  EXPECT_EQ(recent.files.front(), "/runs/10.zscope");
  recent.connected({"tcp://a:1", ""});
  recent.connected({"tcp://a:1", "my.key"});
  ASSERT_EQ(recent.endpoints.size(), 1U);
  recent.opened("two\nlines");
  Recent read;
  for (const std::string& line : recent.lines()) read.take_line(line);
  EXPECT_EQ(read.files, recent.files);
  EXPECT_EQ(read.endpoints, recent.endpoints);
}

TEST(FileList, FoldersThenRecordingsAndNothingElse) {
  const std::filesystem::path folder = ::testing::TempDir() + "/file_list_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "runs");
  for (const char* name : {"a.zscope", "notes.txt", ".hidden.zscope"}) std::ofstream(folder / name) << "x";
  const FileList list = list_recordings(folder);
  ASSERT_EQ(list.entries.size(), 2U);
  EXPECT_EQ(list.entries[0].name, "runs");
  EXPECT_TRUE(list.entries[0].folder);
  EXPECT_EQ(list.entries[1].name, "a.zscope");
  EXPECT_NE(list_recordings(folder / "missing").problem.find("missing"), std::string::npos);
}

}  // namespace
}  // namespace shardscope::gui
