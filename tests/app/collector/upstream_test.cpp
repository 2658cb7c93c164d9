// What a node's collector passes on while it does not know its ranks' clocks, and of processes that others
// replace.
#include "app/collector/upstream.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "tests/app/collector/upstream_hop.h"

namespace shardscope::collector {
namespace {

TEST(Upstream, ReplacedProcessesWaitForTheirClocksSideBySide) {
  Hop hop("side");
  RankSession rank(0);
  for (const std::uint64_t process : {11U, 12U, 13U, 14U}) hop.first_message(rank, process, kBegin_s);
  hop.upstream().pump(kBegin_s);
  hop.upstream().pump(kBegin_s + kAlmost_s);
  EXPECT_FALSE(hop.upstream().sent()) << "a clock may still become known";
  hop.upstream().pump(kBegin_s + RankSession::kClockWait_s);
  EXPECT_TRUE(hop.upstream().sent()) << "one wait is over, so all are";
  EXPECT_EQ(hop.arrived(4), (std::vector<std::uint64_t>{11, 12, 13, 14}));
}

TEST(Upstream, AWaitBeginsWithTheFirstMessageOfAProcess) {
  Hop hop("received");
  RankSession rank(0);
  hop.first_message(rank, 11, kBegin_s);
  hop.first_message(rank, 12, kBegin_s + 1);
  hop.upstream().pump(kBegin_s + 1 + kAlmost_s);
  EXPECT_FALSE(hop.upstream().sent()) << "the second came a second later";
  hop.upstream().pump(kBegin_s + 1 + RankSession::kClockWait_s);
  EXPECT_TRUE(hop.upstream().sent());
  EXPECT_EQ(hop.arrived(2), (std::vector<std::uint64_t>{11, 12}));
}

/// The collector above takes what comes last for the process that has replaced the others.
TEST(Upstream, AReplacedProcessIsNotSentAfterItsReplacementBecauseAnotherRankWaits) {
  Hop hop("order");
  RankSession unknown(0), known(1);
  hop.first_message(unknown, 11, kBegin_s);
  hop.first_message(unknown, 12, kBegin_s);
  for (const std::uint64_t process : {21U, 22U}) {
    hop.another_process(known, process);
    known.clock.same_clock();
    hop.first_message(known, process, kBegin_s);
  }
  hop.upstream().pump(kBegin_s);
  hop.upstream().pump(kBegin_s + RankSession::kClockWait_s);
  EXPECT_TRUE(hop.upstream().sent());
  EXPECT_EQ(hop.arrived(4), (std::vector<std::uint64_t>{21, 22, 11, 12}));
}

/// The earlier one has more than may be under way without a receipt.
TEST(Upstream, AProcessIsNotSentBeforeTheRestOfTheOneThatItReplaced) {
  constexpr std::uint64_t kBatches = 8;
  Hop hop("rest");
  RankSession rank(0);
  hop.another_process(rank, 11);
  rank.clock.same_clock();
  hop.first_message(rank, 11, kBegin_s);
  for (std::uint64_t i = 1; i <= kBatches; ++i) hop.publish(rank, 11, i, 1'000, 0, 200);
  for (const std::uint64_t process : {12U, 13U}) {
    hop.another_process(rank, process);
    rank.clock.same_clock();
    hop.first_message(rank, process, kBegin_s);
  }
  hop.upstream().pump(kBegin_s);
  ASSERT_FALSE(hop.upstream().sent()) << "a window takes less";
  std::vector<std::uint64_t> processes(kBatches + 1, 11);
  processes.insert(processes.end(), {12, 13});
  EXPECT_EQ(hop.confirmed(kBatches + 3), processes);
}

/// Whether it has arrived is not known without a receipt.
TEST(Upstream, WhatIsUnderWayOfAnAbandonedProcessIsCounted) {
  constexpr std::uint64_t kFirst = 100, kDropped = 7, kProcesses = Upstream::kMostReplaced + 2;
  constexpr std::int64_t kAt_ns = 1'000;
  Hop hop("abandoned");
  RankSession rank(0);
  std::vector<wire::Body> arrived;
  for (std::uint64_t process = kFirst; process < kFirst + kProcesses; ++process) {
    hop.another_process(rank, process);
    rank.clock.same_clock();
    hop.first_message(rank, process, kBegin_s);
    // A batch of the first one is confirmed, with its count of drops.
    const bool first = process == kFirst;
    if (first) hop.publish(rank, process, 1, kAt_ns - 1, 0, 1, 2);
    if (first) hop.confirmed(2);
    hop.publish(rank, process, first ? 2 : 1, kAt_ns + static_cast<std::int64_t>(process - kFirst), 0, 3,
                first ? kDropped : 0);
    ASSERT_TRUE(eventually([&] {
      hop.upstream().pump(kBegin_s);
      return hop.upstream().sent();
    }));
    hop.wait_for_messages();
    const std::size_t count = first ? 1 : process + 1 == kFirst + kProcesses ? 4 : 2;
    for (wire::Body& body : hop.bodies(count)) arrived.push_back(std::move(body));
  }
  EXPECT_EQ(hop.upstream().shed(), 3U);
  std::uint64_t dropped = 0;
  bool said = false;
  for (const wire::Body& body : arrived) {
    if (const auto* text = std::get_if<wire::Text>(&body))
      said |= text->text.find("3 of them sent without a receipt") != std::string::npos;
    const auto* batch = std::get_if<wire::Batch>(&body);
    if (batch == nullptr || batch->dropped_here == 0) continue;
    dropped += batch->dropped_here;
    EXPECT_EQ(batch->begin_ns, kAt_ns);
    EXPECT_EQ(batch->end_ns, kAt_ns + 1);
  }
  EXPECT_EQ(dropped, 3 + kDropped - 2);
  EXPECT_TRUE(said);
}

/// The collector above drops what has a number that it has got.
TEST(Upstream, AReportOfWhatWasDiscardedHasNoNumberOfAMessageToCome) {
  constexpr std::uint64_t kFirst = 100, kProcesses = Upstream::kMostReplaced + 2, kSequence = 5;
  Hop hop("report");
  RankSession rank(0), at_top(0);
  for (std::uint64_t process = kFirst; process < kFirst + kProcesses; ++process) {
    hop.another_process(rank, process);
    rank.clock.same_clock();
    hop.publish(rank, process, kSequence, 1'000);  // a batch is the first that this collector gets of it
  }
  wire::Message text;
  text.header = {.rank = 0,
                 .incarnation = kFirst + kProcesses - 1,
                 .sequence = kSequence + 1,
                 .run_id = "collector-test"};
  text.body = wire::Text{1'001, Severity::info, "behind the report"};
  hop.upstream().published(rank, text, 0);
  hop.upstream().pump(kBegin_s + 1);
  // One process is discarded, and the last one has the batch, the report as a batch and a text, and a text.
  const std::vector<wire::Message> sent = hop.messages(kProcesses - 1 + 3);
  ASSERT_EQ(sent.size(), kProcesses + 2);
  for (const wire::Message& message : sent) {
    EXPECT_EQ(at_top.accept(message.header, kBegin_s).order, RankSession::Order::next);
    EXPECT_FALSE(at_top.passed_on_before(message.header)) << message.header.source_next;
    at_top.add_relayed(message.header);
    if (const auto* batch = std::get_if<wire::Batch>(&message.body)) at_top.add(*batch, kBegin_s);
  }
  const auto* report = std::get_if<wire::Batch>(&sent[sent.size() - 3].body);
  ASSERT_TRUE(report != nullptr && report->relay);
  EXPECT_EQ(report->dropped_here, 1U);
  EXPECT_EQ(report->relay->source_first, kSequence);
  EXPECT_EQ(report->relay->source_last, kSequence);
  EXPECT_EQ(sent.back().header.source_next, kSequence + 2);
}

/// A clock that is `offset` behind ours, to the nanosecond.
void compare(ClockEstimator& clock, std::int64_t offset) {
  clock.add(10'000, 10'000 - offset, 10'000 - offset, 10'000);
}

/// Its replacement may run on another host, whose clock shows another time.
TEST(Upstream, AReplacedProcessIsConvertedWithItsOwnClock) {
  Hop hop("clocks");
  RankSession rank(0);
  hop.another_process(rank, 11);
  compare(rank.clock, 7'000);
  hop.publish(rank, 11, 0, 3'000);
  hop.another_process(rank,
                      12);  // says hello before anything of it arrives, and before the last of the other
  hop.publish(rank, 11, 1, 3'001);
  compare(rank.clock, -400);
  hop.publish(rank, 12, 0, 10'500);
  // This one publishes before it says hello: nothing is known of its clock until then.
  hop.publish(rank, 13, 0, 5'000);
  hop.another_process(rank, 13);
  compare(rank.clock, 5'000);
  hop.upstream().pump(kBegin_s + RankSession::kClockWait_s);
  using Offsets = std::vector<std::pair<std::uint64_t, std::int64_t>>;
  EXPECT_EQ(hop.offsets(4), (Offsets{{11, 7'000}, {11, 7'000}, {12, -400}, {13, 5'000}}));
}

}  // namespace
}  // namespace shardscope::collector
