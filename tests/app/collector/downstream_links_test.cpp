// Receipts for ranks of nodes: which are named together, and what becomes of those that are not taken.
#include "app/collector/downstream_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardscope::collector {
namespace {

using Sent = DownstreamLinks::Sent;
constexpr double kNow_s = 10;

class DueReceipts : public testing::Test {
 protected:
  /// A rank of the node at `route` that has published `messages`, none of them confirmed.
  RankSession& relayed(std::uint32_t rank, const std::string& route, std::uint64_t messages = 1) {
    static_cast<void>(
        down_.nodes().hello_received(std::hash<std::string>{}(route), route, route, true, kNow_s));
    RankSession& session = ranks_.session(rank);
    session.route = route;
    session.node_clock = &down_.nodes().at(route)->clock;
    session.row.connected = true;
    session.row_dirty = false;
    session.last_control_s = 1e6;  // no silence is due
    for (std::uint64_t i = 0; i < messages; ++i) {
      wire::Header header;
      header.incarnation = 100 + rank;
      header.sequence = i;
      static_cast<void>(session.accept(header, kNow_s));
    }
    down_.queue_receipt(session);
    return session;
  }
  /// Sends those that are due; the connections answer `answer`. By route, the ranks of each message.
  using Messages = std::multimap<std::string, std::vector<std::uint32_t>>;
  Messages send(Sent answer, double now_s = kNow_s) {
    Messages messages;
    down_.send_receipts(ranks_, now_s, [&](RankSession& rank, const wire::Body& body) {
      const auto& receipt = std::get<wire::Received>(body);
      EXPECT_EQ(receipt.source, 100 + rank.row.rank);
      EXPECT_EQ(receipt.next, rank.next_sequence());
      std::vector<std::uint32_t> named{rank.row.rank};
      for (const wire::Received::OfRank& other : receipt.others) {
        named.push_back(other.rank);
        EXPECT_EQ(other.source, 100 + other.rank);
        EXPECT_EQ(other.next, ranks_.known(other.rank)->next_sequence());
      }
      messages.emplace(rank.route, std::move(named));
      return answer;
    });
    return messages;
  }
  CollectorSockets sockets_{std::nullopt};
  wire::Header header_;
  DownstreamLinks down_{sockets_, header_};
  Pacing pacing_;
  RunIdentity identity_{"run"};
  RankTable ranks_{pacing_, identity_};
};

TEST_F(DueReceipts, EachNodeGetsOneForItsRanks) {
  relayed(0, "a", 3);
  relayed(1, "b", 2);
  relayed(2, "a", 5);
  EXPECT_EQ(send(Sent::taken), (Messages{{"a", {0, 2}}, {"b", {1}}}));
  for (const std::uint32_t rank : {0U, 1U, 2U}) EXPECT_EQ(ranks_.known(rank)->unconfirmed(), 0U) << rank;
  EXPECT_EQ(send(Sent::taken), Messages{});
}

TEST_F(DueReceipts, MoreRanksThanOneNamesGetAnother) {
  constexpr std::uint32_t kRanks = wire::Received::kMostOthers + 3;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) relayed(rank, "a");
  const Messages messages = send(Sent::taken);
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages.begin()->second.size(), wire::Received::kMostOthers + 1);
  EXPECT_EQ(messages.rbegin()->second, (std::vector<std::uint32_t>{kRanks - 2, kRanks - 1}));
  for (std::uint32_t rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(ranks_.known(rank)->unconfirmed(), 0U) << rank;
}

TEST_F(DueReceipts, WhatANodeDoesNotTakeIsSentAgainLater) {
  RankSession& one = relayed(0, "a");
  RankSession& other = relayed(1, "a");
  other.row.finished = true;
  EXPECT_EQ(send(Sent::full).size(), 1U);
  EXPECT_EQ(one.unconfirmed() + other.unconfirmed(), 2U);
  EXPECT_FALSE(down_.nodes().any_awaited()) << "to what was not sent there is no answer";
  EXPECT_EQ(send(Sent::taken), (Messages{{"a", {0, 1}}}));
  EXPECT_EQ(one.unconfirmed() + other.unconfirmed(), 0U);
  EXPECT_TRUE(down_.nodes().any_awaited());
  EXPECT_EQ(send(Sent::taken), Messages{});
}

/// Else the collector ends, and the rank waits for a confirmation that was never sent.
TEST_F(DueReceipts, AnEndIsConfirmedAgainUntilTheConfirmationIsTaken) {
  RankSession& relayed_rank = relayed(0, "a");
  RankSession& direct = ranks_.session(1);
  direct.route = "b";
  direct.row.connected = true;
  direct.next_ping_s = 1e6;
  direct.row_dirty = false;
  for (RankSession* const rank : {&relayed_rank, &direct}) {
    rank->row.finished = true;
    const auto confirm = [&](Sent answer) {
      down_.confirm_end(*rank, [&](RankSession&, const wire::Body&) { return answer; });
    };
    confirm(Sent::closed);
    EXPECT_FALSE(down_.answers_awaited(ranks_, kNow_s)) << "there is none to wait for";
    confirm(Sent::full);
    EXPECT_FALSE(down_.nodes().any_awaited() || rank->answer.awaited())
        << "an answer to an older message ends that";
    EXPECT_TRUE(down_.answers_awaited(ranks_, kNow_s));
    ranks_.note_change(*rank, kNow_s);
    const auto due = ranks_.take_due(kNow_s + 0.2);
    EXPECT_EQ(std::count(due.begin(), due.end(), rank->row.rank), 1);
    confirm(Sent::taken);
    EXPECT_FALSE(rank->end_unconfirmed);
    EXPECT_TRUE(down_.nodes().any_awaited() || rank->answer.awaited());
    down_.nodes().at("a")->answer.answered(1);
    rank->answer.answered(1);
    EXPECT_FALSE(down_.answers_awaited(ranks_, kNow_s));
  }
}

TEST_F(DueReceipts, OverAClosedConnectionNoneIsConfirmed) {
  RankSession& one = relayed(0, "a");
  RankSession& other = relayed(1, "a");
  EXPECT_EQ(send(Sent::closed).size(), 1U);
  EXPECT_EQ(one.unconfirmed() + other.unconfirmed(), 2U);
  EXPECT_EQ(send(Sent::taken), Messages{}) << "they are due where the node connects again";
}

TEST_F(DueReceipts, ARankIsNotLookedAtForAReceiptThatIsOwedAlready) {
  RankSession& rank = relayed(0, "a");
  const double later_s = kNow_s + RankSession::kConfirmAfter_s;
  ranks_.note_change(rank, kNow_s);
  EXPECT_EQ(ranks_.take_due(later_s), std::vector<std::uint32_t>{});
  EXPECT_EQ(send(Sent::closed).size(), 1U);
  ranks_.note_change(rank, kNow_s);
  EXPECT_EQ(ranks_.take_due(later_s), std::vector<std::uint32_t>{0}) << "it is not due any more";
}

TEST_F(DueReceipts, WhoIsElsewhereIsConfirmedThere) {
  RankSession& rank = relayed(0, "a");
  relayed(0, "b", 0);
  EXPECT_EQ(send(Sent::taken), (Messages{{"b", {0}}}));
  EXPECT_EQ(rank.unconfirmed(), 0U);
}

}  // namespace
}  // namespace shardscope::collector
