// A recording that consists of several files: opened as one it is as a recording in one file, whatever of it
// is there, and however its recorder ended.
#include "app/store/rotation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "app/store/database.h"
#include "app/store/gap_text.h"
#include "app/store/losses.h"
#include "app/store/recording_files.h"
#include "app/store/recording_parts.h"
#include "tests/app/store/parts_of_a_run.h"

namespace shardscope::store {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Rotation, APartEndsByItsSizeOrItsAge) {
  const Rotation by_size{.part_bytes = 1000}, by_age{.part_ns = 50};
  PartFill fill{.bytes = 999, .begun_with = 10, .first_ns = 100, .last_ns = 149, .has_events = true};
  EXPECT_EQ(end_of_part(by_size, fill), std::nullopt);
  EXPECT_EQ(end_of_part(by_age, fill), std::nullopt);
  fill.bytes = 1000;
  fill.last_ns = 150;
  EXPECT_EQ(end_of_part(by_size, fill), PartEnd::size);
  EXPECT_EQ(end_of_part(by_age, fill), PartEnd::age);
  EXPECT_EQ(end_of_part({}, fill), std::nullopt);
  fill.has_events = false;
  EXPECT_EQ(end_of_part(by_size, fill), std::nullopt);
  // It begins with more than the limit: then it takes half of that of its own.
  fill = {.bytes = 5499, .begun_with = 5000, .has_events = true};
  EXPECT_EQ(end_of_part(by_size, fill), std::nullopt);
  fill.bytes = 5500;
  EXPECT_EQ(end_of_part(by_size, fill), PartEnd::size);
  // Times of a damaged run.
  fill = {.first_ns = INT64_MIN, .last_ns = INT64_MAX, .has_events = true};
  EXPECT_EQ(end_of_part(by_age, fill), PartEnd::age);
  fill = {.first_ns = INT64_MAX, .last_ns = INT64_MIN, .has_events = true};
  EXPECT_EQ(end_of_part(by_age, fill), std::nullopt);
}

TEST(Rotation, NamesOfParts) {
  EXPECT_EQ(part_path("/a.b/run.zscope", 2), "/a.b/run.0002.zscope");
  EXPECT_EQ(part_path("run", 12345), "run.12345");
  for (const char* recording : {"/a.b/run.zscope", "run", "run.1.zscope", "x/run.rec"}) {
    for (const std::uint32_t part : {1U, 9999U, 10000U}) {
      const auto name = part_name(part_path(recording, part));
      ASSERT_TRUE(name) << recording;
      EXPECT_EQ(name->recording, recording);
      EXPECT_EQ(name->part, part);
    }
  }
  for (const char* other :
       {"run.zscope", "run.001.zscope", "run.0000.zscope", "run.00001.zscope", "run.00x1.zscope",
        ".0001.zscope", "a/.0001", "", "run.+001.zscope", "run.99999999999.zscope"})
    EXPECT_FALSE(part_name(other)) << other;
}

TEST(Rotation, TheNewestFilesStay) {
  EXPECT_EQ(first_kept({.part_bytes = 1}, 100), 1U);
  const Rotation three{.part_bytes = 1, .max_files = 3};
  EXPECT_EQ(first_kept(three, 1), 1U);
  EXPECT_EQ(first_kept(three, 3), 1U);
  EXPECT_EQ(first_kept(three, 4), 2U);
}

TEST_F(PartsOfARun, AreReadAsOne) {
  record_parts(kSmall);
  RecordingInfo info;
  const Store whole = open("whole.zscope"), parts = open("run.zscope", &info);
  EXPECT_THAT(info.problems, IsEmpty());
  EXPECT_TRUE(info.complete);
  EXPECT_EQ(info.format_version, 8);
  EXPECT_EQ(info.events, totals_events_);
  EXPECT_EQ(parts.not_kept().events, 0U);
  EXPECT_EQ(losses_of(parts).absent_events, 0U);
  expect_sums_of_all(whole, parts);
  expect_same_tables(whole, parts);
  expect_same_details(whole, parts, 0, whole.end_ns() + 1);
  expect_same_states(whole, parts, 3, 50);
  expect_same_density(whole, parts, 5, 20);
  EXPECT_EQ(parts.messages().size(), whole.messages().size());

  ASSERT_GT(info.parts.size(), 4U);
  std::uint64_t events = 0;
  for (std::size_t i = 0; i < info.parts.size(); ++i) {
    const RecordingPart& one = info.parts[i];
    EXPECT_EQ(one.part, i + 1);
    EXPECT_EQ(file(one.file), part(one.part));
    EXPECT_TRUE(fs::exists(file(one.file)));
    EXPECT_EQ(one.ended, i + 1 == info.parts.size() ? "end" : "size");
    EXPECT_TRUE(one.here);
    EXPECT_LT(one.begin_ns, one.end_ns);
    events += one.events;
  }
  EXPECT_EQ(events, totals_events_);
  EXPECT_EQ(info.parts.back().end_ns, whole.end_ns());
  EXPECT_EQ(fs::read_symlink(file("run.zscope")), fs::path(info.parts.back().file))
      << "the folder can be moved";
}

TEST_F(PartsOfARun, ByAge) {
  std::int64_t turn_ns = 0;
  {
    const EndlessRun run(2);
    Store once;
    fill_store(once, run.run());
    turn_ns = once.end_ns();
  }
  record_parts({.part_ns = 4 * turn_ns});
  RecordingInfo info;
  const Store parts = open("run.zscope", &info);
  EXPECT_THAT(info.problems, IsEmpty());
  EXPECT_EQ(info.parts.size(), 6U)
      << "a part of four turns is full, and the last one was begun with the last turn";
  EXPECT_EQ(info.parts.front().ended, "age");
  expect_sums_of_all(open("whole.zscope"), parts);
}

/// The window reads what it shows when it is looked at, from the file that has it.
TEST_F(PartsOfARun, AreReadAsTheyAreLookedAt) {
  record_parts(kSmall);
  const Store whole = open("whole.zscope");
  const Store parts = open_recording(file("run.zscope"), nullptr, Verify::as_read);
  expect_sums_of_all(whole, parts);
  expect_same_details(whole, parts, 0, whole.end_ns() + 1);
  EXPECT_THAT(parts.problems(), IsEmpty());
}

TEST_F(PartsOfARun, AnyOfThemOpensAll) {
  record_parts(kSmall);
  const Store whole = open("whole.zscope");
  for (const std::uint32_t number : {1U, 2U, there().back()}) {
    RecordingInfo info;
    const Store parts = open_recording(part(number), &info);
    EXPECT_THAT(info.problems, IsEmpty());
    EXPECT_TRUE(info.complete);
    EXPECT_EQ(parts.event_count(), whole.event_count());
    EXPECT_EQ(parts.not_kept().events, 0U);
  }
}

/// Whichever of them is named.
TEST_F(PartsOfARun, OfMoreThanMayBeOpenTheNewestAreRead) {
  record_parts(kSmall);
  const std::uint32_t last = there().back();
  constexpr std::size_t kMost = 3;
  ASSERT_GT(last, kMost + 1);
  for (const std::uint32_t number : {1U, 2U, last - 1, last}) {
    std::vector<std::string> listed;
    Problems problems(listed);
    std::vector<std::uint32_t> opened;
    for (const auto& one : open_files(part(number), problems, kMost)) opened.push_back(one->identity->part);
    EXPECT_EQ(opened, (std::vector<std::uint32_t>{last - 2, last - 1, last})) << "from part " << number;
    EXPECT_THAT(listed, ElementsAre(HasSubstr("at most 3 files are read as one recording")));
  }
}

TEST_F(PartsOfARun, TheOldestAreDeleted) {
  record_parts({.part_bytes = 300'000, .max_files = 3});
  const std::vector<std::uint32_t> left = there();
  ASSERT_EQ(left.size(), 3U);
  for (const bool verified : {true, false}) {
    RecordingInfo info;
    const Store whole = open("whole.zscope"),
                parts = open_recording(file("run.zscope"), &info,
                                       verified ? Verify::everything : Verify::as_read);
    EXPECT_THAT(info.problems, IsEmpty()) << "--max-files deleted them";
    EXPECT_TRUE(info.complete);
    EXPECT_GT(parts.not_kept().events, parts.event_count() / 3);
    EXPECT_EQ(info.events + parts.not_kept().events, parts.event_count());
    expect_sums_of_all(whole, parts);
    expect_same_details(whole, parts, parts.not_kept().until_ns + 1, whole.end_ns());
    ASSERT_EQ(parts.gaps().size(), 2U) << "one of each rank";
    EXPECT_THAT(what_is_missing(parts.gaps().front()), HasSubstr("--max-files"));
    ASSERT_EQ(info.parts.size(), left.back());
    std::uint64_t events = 0, missing = 0;
    for (const RecordingPart& one : info.parts) {
      EXPECT_EQ(one.here, one.part >= left.front());
      EXPECT_EQ(one.here, fs::exists(file(one.file)));
      events += one.events;
      if (!one.here) missing += one.events;
    }
    EXPECT_EQ(events, parts.event_count());
    EXPECT_EQ(missing, parts.not_kept().events);
  }
}

/// Of each part before it a sum of each rank; of a run of many parts no more than other sums.
TEST_F(PartsOfARun, WhatAPartRepeatsDoesNotGrowWithTheirNumber) {
  record_parts({.part_bytes = 60'000}, {}, 40);
  const std::uint32_t last = there().back();
  ASSERT_GT(last, 35U);
  Database database(part(last), Database::Access::read);
  Statement rows = database.prepare("SELECT count(*) FROM sums GROUP BY rank");
  while (rows.step()) EXPECT_EQ(rows.integer(0), 32);
  EXPECT_EQ(database.integer("SELECT count(*) FROM parts"), last);
  RecordingInfo info;
  const Store whole = open("whole.zscope"), parts = open("run.zscope", &info);
  EXPECT_THAT(info.problems, IsEmpty());
  expect_sums_of_all(whole, parts);
  fs::create_directory(file("copied"));
  fs::copy_file(part(last), file("copied/run.zscope"));
  expect_sums_of_all(whole, open("copied/run.zscope"));
}

TEST_F(PartsOfARun, TheNewestAloneHasTheSumsAndNamesWhatIsMissing) {
  record_parts(kSmall);
  const std::uint32_t last = there().back();
  fs::create_directory(file("copied"));
  const std::string copy = file("copied/" + fs::path(part(last)).filename().string());
  fs::copy_file(part(last), copy);
  const Store whole = open("whole.zscope");
  RecordingInfo info;
  const Store alone = open_recording(copy, &info);
  EXPECT_TRUE(mentions(info, "parts 1 to " + std::to_string(last - 1) + " of this recording are not here"));
  EXPECT_EQ(info.problems.size(), 1U);
  expect_sums_of_all(whole, alone);
  expect_same_details(whole, alone, alone.not_kept().until_ns + 1, whole.end_ns());
  // Under another name it does not know which files are its others.
  fs::rename(copy, file("copied/other.zscope"));
  expect_sums_of_all(whole, open_recording(file("copied/other.zscope"), &info));
  EXPECT_TRUE(mentions(info, "is not named so"));
}

TEST_F(PartsOfARun, AnOldOneAloneSaysThatTheRunGoesOn) {
  record_parts(kSmall);
  fs::create_directory(file("copied"));
  for (const std::uint32_t number : {1U, 2U}) {
    const std::string copy = file("copied/" + fs::path(part(number)).filename().string());
    fs::copy_file(part(number), copy);
    RecordingInfo info;
    const Store alone = open_recording(copy, &info), whole = open("whole.zscope");
    EXPECT_TRUE(mentions(info, "goes on in part " + std::to_string(number + 1)));
    EXPECT_FALSE(info.complete);
    // And where it is not the first that there are sums of those before.
    EXPECT_EQ(info.problems.size(), number) << testing::PrintToString(info.problems);
    ASSERT_EQ(alone.steps().back().step, whole.steps()[alone.steps().size() - 1].step);
    expect_same_details(whole, alone, alone.not_kept().until_ns + 1, info.parts.back().end_ns / 2);
    fs::remove(copy);
  }
}

/// Files beyond one that is missing are not read with those here: sums stand for a stretch only as a whole.
TEST_F(PartsOfARun, OneThatWasDeletedByHandIsNamed) {
  record_parts(kSmall);
  fs::remove(part(3));
  const Store whole = open("whole.zscope");
  RecordingInfo info;
  const Store newer = open("run.zscope", &info);
  EXPECT_TRUE(mentions(info, "parts 1 to 3 of this recording are not here"))
      << testing::PrintToString(info.problems);
  EXPECT_TRUE(mentions(info, "run.0001.zscope to run.0002.zscope are not read with it, since part 3"));
  expect_sums_of_all(whole, newer);
  expect_same_details(whole, newer, newer.not_kept().until_ns + 1, whole.end_ns());
  const Store older = open("run.0001.zscope", &info);
  EXPECT_TRUE(mentions(info, "goes on in part 3 (run.0003.zscope), which is not here"));
  EXPECT_TRUE(mentions(info, "run.0004.zscope to"));
  EXPECT_FALSE(info.complete);
  EXPECT_EQ(older.not_kept().events, 0U);
  EXPECT_LT(older.end_ns(), newer.not_kept().until_ns);
}

TEST_F(PartsOfARun, AFileOfAnotherRecordingIsNotTakenForAPart) {
  record_parts(kSmall);
  fs::rename(file("run.zscope"), file("link"));
  fs::create_directory(file("other"));
  for (const std::uint32_t number : there())
    fs::rename(part(number), file("other/" + fs::path(part(number)).filename().string()));
  fs::rename(file("link"), file("other/run.zscope"));
  record_parts(kSmall);
  fs::copy_file(file("other/run.0002.zscope"), part(2), fs::copy_options::overwrite_existing);
  RecordingInfo info;
  const Store store = open("run.zscope", &info);
  EXPECT_TRUE(
      mentions(info, "run.0002.zscope, which is named as a part of this recording, is of another one"));
  expect_sums_of_all(open("whole.zscope"), store);
}

/// What a recorder leaves that is killed between two of the steps of a change of parts: the folder as it was
/// then. [Note: a change of parts]
class KilledAtAChange : public PartsOfARun {
 protected:
  /// Copies the folder after a turn at which the third part was begun.
  void SetUp() override {
    PartsOfARun::SetUp();
    record_parts(kSmall, [this](int) {
      if (there().size() != 3 || fs::exists(file("killed"))) return;
      // Files that are being written are not copied as they were at one moment.
      for (int i = 0; i < 1000 && fs::exists(part(2) + "-wal"); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      fs::create_directory(file("killed"));
      for (const auto& entry : fs::directory_iterator(folder_)) {
        if (entry.path().filename().string().starts_with("run."))
          fs::copy(entry.path(), folder_ / "killed" / entry.path().filename(),
                   fs::copy_options::copy_symlinks);
      }
    });
    ASSERT_TRUE(fs::exists(killed("run.0003.zscope")));
  }
  [[nodiscard]] std::string killed(const std::string& name) const { return file("killed/" + name); }
  void link_to(const char* name) const {
    fs::remove(killed("run.zscope"));
    fs::create_symlink(name, killed("run.zscope"));
  }
  void has_all(const char* problem) const {
    RecordingInfo info;
    const Store store = open_recording(killed("run.zscope"), &info), whole = open("whole.zscope");
    EXPECT_TRUE(mentions(info, problem)) << testing::PrintToString(info.problems);
    EXPECT_FALSE(info.complete);
    EXPECT_EQ(store.not_kept().events, 0U);
    EXPECT_EQ(losses_of(store).absent_events, 0U);
    ASSERT_GT(store.steps().size(), 40U);
    EXPECT_EQ(store.steps().back().step % EndlessRun::kSteps, EndlessRun::kSteps - 1) << "all of a turn";
    expect_same_details(whole, store, 0, store.end_ns(), false);
    for (std::size_t i = 0; i < store.steps().size(); ++i)
      EXPECT_EQ(store.steps()[i].end_ns, whole.steps()[i].end_ns) << i;
  }
};

TEST_F(KilledAtAChange, AfterIt) { has_all("the recording was not finished"); }

TEST_F(KilledAtAChange, BeforeTheLinkMoved) {
  link_to("run.0002.zscope");
  has_all("the recording was not finished");
}

TEST_F(KilledAtAChange, BeforeTheNextPartHadItsName) {
  link_to("run.0002.zscope");
  fs::rename(killed("run.0003.zscope"), killed("run.0003.zscope.new"));
  for (const char* end : {"-wal", "-shm"}) fs::remove(killed(std::string("run.0003.zscope") + end));
  has_all("the recorder was ended while it began part 3");
}

TEST_F(KilledAtAChange, BeforeThePartSaidThatItIsFollowed) {
  link_to("run.0002.zscope");
  fs::rename(killed("run.0003.zscope"), killed("run.0003.zscope.new"));
  for (const char* end : {"-wal", "-shm"}) fs::remove(killed(std::string("run.0003.zscope") + end));
  change(killed("run.0002.zscope"), "DELETE FROM meta WHERE key IN ('followed') OR key LIKE 'crc:%'");
  change(killed("run.0002.zscope"), "UPDATE meta SET value = 0 WHERE key = 'complete'");
  change(killed("run.0002.zscope"), "DELETE FROM tails");
  has_all("the recording was not finished");
}

TEST_F(PartsOfARun, DamageInAnOldPartIsNamedAndTheRestIsRead) {
  record_parts(kSmall);
  change(part(2), "UPDATE blocks SET bytes = zeroblob(40) WHERE id = (SELECT max(id) FROM blocks)");
  RecordingInfo info;
  const Store store = open("run.zscope", &info), whole = open("whole.zscope");
  EXPECT_TRUE(mentions(info, "part 2: table blocks: checksum does not match"))
      << testing::PrintToString(info.problems);
  EXPECT_EQ(store.event_count(), whole.event_count()) << "rows that moved are not read twice";
  expect_same_details(whole, store, 0, whole.end_ns());
}

/// There is a folder of the next part's name.
TEST_F(PartsOfARun, WhereTheNextCannotBeBegunThePartGoesOn) {
  record_parts(kSmall, [this](int turn) {
    if (turn == 0) fs::create_directories(file("run.0002.zscope.new") + "/full");
  });
  EXPECT_FALSE(fs::exists(part(2)));
  RecordingInfo info;
  const Store store = open("run.zscope", &info), whole = open("whole.zscope");
  EXPECT_THAT(info.problems, IsEmpty());
  expect_sums_of_all(whole, store);
  ASSERT_EQ(store.messages().size(), whole.messages().size() + 1)
      << "it is tried again later, and reported once";
  EXPECT_TRUE(std::any_of(store.messages().begin(), store.messages().end(), [](const Message& message) {
    return message.text.find("part 2 of the recording could not be begun") == 0 &&
           message.text.ends_with("part 1 goes on");
  }));
}

TEST_F(PartsOfARun, AllOfThemAreReplaced) {
  record_parts(kSmall);
  std::ofstream(file("run.0099.zscope.new")) << "";
  { RecordingWriter writer(file("run.zscope")); }
  EXPECT_THAT(there(), IsEmpty());
  EXPECT_FALSE(fs::is_symlink(file("run.zscope")));
  fs::remove(file("whole.zscope"));
  record_parts(kSmall);
  EXPECT_TRUE(fs::is_symlink(file("run.zscope")));
  fs::remove(file("run.zscope"));
  std::ofstream(part(2)) << "a letter";
  EXPECT_THROW(record_parts(kSmall), std::runtime_error) << "this one is none";
  EXPECT_TRUE(fs::exists(part(1)));
}

/// A reader that came before a change reads on in the files that it opened.
TEST_F(PartsOfARun, OneThatIsReadMeanwhileIsReadOn) {
  std::optional<Store> early;
  record_parts({.part_bytes = 300'000, .max_files = 2}, [&](int) {
    if (!early && there().size() == 2) early = open_recording(file("run.zscope"), nullptr, Verify::as_read);
  });
  ASSERT_TRUE(early);
  EXPECT_GT(there().front(), 2U) << "both of its files are deleted by now";
  const Store whole = open("whole.zscope");
  expect_same_details(whole, *early, 0, early->end_ns(), false);
  EXPECT_THAT(early->problems(), IsEmpty());
}

}  // namespace
}  // namespace shardscope::store
