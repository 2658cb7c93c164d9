// What a collector knows of ranks by the hellos of their node's collector, which lists them.
#include "app/collector/listed_ranks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/collector/hello_sum.h"

namespace shardscope::collector {
namespace {

using Range = wire::RelayHello::Range;
using Due = std::vector<std::uint32_t>;

class ListedRanksTest : public testing::Test {
 protected:
  ListedRanksTest() {
    static_cast<void>(nodes_.hello_received(9, kRoute, "node", false, 10));
    for (std::uint32_t id = 0; id < 4; ++id) {
      RankSession& rank = ranks_.session(id);
      rank.another_process(100 + id);
      rank.another_route(kRoute);
      rank.node_clock = &node().clock;
      rank.row.connected = true;
      rank.row_dirty = false;
      rank.last_control_s = 10;
    }
  }
  Nodes::Node& node() { return *nodes_.at(kRoute); }
  RankSession& rank(std::uint32_t id) { return ranks_.session(id); }
  static wire::RelayHello hello(std::vector<Range> present, std::vector<Range> silent = {}) {
    wire::RelayHello out;
    for (const Range& range : present) {
      for (std::uint32_t id = range.first; id < range.first + range.count; ++id)
        out.hello_sum += hello_sum(id, 100 + id);
    }
    out.present = std::move(present);
    out.silent = std::move(silent);
    return out;
  }
  /// What a silence begins or ends with is noted as "begins 2 after 10".
  void take(const wire::RelayHello& hello, double now_s) {
    const auto note = [this](const std::string& what, const RankSession& rank) {
      silences_.push_back(what + " " + std::to_string(rank.row.rank) + " after " +
                          std::to_string(static_cast<int>(rank.last_control())));
    };
    listed_.take(node(), kRoute, hello, now_s,
                 {[&](RankSession& rank) {
                    note("begins", rank);
                    rank.silent_since_s = rank.last_control();
                  },
                  [&](RankSession& rank) {
                    note("ends", rank);
                    rank.silent_since_s.reset();
                  }});
  }
  std::vector<std::string> take_silences() { return std::exchange(silences_, {}); }

  static constexpr const char* kRoute = "node's connection";
  Pacing pacing_;
  RunIdentity identity_{"run"};
  RankTable ranks_{pacing_, identity_};
  Nodes nodes_;
  ListedRanks listed_{ranks_, nodes_};
  std::vector<std::string> silences_;
};

using Silences = std::vector<std::string>;

TEST_F(ListedRanksTest, ASilenceBeginsAndEndsBeforeTheHelloCountsAsAMessageOfTheRank) {
  take(hello({{0, 4}}, {{2, 1}}), 12);
  EXPECT_EQ(take_silences(), Silences{"begins 2 after 10"});
  EXPECT_EQ(rank(2).last_control(), 12);
  take(hello({{0, 4}}, {{2, 1}}), 13);
  EXPECT_EQ(take_silences(), Silences{}) << "it is silent already";
  take(hello({{0, 4}}), 15);
  EXPECT_EQ(take_silences(), Silences{"ends 2 after 13"});
  rank(3).row.finished = true;
  take(hello({{0, 4}}, {{3, 1}}), 16);
  EXPECT_EQ(take_silences(), Silences{}) << "a rank that has ended is not silent";
}

TEST_F(ListedRanksTest, WhileHellosAreAlikeRanksFollowThemWithoutBeingGoneOver) {
  take(hello({{0, 3}}), 12);
  EXPECT_EQ(node().listing.known, hello({{0, 3}}).hello_sum);
  take(hello({{0, 3}}), 20);
  EXPECT_EQ(rank(1).last_control(), 20);
  EXPECT_EQ(rank(1).last_control_s, 12) << "nothing was written to it";
  EXPECT_EQ(rank(3).last_control(), 10) << "it is not listed";
  listed_.rank_changed(rank(1));
  take(hello({{0, 3}}), 21);
  EXPECT_EQ(rank(1).last_control_s, 21) << "something of it had changed";
}

TEST_F(ListedRanksTest, OfARankThatIsReachedElsewhereTheNodeKnowsNothing) {
  rank(1).another_route("its own");
  take(hello({{0, 4}}, {{1, 1}}), 12);
  EXPECT_EQ(take_silences(), Silences{});
  EXPECT_EQ(rank(1).last_control(), 10);
  EXPECT_NE(node().listing.known, hello({{0, 4}}).hello_sum) << "so that its hello is sent again";
}

TEST_F(ListedRanksTest, ARankThatIsNoLongerListedIsMissedAfterAWhile) {
  take(hello({{0, 4}}), 12);
  static_cast<void>(ranks_.take_due(1e6));
  take(hello({{0, 2}}), 14);
  EXPECT_EQ(ranks_.take_due(12 + RankTable::kSilentAfter_s), Due{});
  EXPECT_EQ(ranks_.take_due(12.1 + RankTable::kSilentAfter_s), (Due{2, 3}))
      << "listed at 12 for the last time";
  listed_.forget(node(), 30);
  EXPECT_EQ(ranks_.take_due(30), (Due{0, 1})) << "last listed 16 s ago";
  take(hello({{0, 2}}), 31);
  EXPECT_EQ(rank(0).last_control_s, 31) << "the same list counts anew";
}

TEST_F(ListedRanksTest, ForTheCollectorAboveThoseAreListedThatSentSomethingLately) {
  rank(1).last_control_s = 7;
  rank(3).last_control_s = 7;
  rank(3).silent_since_s = 7;
  ranks_.session(4).row.connected = false;
  wire::RelayHello out;
  listed_.add_to(out, 11);
  EXPECT_EQ(out.present, (std::vector<Range>{{0, 1}, {2, 2}}));
  EXPECT_EQ(out.silent, (std::vector<Range>{{3, 1}})) << "a silent one is there all the same";
}

}  // namespace
}  // namespace shardscope::collector
