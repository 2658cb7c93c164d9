// A recording in several files, each with limits: a file keeps its newest events and those around moments,
// and the files are read as one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "app/store/database.h"
#include "app/store/losses.h"
#include "app/store/recording_sums.h"
#include "tests/app/store/parts_of_a_run.h"

namespace shardscope::store {
namespace {

using testing::IsEmpty;

class LimitedParts : public PartsOfARun {
 protected:
  void SetUp() override {
    PartsOfARun::SetUp();
    const EndlessRun run(2);
    Store once;
    fill_store(once, run.run());
    turn_ns_ = once.end_ns();
    kept_ = {.max_age_ns = turn_ns_, .around_ns = turn_ns_ / 4};
    by_age_ = {.part_ns = 5 * turn_ns_};
  }
  /// Marks the given turns as moments; those before their turn by half a turn.
  [[nodiscard]] static std::function<void(RecordingWriter&, int, const Store&)> moments_at(
      std::vector<int> turns) {
    return [turns = std::move(turns)](RecordingWriter& writer, int turn, const Store& totals) {
      if (std::ranges::find(turns, turn) == turns.end()) return;
      writer.keep({.at_ns = totals.origin_ns() + totals.end_ns(),
                   .kind = "slow_step",
                   .step = static_cast<std::uint32_t>(turn),
                   .text = "in turn " + std::to_string(turn)});
    };
  }
  [[nodiscard]] std::vector<std::uint32_t> steps_of_moments(const Store& store) const {
    std::vector<std::uint32_t> out;
    for (const Moment& moment : store.moments()) out.push_back(moment.step);
    return out;
  }
  std::int64_t turn_ns_ = 0;
  Retention kept_;
  Rotation by_age_;
};

TEST_F(LimitedParts, EachKeepsItsNewestAndItsMoments) {
  record_parts(by_age_, {}, kTurns, kept_, moments_at({2, 5, 8, 10, 12, 15}));
  for (const Verify verify : {Verify::everything, Verify::as_read}) {
    RecordingInfo info;
    const Store whole = open("whole.zscope"), parts = open_recording(file("run.zscope"), &info, verify);
    EXPECT_THAT(info.problems, IsEmpty());
    EXPECT_TRUE(info.complete);
    ASSERT_GT(info.parts.size(), 3U);
    EXPECT_EQ(info.limits.max_age_ns, turn_ns_);
    expect_sums_of_all(whole, parts);
    EXPECT_EQ(losses_of(parts).absent_events, 0U);
    EXPECT_EQ(info.events + parts.not_kept().events, parts.event_count());
    EXPECT_GT(parts.not_kept().events, parts.event_count() / 2);
    // Some are at the end of a file, so that what is around them is in two.
    EXPECT_EQ(steps_of_moments(parts), (std::vector<std::uint32_t>{2, 5, 8, 10, 12, 15}));
    for (const Moment& moment : parts.moments())
      expect_same_details(whole, parts, moment.begin_ns, moment.end_ns);
    EXPECT_THAT(parts.problems(), IsEmpty());
  }
}

TEST_F(LimitedParts, AreSmall) {
  record_parts(by_age_, {}, kTurns, kept_);
  std::uintmax_t all = 0;
  for (const std::uint32_t number : there()) all += std::filesystem::file_size(part(number));
  EXPECT_LT(all, std::filesystem::file_size(file("whole.zscope")));
  const Store parts = open("run.zscope");
  EXPECT_GT(parts.not_kept().events, parts.event_count() / 2);
}

/// Of deleted files there are the sums, and no moments.
TEST_F(LimitedParts, TheOldestAreDeletedWithTheirMoments) {
  by_age_.max_files = 2;
  record_parts(by_age_, {}, kTurns, kept_, moments_at({2, 12, 18}));
  ASSERT_EQ(there().size(), 2U);
  RecordingInfo info;
  const Store whole = open("whole.zscope"), parts = open("run.zscope", &info);
  EXPECT_THAT(info.problems, IsEmpty());
  EXPECT_TRUE(info.complete);
  expect_sums_of_all(whole, parts);
  EXPECT_EQ(info.events + parts.not_kept().events, parts.event_count());
  const std::vector<std::uint32_t> steps = steps_of_moments(parts);
  EXPECT_THAT(steps, testing::Not(testing::Contains(2U)));
  EXPECT_THAT(steps, testing::Contains(18U));
  for (const Moment& moment : parts.moments())
    expect_same_details(whole, parts, moment.begin_ns, moment.end_ns);
}

/// Any file alone has the sums of the run until its end.
TEST_F(LimitedParts, TheNewestAloneHasTheSums) {
  record_parts(by_age_, {}, kTurns, kept_, moments_at({2, 12}));
  const std::uint32_t last = there().back();
  std::filesystem::create_directory(file("copied"));
  const std::string copy = file("copied/" + std::filesystem::path(part(last)).filename().string());
  std::filesystem::copy_file(part(last), copy);
  RecordingInfo info;
  const Store whole = open("whole.zscope"), alone = open_recording(copy, &info);
  EXPECT_TRUE(mentions(info, "of this recording are not here"));
  expect_sums_of_all(whole, alone);
}

/// The number of moments is limited in each file.
TEST_F(LimitedParts, AFileDoesNotLoseItsMomentsToLaterOnes) {
  kept_.moments = 1;
  record_parts(by_age_, {}, kTurns, kept_, moments_at({1, 2, 11, 12, 18}));
  RecordingInfo info;
  const Store whole = open("whole.zscope"), parts = open("run.zscope", &info);
  EXPECT_THAT(info.problems, IsEmpty());
  expect_sums_of_all(whole, parts);
  const std::vector<std::uint32_t> steps = steps_of_moments(parts);
  EXPECT_GE(steps.size(), 3U) << testing::PrintToString(steps);
  EXPECT_THAT(steps, testing::Contains(2U)) << "of the first file, where it displaced that of turn 1";
  EXPECT_THAT(steps, testing::Not(testing::Contains(1U)));
}

/// Sums of what was deleted from a file do not grow with the run, nor those of earlier files.
TEST_F(LimitedParts, HoldAtMostSoManySums) {
  by_age_ = {.part_ns = turn_ns_};
  kept_.max_age_ns = turn_ns_ / 8;
  record_parts(by_age_, {}, 40, kept_);
  ASSERT_GT(there().size(), 2 * SumsWriter::kMostSumsOfPart);
  for (const std::uint32_t number : there()) {
    Database database(part(number), Database::Access::read);
    Statement rows = database.prepare("SELECT count(*) FROM sums GROUP BY rank");
    while (rows.step())
      EXPECT_LE(rows.integer(0), static_cast<std::int64_t>(2 * SumsWriter::kMostSumsOfPart));
  }
  RecordingInfo info;
  const Store whole = open("whole.zscope"), parts = open("run.zscope", &info);
  EXPECT_THAT(info.problems, IsEmpty());
  expect_sums_of_all(whole, parts);
}

/// All is made again from the events: sums of each file, too.
TEST_F(LimitedParts, OpenWhereTheirBlocksAreDamaged) {
  record_parts(by_age_, {}, kTurns, kept_, moments_at({2, 12}));
  Database(part(2), Database::Access::create)
      .execute("UPDATE blocks SET bytes = x'00' WHERE id = (SELECT min(id) FROM blocks)");
  RecordingInfo info;
  const Store whole = open("whole.zscope"), parts = open("run.zscope", &info);
  EXPECT_TRUE(mentions(info, "levels of detail are damaged")) << testing::PrintToString(info.problems);
  EXPECT_EQ(info.events + parts.not_kept().events, parts.event_count());
  EXPECT_EQ(parts.event_count(), whole.event_count());
  EXPECT_EQ(losses_of(parts).absent_events, 0U);
}

/// Damaged sums of one file: its deleted events are missing, all else is there.
TEST_F(LimitedParts, OpenWhereTheSumsOfOneAreDamaged) {
  record_parts(by_age_, {}, kTurns, kept_);
  Database(part(2), Database::Access::create)
      .execute("UPDATE sums SET bytes = x'00' WHERE id = (SELECT max(id) FROM sums)");
  RecordingInfo info;
  const Store parts = open("run.zscope", &info);
  EXPECT_TRUE(mentions(info, "what was not kept")) << testing::PrintToString(info.problems);
  EXPECT_TRUE(mentions(info, "chunks are missing between those read"))
      << testing::PrintToString(info.problems);
  EXPECT_GT(losses_of(parts).absent_events, 0U);
}

}  // namespace
}  // namespace shardscope::store
