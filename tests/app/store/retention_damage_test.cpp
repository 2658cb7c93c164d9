// A recording that keeps a part of its run, cut off, damaged, or read while it goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <map>
#include <optional>

#include "app/store/block_codec.h"
#include "app/store/database.h"
#include "app/store/gap_text.h"
#include "app/store/losses.h"
#include "app/store/recorded_run.h"
#include "app/store/recording_schema.h"
#include "app/store/recording_sums.h"
#include "tests/app/store/part_of_a_run.h"

namespace shardscope::store {
namespace {

TEST_F(PartOfARun, AKilledRecordingSaysTheSame) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    record_with(
        {.max_bytes = 1'000'000}, [](RecordingWriter&, int, const Store&) {}, false);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  RecordingInfo info;
  const Store whole = open("whole.zscope"), part = open("part.zscope", &info);
  EXPECT_FALSE(info.complete);
  ASSERT_EQ(info.problems.size(), 1U) << info.problems.back();
  EXPECT_TRUE(mentions(info, "not finished"));
  expect_sums_of_all(whole, part);
  EXPECT_GT(part.not_kept().events, part.event_count() / 2);
  expect_same_details(whole, part, part.not_kept().until_ns + 1, whole.end_ns(), false);
}

/// Without the blocks everything is made from what events there are; sums stay sums.
TEST_F(PartOfARun, OpensWhereItsBlocksAreDamaged) {
  record_with({.max_bytes = 1'000'000});
  {
    Database database(file("part.zscope"), Database::Access::create);
    database.execute("UPDATE blocks SET bytes = substr(bytes, 2) WHERE id = (SELECT max(id) FROM blocks)");
  }
  RecordingInfo info;
  const Store whole = open("whole.zscope"), part = open("part.zscope", &info);
  EXPECT_FALSE(info.problems.empty());
  EXPECT_EQ(part.event_count(), whole.event_count());
  EXPECT_GT(part.not_kept().events, 0U);
  const auto x = whole.span_totals(), y = part.span_totals();
  ASSERT_EQ(x.size(), y.size());
  // From a while after the beginning on, when every span that was open then has ended.
  const std::int64_t from = part.not_kept().until_ns + (whole.end_ns() - part.not_kept().until_ns) / 2;
  for (const LaneId lane : whole.lanes())
    expect_same_spans(whole.spans(lane, 0, from, whole.end_ns()), part.spans(lane, 0, from, whole.end_ns()),
                      "later");
}

/// While it is recorded, what was listed is deleted: that is neither damage nor unknown.
TEST_F(PartOfARun, WhatGoesWhileItIsOpenWasNotKept) {
  std::optional<Store> live;
  RecordingInfo of_live;
  std::int64_t gone_then = 0;
  const auto look = [&](std::int64_t from) {
    for (const LaneId lane : live->lanes()) (void)live->spans(lane, 0, from, Store::kEnd);
    return live->not_kept();
  };
  record_with({.max_bytes = 1'000'000}, [&](RecordingWriter&, int turn, const Store&) {
    if (turn == 12) {
      live.emplace(open_recording(file("part.zscope"), &of_live, Verify::as_read));
      gone_then = live->not_kept().until_ns;
      ASSERT_GT(gone_then, 0);
    }
    if (turn != 15) return;
    const Store::NotKept now = look(gone_then);
    EXPECT_GT(now.until_ns, gone_then);
    EXPECT_TRUE(live->problems().empty()) << live->problems().front();
  });
  const Store::NotKept now = look(gone_then);
  EXPECT_THAT(live->problems(), testing::IsEmpty()) << "its recorder has ended since";
  std::uint64_t events = 0;
  for (const Gap& gap : live->gaps()) {
    EXPECT_FALSE(gap.damaged);
    if (gap.not_kept) events += gap.events;
  }
  EXPECT_EQ(events, now.events);
  std::vector<Density> columns(50);
  live->density(live->lanes().front(), 0, gone_then, now.until_ns, columns);
  EXPECT_TRUE(std::any_of(columns.begin(), columns.end(), [](const Density& one) { return one.count > 0; }))
      << "its coarse picture stays";
}

/// A row that is missing where no sum stands for it is damage.
TEST_F(PartOfARun, ARowThatNobodyLetGoIsDamage) {
  record_with({.max_bytes = 1'000'000});
  RecordingInfo info;
  const Store part = open_recording(file("part.zscope"), &info, Verify::as_read);
  Database(file("part.zscope"), Database::Access::create)
      .execute("DELETE FROM chunks WHERE id = (SELECT max(id) FROM blocks)");
  for (const LaneId lane : part.lanes()) (void)part.spans(lane, 0);
  ASSERT_EQ(part.problems().size(), 1U);
  EXPECT_THAT(part.problems().front(), testing::HasSubstr("is not in the recording any more"));
}

TEST_F(PartOfARun, OpensWhereItsSumsAreDamaged) {
  const auto damage = [&](const char* sql, const char* named) {
    std::filesystem::copy_file(file("part.zscope"), file("bad.zscope"),
                               std::filesystem::copy_options::overwrite_existing);
    Database(file("bad.zscope"), Database::Access::create).execute(sql);
    RecordingInfo info;
    const Store store = open("bad.zscope", &info);
    EXPECT_TRUE(mentions(info, named)) << sql;
    EXPECT_GT(store.event_count(), 0U);
    for (const Moment& moment : store.moments()) EXPECT_GT(moment.begin_ns, -kSecond * 3600) << sql;
  };
  record_with({.max_bytes = 1'000'000}, [](RecordingWriter& writer, int turn, const Store& totals) {
    if (turn == 3)
      writer.keep({.at_ns = totals.origin_ns() + totals.end_ns(), .kind = "request", .text = ""});
  });
  // One twice, so that the second is out of order.
  damage(
      "INSERT INTO sums SELECT id + 100000, rank, sequence, begin_ns, end_ns, events, parts, bytes, rare "
      "FROM sums "
      "WHERE id = (SELECT min(id) FROM sums)",
      "what was not kept");
  // Behind the chunks that follow it.
  damage("UPDATE sums SET id = (SELECT max(id) + 1 FROM chunks) WHERE id = (SELECT max(id) FROM sums)",
         "is not in its place");
  damage(
      "DELETE FROM moments; INSERT INTO moments VALUES(NULL, 0, -9223372036854775808, 0, 'request', -1, -1, "
      "'')",
      "what was not kept");
  // Steps of which nothing was deleted.
  damage("DELETE FROM sums", "chunks are missing");
}

/// Where counts of the two shortest sums do not fit one, others are joined.
TEST_F(PartOfARun, SumsThatDoNotFitAreLeftApart) {
  Database database(file("sums.zscope"), Database::Access::create);
  database.execute(kRecordingSchema);
  SumsWriter sums(database, {.max_age_ns = 1, .moments = 0});
  const Store none;
  constexpr std::uint64_t kBlocks = 60;
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    Block block;
    block.sequence = i;
    block.parts = 1;
    // The first ones are the shortest.
    const auto at = static_cast<std::int64_t>(i < 4 ? i * 10 : i * 1000);
    block.begin_ns = at;
    block.end_ns = at + 1;
    block.counts.push_back(
        {.kind = ev::EventKind::param_status, .code = 0, .count = i < 4 ? 3'000'000'000U : 1U});
    const auto id = static_cast<std::int64_t>(i + 1);
    Statement add = database.prepare("INSERT INTO blocks VALUES(?1, ?2)");
    add.bind(1, id).bind(2, encode_block(block)).run();
    sums.wrote(block, id, 100);
    sums.retain(database, none, INT64_MAX);
  }
  EXPECT_EQ(database.integer("SELECT count(*) FROM sums"), 32);
  EXPECT_EQ(database.integer("SELECT count(*) FROM sums WHERE parts = 1 AND sequence < 4"), 4);
  EXPECT_EQ(database.integer("SELECT sum(parts) FROM sums"), static_cast<std::int64_t>(kBlocks) - 1)
      << "all but the newest";
}

TEST(Sums, ALossWithinOneIsSomewhereInIt) {
  Store store;
  Block sum;
  sum.parts = 3;
  sum.begin_ns = 1000;
  sum.end_ns = 2000;
  sum.lost_before = 5;
  sum.gap = true;
  RecordedRun(store).append_sum(sum, 100, {}, true);
  const auto lost = std::find_if(store.gaps().begin(), store.gaps().end(),
                                 [](const Gap& gap) { return gap.messages == 5; });
  ASSERT_NE(lost, store.gaps().end());
  EXPECT_EQ(lost->begin_ns, 0);
  EXPECT_EQ(lost->end_ns, 1000);
}

}  // namespace
}  // namespace shardscope::store
