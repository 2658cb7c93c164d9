// Files dropped onto the window: from what the window system gives to the runs that are open then.
#include "app/gui/model/dropped_files.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "app/store/recording.h"
#include "tests/app/store/synthetic_run.h"
#include "tests/temporary_folder.h"

namespace shardscope::gui {
namespace {

class Dropped : public ::testing::Test {
 protected:
  Dropped() {
    app_.run = std::make_unique<Session>(store::Store());
    app_.start_page = true;
    for (const std::string& path : {a_, b_, c_}) {
      store::RecordingWriter writer(path);
      store::record(writer, store::make_synthetic_run({.steps = 2}));
    }
  }
  /// As the callback of the window system is called, with paths that end with the call.
  void drop(const std::vector<std::string>& paths) {
    std::vector<std::string> copies = paths;
    std::vector<const char*> texts;
    for (const std::string& path : copies) texts.push_back(path.c_str());
    files_.take(static_cast<int>(texts.size()), texts.data());
    for (std::string& path : copies) path.assign(path.size(), '?');
  }
  void open() {
    said_ = files_.open([&](const AppState::OpenRequest& request) {
      problem_ = app_.open(request);
      return problem_.empty();
    });
  }

  const test::TemporaryFolder folder_;
  const std::string a_ = (folder_.path() / "a.zscope").string();
  const std::string b_ = (folder_.path() / "b.zscope").string();
  const std::string c_ = (folder_.path() / "c.zscope").string();
  AppState app_;
  DroppedFiles files_;
  std::string problem_, said_;
};

TEST_F(Dropped, OneFileIsOpenedInPlaceOfTheStartPage) {
  EXPECT_TRUE(files_.empty());
  drop({a_});
  EXPECT_FALSE(files_.empty());
  EXPECT_TRUE(app_.start_page) << "between two frames only";
  open();
  EXPECT_EQ(problem_, "");
  EXPECT_EQ(app_.run->source(), a_);
  EXPECT_EQ(app_.other, nullptr);
  EXPECT_FALSE(app_.start_page);
  EXPECT_TRUE(files_.empty());
  const std::uint64_t run = app_.run->number();
  open();
  EXPECT_EQ(app_.run->number(), run) << "once only";
}

TEST_F(Dropped, TwoFilesAreComparedInTheirOrder) {
  drop({b_, a_});
  open();
  EXPECT_EQ(app_.run->source(), b_);
  ASSERT_NE(app_.other, nullptr);
  EXPECT_EQ(app_.other->source(), a_);
  EXPECT_EQ(said_, "");
}

TEST_F(Dropped, OneFileTakesThePlaceOfBothRunsOfAComparison) {
  drop({b_, a_});
  open();
  drop({c_});
  open();
  EXPECT_EQ(app_.run->source(), c_);
  EXPECT_EQ(app_.other, nullptr);
}

TEST_F(Dropped, OfMoreThanTwoTheFirstTwoAreComparedAndThatIsSaid) {
  drop({a_, b_, c_});
  open();
  EXPECT_EQ(app_.run->source(), a_);
  ASSERT_NE(app_.other, nullptr);
  EXPECT_EQ(app_.other->source(), b_);
  EXPECT_EQ(said_, "The first two of 3 files are compared");
}

TEST_F(Dropped, WhatIsNoRecordingLeavesTheWindowAsItIs) {
  const std::string text = (folder_.path() / "notes.txt").string();
  std::ofstream(text) << "no recording";
  drop({a_});
  open();
  const std::uint64_t run = app_.run->number();
  drop({text, b_});
  open();
  EXPECT_NE(problem_, "");
  EXPECT_EQ(app_.run->number(), run);
  EXPECT_EQ(app_.other, nullptr) << "the second one alone would be compared with the wrong run";
  drop({b_, text});
  open();
  EXPECT_NE(problem_, "");
  EXPECT_EQ(app_.run->source(), b_);
  EXPECT_EQ(app_.other, nullptr);
}

}  // namespace
}  // namespace shardscope::gui
