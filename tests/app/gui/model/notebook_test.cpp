// Notes on a run: kept beside its recording whatever happens to the file, and marked where they belong.
#include "app/gui/model/notebook.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <tuple>

#include "app/gui/model/app_state.h"
#include "app/gui/model/live_notes.h"
#include "app/gui/model/note_times.h"
#include "app/gui/model/places.h"
#include "app/store/recording.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Notes : public ::testing::Test {
 protected:
  Notes() {
    folder_ = ::testing::TempDir() + "notes_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name() + "/";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    recording_ = folder_ + "run.zscope";
    {
      store::RecordingWriter writer(recording_);
      store::record(writer, store::make_synthetic_run());
    }
    app_.run = Session::open_file(recording_);
    app_.run->settle();
    app_.place_once();
    app_.notes.show(*app_.run);
    path_ = exporter::notes_path(recording_);
  }
  ~Notes() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }
  /// As another window reads them.
  [[nodiscard]] std::vector<Note> elsewhere() const {
    return exporter::read_notes(path_, app_.store().tables().run_id);
  }
  static Note note(std::int64_t begin_ns, std::int64_t end_ns, std::string text) {
    Note out;
    out.begin_ns = begin_ns;
    out.end_ns = end_ns;
    out.text = std::move(text);
    return out;
  }
  std::string folder_, recording_, path_;
  AppState app_;
};

TEST_F(Notes, AreKeptBesideTheRecordingAndReadAgain) {
  EXPECT_FALSE(fs::exists(path_)) << "nothing was noted";
  Note first = note(5'000'000, 5'000'000, "gather \"12\" is late, \xC3\xA9\\n");
  first.rank = 2;
  app_.notes.put(first);
  app_.notes.put(note(1'000'000, 3'000'000, ""));
  ASSERT_EQ(app_.notes.problem(), "");
  ASSERT_EQ(app_.notes.notes().size(), 2U);
  EXPECT_EQ(app_.notes.notes()[0].begin_ns, 1'000'000) << "by time";
  AppState other;
  other.run = Session::open_file(recording_);
  other.notes.show(*other.run);
  ASSERT_EQ(other.notes.notes().size(), 2U);
  EXPECT_TRUE(std::ranges::equal(other.notes.notes(), app_.notes.notes()));
  EXPECT_EQ(other.notes.notes()[1].text, first.text);
  EXPECT_EQ(other.notes.notes()[1].rank, 2U);
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_TRUE(entry.path() == recording_ || entry.path() == path_) << entry.path() << " was left";
}

TEST_F(Notes, AreChangedDeletedAndBroughtBack) {
  app_.notes.put(note(10, 10, "one"));
  app_.notes.put(note(20, 20, "two"));
  Note one = app_.notes.notes()[0];
  one.text = "first";
  app_.notes.put(one);
  EXPECT_EQ(elsewhere()[0].text, "first");
  ASSERT_EQ(elsewhere().size(), 2U);
  app_.notes.put(one);
  EXPECT_FALSE(app_.notes.restores_deleted());
  app_.notes.remove(one.id);
  ASSERT_EQ(elsewhere().size(), 1U);
  EXPECT_EQ(elsewhere()[0].text, "two");
  EXPECT_TRUE(app_.notes.restores_deleted());
  app_.notes.restore();
  ASSERT_EQ(elsewhere().size(), 2U);
  EXPECT_EQ(elsewhere()[0].text, "first");
  ASSERT_TRUE(app_.notes.can_restore());
  EXPECT_FALSE(app_.notes.restores_deleted());
  app_.notes.restore();
  EXPECT_EQ(elsewhere()[0].text, "one") << "the change before; putting the same again is none";
  EXPECT_FALSE(app_.notes.can_restore());
}

TEST_F(Notes, TimesAreChangedAsTextSavedAndTakenBack) {
  app_.notes.put(note(5'000'000, 5'000'000, "late"));
  Note late = app_.notes.notes()[0];
  EXPECT_EQ(times_of(late), (NoteTimes{"5 ms", ""}));
  const std::int64_t run = app_.store().end_ns();
  ASSERT_EQ(set_times(late, {" 1.25ms", "2000 us "}, run), "");
  app_.notes.put(late);
  ASSERT_EQ(elsewhere().size(), 1U) << "the same note";
  EXPECT_EQ(elsewhere()[0].begin_ns, 1'250'000);
  EXPECT_EQ(elsewhere()[0].end_ns, 2'000'000);
  app_.notes.restore();
  EXPECT_EQ(elsewhere()[0].begin_ns, 5'000'000);
  EXPECT_FALSE(elsewhere()[0].is_range());
}

TEST_F(Notes, ImpossibleTimesAreNamedAndLeaveTheNoteAsItIs) {
  Note late = note(1'000, 2'000, "");
  const Note before = late;
  const std::int64_t run = app_.store().end_ns();
  const std::tuple<NoteTimes, const char*> kWrong[] = {
      {{"", ""}, "begin"},          {{"12", ""}, "begin"},      {{"1 ms", "later"}, "end"},
      {{"2 ms", "1 ms"}, "before"}, {{"-1 ms", ""}, "outside"}, {{"1 ms", "9 h"}, "outside"}};
  for (const auto& [times, why] : kWrong) {
    EXPECT_NE(set_times(late, times, run).find(why), std::string::npos) << times.begin << " " << times.end;
    EXPECT_EQ(late, before);
  }
  Note beyond = note(run + 5, run + 9, "of a longer run");
  EXPECT_EQ(set_times(beyond, times_of(beyond), run), "") << "it was not changed";
}

TEST(NoteTimes, TextsKeepEveryNanosecond) {
  for (const std::int64_t ns : {0LL, 7LL, 1'000LL, 1'234'567LL, 5'000'000LL, 999'999'999LL, 1'000'000'001LL,
                                86'400'123'456'789LL, -1'500'000LL})
    EXPECT_EQ(time_from_text(exact_time(ns)), ns) << exact_time(ns);
  EXPECT_EQ(exact_time(1'500'000'000), "1.5 s");
  EXPECT_EQ(exact_time(250), "250 ns");
}

TEST_F(Notes, OfAnotherWindowStay) {
  AppState other;
  other.run = Session::open_file(recording_);
  other.notes.show(*other.run);
  app_.notes.put(note(10, 10, "mine"));
  other.notes.put(note(20, 20, "theirs"));
  EXPECT_EQ(elsewhere().size(), 2U);
  app_.notes.remove(app_.notes.notes()[0].id);
  ASSERT_EQ(elsewhere().size(), 1U);
  EXPECT_EQ(elsewhere()[0].text, "theirs");
}

TEST_F(Notes, AFileThatCannotBeReadIsNamedAndKept) {
  const std::string run_id = "\"" + app_.store().tables().run_id + "\"";
  const std::string head = R"({"format": "shardscope notes", "version": 1, "run_id": )" + run_id + ", ";
  const std::pair<std::string, const char*> kBroken[] = {
      {"{\"notes\": [", "is no JSON"},
      {"[]", "holds no notes"},
      {R"({"format": "shardscope notes", "version": 2, "run_id": )" + run_id + R"(, "notes": []})",
       "newer version"},
      {R"({"format": "shardscope notes", "version": 1, "run_id": "x", "notes": []})", "another run"},
      {head + R"("notes": [{"id": "a", "text": "t"}]})", "begin_ns is no time"},
      {head + R"("notes": [{"id": "a", "text": "t", "begin_ns": 1.5}]})", "begin_ns is no time"},
      {head + R"("notes": [{"id": "a", "text": "t", "begin_ns": 18446744073709551615}]})",
       "begin_ns is no time"},
      {head + R"("notes": [{"id": "a", "text": "t", "begin_ns": 5, "end_ns": 4}]})", "ends before"},
      {head + R"("notes": [{"id": "a", "begin_ns": 5}]})", "no text"},
      {head + R"("notes": [{"id": "a", "text": "t", "begin_ns": 5, "rank": -1}]})", "rank"},
      {head +
           R"("notes": [{"id": "a", "text": "t", "begin_ns": 5}, {"id": "a", "text": "t", "begin_ns": 6}]})",
       "two notes with one id"}};
  std::size_t kept = 0;
  for (const auto& [broken, reason] : kBroken) {
    std::ofstream(path_) << broken;
    app_.notes.forget();
    app_.notes.show(*app_.run);
    EXPECT_TRUE(app_.notes.notes().empty());
    EXPECT_NE(app_.notes.problem().find(reason), std::string::npos) << app_.notes.problem();
    EXPECT_NE(app_.notes.problem().find(path_), std::string::npos) << "which file";
    EXPECT_EQ(text_of(path_), broken) << "it is not touched";
    app_.notes.put(note(10, 10, "new"));
    const std::string aside = path_ + ".unreadable" + (kept == 0 ? "" : "-" + std::to_string(kept + 1));
    ++kept;
    EXPECT_EQ(text_of(aside), broken) << "kept under another name when a note is made";
    EXPECT_NE(app_.notes.problem().find(aside), std::string::npos) << app_.notes.problem();
    EXPECT_EQ(elsewhere().size(), 1U);
    app_.notes.put(note(20, 20, "next"));
    EXPECT_EQ(app_.notes.problem(), "") << "and then all is well";
    EXPECT_EQ(elsewhere().size(), 2U);
  }
}

TEST_F(Notes, WhatCannotBeSavedIsSaidAndSavedWhenItCan) {
  // Also root cannot write a file where a folder stands.
  fs::create_directories(path_ + ".elsewhere");
  fs::create_directory_symlink(path_ + ".elsewhere", path_);
  app_.notes.forget();
  app_.notes.show(*app_.run);
  EXPECT_NE(app_.notes.problem(), "");
  fs::remove(path_);
  fs::remove_all(path_ + ".elsewhere");
  app_.notes.put(note(10, 10, "kept"));
  EXPECT_EQ(elsewhere().size(), 1U);
  // The folder is gone while the window is open.
  const std::string moved = folder_.substr(0, folder_.size() - 1) + "_moved";
  fs::remove_all(moved);
  fs::rename(folder_, moved);
  app_.notes.put(note(20, 20, "unsaved"));
  EXPECT_NE(app_.notes.problem().find("Not saved"), std::string::npos) << app_.notes.problem();
  fs::rename(moved, folder_);
  app_.notes.put(note(30, 30, "later"));
  EXPECT_EQ(app_.notes.problem(), "");
  std::vector<std::string> texts;
  for (const Note& one : elsewhere()) texts.push_back(one.text);
  EXPECT_EQ(std::ranges::count(texts, "unsaved"), 1);
  EXPECT_EQ(std::ranges::count(texts, "later"), 1);
}

/// A file that can neither be read nor moved away is another's: however often a note is made.
TEST_F(Notes, AFileThatCannotBeSetAsideIsNeverOverwritten) {
  const std::string foreign = "another's";
  std::ofstream(path_) << foreign;
  const auto name = [&](int i) { return path_ + ".unreadable" + (i == 1 ? "" : "-" + std::to_string(i)); };
  for (int i = 1; i < 1000; ++i) std::ofstream(name(i)) << i;
  app_.notes.forget();
  app_.notes.show(*app_.run);
  for (int i = 1; i <= 3; ++i) {
    app_.notes.put(note(10 * i, 10 * i, "new"));
    EXPECT_NE(app_.notes.problem().find("cannot be set aside"), std::string::npos) << app_.notes.problem();
    EXPECT_EQ(text_of(path_), foreign) << i;
    EXPECT_EQ(app_.notes.notes().size(), static_cast<std::size_t>(i)) << "they are shown";
  }
  fs::remove(name(7));
  app_.notes.put(note(100, 100, "room"));
  EXPECT_EQ(text_of(name(7)), foreign);
  EXPECT_EQ(elsewhere().size(), 4U) << "and saved once the file is out of the way";
}

/// What one window could not save must not undo what another one saved meanwhile.
TEST_F(Notes, WhatIsUnsavedIsMergedWithWhatOthersSaved) {
  app_.notes.put(note(10, 10, "first"));
  app_.notes.put(note(20, 20, "second"));
  const std::string aside = path_ + ".aside";
  fs::rename(path_, aside);
  fs::create_directories(path_ + "/in the way");
  // A folder stands there, and all names beside it are taken: nothing can be written.
  for (int i = 1; i < 1000; ++i)
    std::ofstream(path_ + ".unreadable" + (i == 1 ? "" : "-" + std::to_string(i))) << i;
  Note edited = app_.notes.notes()[0];
  edited.text = "edited";
  app_.notes.put(edited);
  app_.notes.remove(app_.notes.notes()[1].id);
  app_.notes.put(note(30, 30, "mine"));
  EXPECT_NE(app_.notes.problem(), "");
  fs::remove_all(path_);
  fs::rename(aside, path_);
  AppState other;
  other.run = Session::open_file(recording_);
  other.run->settle();
  other.notes.show(*other.run);
  other.notes.put(note(40, 40, "theirs"));
  app_.notes.put(note(50, 50, "last"));
  EXPECT_EQ(app_.notes.problem(), "");
  std::vector<std::string> texts;
  for (const Note& one : elsewhere()) texts.push_back(one.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"edited", "mine", "theirs", "last"}));
}

TEST_F(Notes, TheColourOfAFlagIsKeptAndAnUnknownOneIsNone) {
  Note red = note(10, 10, "red");
  red.colour = exporter::NoteColour::red;
  app_.notes.put(red);
  app_.notes.put(note(20, 20, "plain"));
  ASSERT_EQ(elsewhere().size(), 2U);
  EXPECT_EQ(elsewhere()[0].colour, exporter::NoteColour::red);
  EXPECT_EQ(elsewhere()[1].colour, exporter::NoteColour::none);
  std::string text;
  {
    std::ifstream file(path_);
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  const std::string written = "\"colour\": \"red\"";
  const std::size_t at = text.find(written);
  ASSERT_NE(at, std::string::npos) << text;
  std::ofstream(path_) << text.replace(at, written.size(), "\"colour\": \"mauve\"");
  EXPECT_EQ(elsewhere()[0].colour, exporter::NoteColour::none);
}

TEST_F(Notes, OneTooManyIsNotDroppedInSilence) {
  std::vector<Note> many;
  for (std::size_t i = 0; i < exporter::kMostNotes; ++i) {
    many.push_back(note(static_cast<std::int64_t>(i), static_cast<std::int64_t>(i), ""));
    many.back().id = "n" + std::to_string(i);
  }
  exporter::write_notes(path_, app_.store().tables().run_id, many);
  app_.notes.forget();
  app_.notes.show(*app_.run);
  app_.notes.put(note(5, 5, "more"));
  EXPECT_NE(app_.notes.problem().find("Not noted"), std::string::npos) << app_.notes.problem();
  EXPECT_EQ(elsewhere().size(), exporter::kMostNotes);
  Note edited = app_.notes.notes()[0];
  edited.text = "edited";
  app_.notes.put(edited);
  EXPECT_EQ(app_.notes.problem(), "") << "what is there can be changed";
}

TEST_F(Notes, TheTableIsMadeAnewWhenANoteChanges) {
  NoteTable table;
  EXPECT_EQ(table.of(app_).rows.size(), 0U);
  app_.notes.put(note(10, 10, "one"));
  EXPECT_EQ(table.of(app_).rows.size(), 1U);
  const Table* const made = &table.of(app_);
  EXPECT_EQ(&table.of(app_), made);
  app_.notes.remove(app_.notes.notes()[0].id);
  EXPECT_EQ(table.of(app_).rows.size(), 0U);
}

TEST_F(Notes, AreMadeOnTheMeasuredRangeOrTheTimeLookedAtAndGoneTo) {
  app_.cursor_ns = 7'000'000;
  app_.selection.rank = 1;
  EXPECT_EQ(note_here(app_).begin_ns, 7'000'000);
  EXPECT_FALSE(note_here(app_).is_range());
  EXPECT_EQ(note_here(app_).rank, 1U);
  app_.measured = TimeRange{2'000'000, 2'400'000};
  Note range = note_here(app_);
  EXPECT_TRUE(range.is_range());
  app_.measured.reset();
  app_.fit();
  app_.notes.put(range);
  app_.notes.put(note(9'000'000, 9'000'000, ""));
  ASSERT_EQ(note_beside(app_, true)->begin_ns, 9'000'000);
  ASSERT_EQ(note_beside(app_, false)->begin_ns, 2'000'000);
  go_to_note(app_, *note_beside(app_, false));
  EXPECT_EQ(app_.measured, (TimeRange{2'000'000, 2'400'000})) << "measured again";
  EXPECT_TRUE(app_.time.range().contains(2'000'000));
  EXPECT_TRUE(app_.time.range().contains(2'399'999));
  EXPECT_LT(app_.time.range().length(), 100 * 400'000) << "large enough to be seen";
  EXPECT_EQ(note_beside(app_, false), nullptr);
}

TEST_F(Notes, OfALiveRunOrAStoreWithoutAFileAreInTheWindowAlone) {
  AppState live;
  live.run = std::make_unique<Session>(store::make_synthetic_store());
  live.notes.show(*live.run);
  live.notes.put(note(10, 10, "here"));
  EXPECT_FALSE(live.notes.has_file());
  EXPECT_EQ(live.notes.notes().size(), 1U);
  EXPECT_EQ(live.notes.problem(), "");
}

TEST_F(Notes, MadeOnTheLiveRunAreJoinedToItsRecordingAndChangedInBoth) {
  const std::string id = app_.store().tables().run_id;
  ASSERT_FALSE(id.empty());
  setenv("XDG_STATE_HOME", (folder_ + "state").c_str(), 1);
  EXPECT_EQ(live_notes_path("../a/b"), folder_ + "state/shardscope/notes/___a_b.json") << "no other folder";
  EXPECT_EQ(live_notes_path(""), "");
  const std::string live = live_notes_path(id);
  fs::create_directories(fs::path(live).parent_path());
  Note first = note(5, 5, "while it ran"), second = note(9, 12, "again");
  first.id = "one";
  second.id = "two";
  const std::int64_t origin_ns = app_.store().origin_ns();
  ASSERT_NE(origin_ns, 0);
  const auto on_the_clock = [&](Note note) {
    note.begin_ns += origin_ns;
    note.end_ns += origin_ns;
    return note;
  };
  exporter::write_notes(live, id, {on_the_clock(first), on_the_clock(second)});

  app_.notes.put(note(7, 7, "of the recording"));
  app_.notes.forget();
  app_.notes.show(*app_.run);
  EXPECT_EQ(app_.notes.problem(), "");
  EXPECT_EQ(app_.notes.notes().size(), 3U);
  EXPECT_EQ(elsewhere().size(), 3U) << "so that they go with the recording";
  EXPECT_EQ(app_.notes.find("one")->begin_ns, 5);
  EXPECT_EQ(app_.notes.find("two")->end_ns, 12);

  app_.notes.remove("one");
  second.text = "twice";
  app_.notes.put(second);
  EXPECT_EQ(exporter::read_notes(live, id), std::vector<Note>{on_the_clock(second)});
  app_.notes.forget();
  app_.notes.show(*app_.run);
  EXPECT_EQ(app_.notes.notes().size(), 2U) << "a deleted note does not come back";
  EXPECT_EQ(app_.notes.find("two")->text, "twice");

  std::ofstream(live) << "no notes";
  app_.notes.forget();
  app_.notes.show(*app_.run);
  EXPECT_NE(app_.notes.problem().find("live run not read"), std::string::npos) << app_.notes.problem();
  EXPECT_EQ(app_.notes.notes().size(), 2U);
  app_.notes.remove("two");
  EXPECT_EQ(text_of(live), "no notes") << "a file that cannot be read is left alone";
  unsetenv("XDG_STATE_HOME");
}

TEST(NoteFlags, StandAtTheirTimesAndJoinWhereTheyWouldTouch) {
  std::vector<Note> notes(4);
  notes[0].begin_ns = notes[0].end_ns = -50;  // before what is shown
  notes[1].begin_ns = 100;
  notes[1].end_ns = 5000;  // reaches beyond it
  notes[2].begin_ns = notes[2].end_ns = 104;
  notes[2].text = "near";
  notes[3].begin_ns = notes[3].end_ns = 900;
  const TimeScale scale{{0, 1000}, 50, 1000};
  const auto flags = note_flags(notes, scale);
  ASSERT_EQ(flags.size(), 2U);
  EXPECT_FLOAT_EQ(flags[0].x0, 150);
  EXPECT_FLOAT_EQ(flags[0].x1, 1050);
  EXPECT_EQ(flags[0].notes, (std::vector<std::size_t>{1, 2}));
  EXPECT_FLOAT_EQ(flags[1].x0, 950);
  EXPECT_NE(flag_text(store::Store(), notes, flags[0]).find("near"), std::string::npos);
  EXPECT_EQ(flag_text(store::Store(), notes, flags[0]).substr(0, 7), "2 notes");
  EXPECT_TRUE(note_flags(notes, {{2000, 3000}, 0, 100}).size() == 1) << "a range that covers all of it";
}

}  // namespace
}  // namespace shardscope::gui
