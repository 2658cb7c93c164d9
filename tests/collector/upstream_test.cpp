// What a node's collector passes on while it does not know its ranks' clocks, on a clock of the test's.
#include "app/collector/upstream.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "instrumentation/sockets.h"
#include "tests/collector/test_rank.h"

namespace shardscope::collector {
namespace {

constexpr std::uint32_t kWorld = 3;
constexpr double kBegin_s = 100;
constexpr double kAlmost_s = RankSession::kClockWait_s - 0.001;

/// An Upstream and the door of a collector above that it knocks at.
class Hop {
 public:
  explicit Hop(const std::string& name)
      : endpoint_("ipc://" + testing::TempDir() + "upstream_" + name + std::to_string(getpid())),
        above_(make_socket(context_, Role::collector_publish)),
        upstream_(context_, {.endpoint = endpoint_,
                             .key_file = {},
                             .bytes = 1U << 20,
                             .id = 0,  // processes keep their numbers
                             .host = "node",
                             .clock_id = "node",
                             .clock = {},
                             .command = {}}) {
    above_.set(zmq::sockopt::rcvtimeo, 10'000);  // for a failing test to end
    above_.bind(endpoints_of(endpoint_).publish);
    // Nothing is taken before the connection is there.
    first_.clock.same_clock();
    hear(first_, 1, kBegin_s);
    EXPECT_TRUE(eventually([&] {
      upstream_.pump(kBegin_s);
      return upstream_.sent();
    }));
    EXPECT_EQ(arrived(1), std::vector<std::uint64_t>{1});
  }
  [[nodiscard]] Upstream& upstream() noexcept { return upstream_; }

  /// A process of a rank is heard for the first time and says one thing.
  void hear(RankSession& rank, std::uint64_t process, double now_s) {
    wire::Message message;
    message.header.rank = rank.row.rank;
    message.header.incarnation = process;
    message.header.run_id = "collector-test";
    message.body = wire::Tables{tables_of(rank.row.rank, kWorld)};
    rank.first_heard_s = now_s;
    upstream_.published(rank, message, 0);
  }

  /// The processes of the next `count` messages that arrive above.
  std::vector<std::uint64_t> arrived(std::size_t count) {
    std::vector<std::uint64_t> processes;
    zmq::message_t message;
    while (processes.size() < count && above_.recv(message)) {
      const wire::Decoded decoded = wire::decode(message.data(), message.size(), wire::From::rank_publish);
      EXPECT_TRUE(decoded.message);
      if (decoded.message) processes.push_back(decoded.message->header.incarnation);
    }
    return processes;
  }

 private:
  zmq::context_t context_;
  std::string endpoint_;
  RankSession first_{kWorld - 1};
  zmq::socket_t above_;
  Upstream upstream_;
};

TEST(Upstream, ReplacedProcessesWaitForTheirClocksSideBySide) {
  Hop hop("side");
  RankSession rank(0);
  for (const std::uint64_t process : {11U, 12U, 13U, 14U}) hop.hear(rank, process, kBegin_s);
  hop.upstream().pump(kBegin_s);
  hop.upstream().pump(kBegin_s + kAlmost_s);
  EXPECT_FALSE(hop.upstream().sent()) << "a clock may still become known";
  hop.upstream().pump(kBegin_s + RankSession::kClockWait_s);
  EXPECT_TRUE(hop.upstream().sent()) << "one wait is over, so all are";
  EXPECT_EQ(hop.arrived(4), (std::vector<std::uint64_t>{11, 12, 13, 14}));
}

TEST(Upstream, AWaitBeginsWhenAProcessIsHeardNotWhenItsTurnComes) {
  Hop hop("heard");
  RankSession rank(0);
  hop.hear(rank, 11, kBegin_s);
  hop.hear(rank, 12, kBegin_s + 1);
  hop.upstream().pump(kBegin_s + 1 + kAlmost_s);
  EXPECT_FALSE(hop.upstream().sent()) << "the second was heard a second later";
  hop.upstream().pump(kBegin_s + 1 + RankSession::kClockWait_s);
  EXPECT_TRUE(hop.upstream().sent());
  EXPECT_EQ(hop.arrived(2), (std::vector<std::uint64_t>{11, 12}));
}

/// The collector above takes what comes last for the process that has replaced the others.
TEST(Upstream, AReplacedProcessDoesNotComeAfterItsHeirBecauseAnotherRankWaits) {
  Hop hop("order");
  RankSession unknown(0), known(1);
  known.clock.same_clock();
  hop.hear(unknown, 11, kBegin_s);
  hop.hear(unknown, 12, kBegin_s);
  hop.hear(known, 21, kBegin_s);
  hop.hear(known, 22, kBegin_s);
  hop.upstream().pump(kBegin_s);
  hop.upstream().pump(kBegin_s + RankSession::kClockWait_s);
  EXPECT_TRUE(hop.upstream().sent());
  EXPECT_EQ(hop.arrived(4), (std::vector<std::uint64_t>{21, 22, 11, 12}));
}

}  // namespace
}  // namespace shardscope::collector
