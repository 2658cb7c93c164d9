// A collector that ends: its connections and keys stay until those whose end it has confirmed know that.
#include <gtest/gtest.h>

#include <future>
#include <optional>

#include "tests/app/collector/chain_parts.h"

namespace shardscope::collector {
namespace {

constexpr auto kLooks = 300ms;  ///< for what must not happen

/// A peer that reads what it is sent only when it is asked to, as on a machine that has no time for it.
class LateReader : public Raw {
 public:
  using Raw::Raw;
  /// Reads, and answers pings. Whether the end of a rank was confirmed in what was read.
  bool read() {
    bool confirmed = false;
    for (const wire::Body& body : received()) {
      if (const auto* ping = std::get_if<wire::Ping>(&body))
        control(wire::Pong{ping->id, ping->sent_ns, 0, 0});
      const auto* command = std::get_if<wire::RankCommand>(&body);
      confirmed |= command != nullptr && command->kind == wire::RankCommand::Kind::finish_received;
    }
    return confirmed;
  }
};

/// Of a collector whose only rank has ended.
class LastAnswers : public testing::Test {
 protected:
  void begin(double linger_s) {
    CollectorOptions options = local();
    options.linger_s = linger_s;
    collector_.emplace(options);
  }
  void end_rank(std::optional<LateReader>& peer) {
    peer->publish(0, wire::Tables{tables_of(0, 1)});
    peer->publish(1, wire::Finish{0, monotonic_now_ns(), 0, "done"});
    ASSERT_TRUE(eventually([&] { return collector_->status().finished; }));
    stopped_ = std::async(std::launch::async, [this] { collector_->stop(); });
  }
  void end_rank_here(std::optional<LateReader>& peer) {
    peer.emplace(collector_->publish_endpoint(), 7);
    peer->control(wire::Hello{1, 0, "elsewhere", clock_identity(), false});
    ASSERT_TRUE(eventually([&] { return collector_->status().ranks_connected == 1; }));
    end_rank(peer);
  }
  void end_rank_of_node(std::optional<LateReader>& peer) {
    peer.emplace(collector_->publish_endpoint(), 9);
    peer->control(wire::RelayHello{"node", clock_identity(), {{0, 1}}, {}});
    peer->control(wire::Hello{1, 0, "elsewhere", clock_identity(), true});
    ASSERT_TRUE(eventually([&] { return collector_->status().ranks_connected == 1; }));
    end_rank(peer);
  }
  [[nodiscard]] bool ended_within(std::chrono::milliseconds limit) {
    return stopped_.wait_for(limit) == std::future_status::ready;
  }
  /// It stays there until the peer has read, and ends soon after.
  void expect_to_wait_for(LateReader& peer) {
    EXPECT_FALSE(ended_within(kLooks));
    EXPECT_FALSE(local_key_folder(collector_->publish_endpoint()).empty());
    bool confirmed = false;
    EXPECT_TRUE(eventually([&] {
      confirmed |= peer.read();
      return ended_within(0ms);
    }));
    EXPECT_TRUE(confirmed);
  }
  std::optional<Collector> collector_;
  std::future<void> stopped_;
};

constexpr double kLong_s = 60;

TEST_F(LastAnswers, ARankThatReadsLate) {
  begin(kLong_s);
  std::optional<LateReader> rank;
  end_rank_here(rank);
  expect_to_wait_for(*rank);
}

TEST_F(LastAnswers, ANodeThatReadsLate) {
  begin(kLong_s);
  std::optional<LateReader> node;
  end_rank_of_node(node);
  expect_to_wait_for(*node);
}

TEST_F(LastAnswers, ARankThatClosesItsConnection) {
  begin(kLong_s);
  std::optional<LateReader> rank;
  end_rank_here(rank);
  EXPECT_FALSE(ended_within(kLooks));
  rank.reset();
  EXPECT_TRUE(ended_within(10s));
}

TEST_F(LastAnswers, ANodeThatClosesItsConnection) {
  begin(kLong_s);
  std::optional<LateReader> node;
  end_rank_of_node(node);
  EXPECT_FALSE(ended_within(kLooks));
  node.reset();
  EXPECT_TRUE(ended_within(10s));
}

TEST_F(LastAnswers, WhoDoesNotReadIsNotWaitedForWithoutEnd) {
  begin(1);
  std::optional<LateReader> rank;
  end_rank_here(rank);
  EXPECT_FALSE(ended_within(kLooks));
  EXPECT_TRUE(ended_within(10s));
}

}  // namespace
}  // namespace shardscope::collector
