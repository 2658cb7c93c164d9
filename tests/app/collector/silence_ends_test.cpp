// How the silence of a rank ends other than by its next message: another route, another process, its end; and
// what a pause makes of one that a node's collector calls silent.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>
#include <zmq.hpp>

#include "app/collector/frame_pack.h"
#include "tests/app/collector/chain_parts.h"
#include "tests/app/collector/silences_seen.h"
#include "tests/child_process.h"

namespace shardscope::collector {
namespace {

using store::RankEnd;

/// A process that is stopped, so that a rank which names it is silent after 2.5 s. Made before there are
/// threads.
class Stopped {
 public:
  Stopped() : pid_(fork_bound()) {
    if (pid_ != 0) {
      EXPECT_EQ(waitpid(pid_, nullptr, WUNTRACED), pid_);
      return;
    }
    raise(SIGSTOP);
    _exit(0);
  }
  ~Stopped() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;
  [[nodiscard]] wire::Hello hello() const { return {1, pid_, "", clock_identity(), false}; }
  [[nodiscard]] wire::Tables tables() const {
    wire::Tables out{tables_of(0, 1)};
    out.tables.pid = pid_;
    return out;
  }

 private:
  pid_t pid_;
};

class SilenceEnds : public testing::Test {
 protected:
  SilenceEnds() : collector_(local()), rank_(collector_.publish_endpoint(), kProcess) {
    rank_.control(stopped_.hello());
    rank_.publish(0, stopped_.tables());
    rank_.publish(1, batch_of(0));
    EXPECT_TRUE(eventually([&] { return end_of_only(collector_).how == RankEnd::How::stopped; }));
    EXPECT_EQ(store::text_of(end_of_only(collector_)), "rank 0 is stopped");
  }
  /// That the only silence is over, and how the rank ended.
  void expect_over(RankEnd::How how) {
    EXPECT_TRUE(eventually([&] {
      const std::vector<store::Silence> silences = silences_in(collector_);
      return end_of_only(collector_).how == how && silences.size() == 1 && !silences[0].lasts();
    })) << store::text_of(end_of_only(collector_));
  }
  static constexpr std::uint64_t kProcess = 7;
  Stopped stopped_;
  Collector collector_;
  Raw rank_;
};

TEST_F(SilenceEnds, AHelloOfTheSameProcessOverAnotherRoute) {
  Raw again(collector_.publish_endpoint(), kProcess);
  // Of a process that cannot be looked at, else it would soon be called silent again.
  again.control(wire::Hello{1, 0, "", clock_identity(), false});
  expect_over(RankEnd::How::running);
}

TEST_F(SilenceEnds, AnotherProcessOfTheRank) {
  Raw restarted(collector_.publish_endpoint(), kProcess + 1);
  restarted.control(wire::Hello{1, 0, "", clock_identity(), false});
  expect_over(RankEnd::How::running);
}

TEST_F(SilenceEnds, ItsEndBeforeItsNextControlMessage) {
  rank_.publish(2, wire::Finish{0, monotonic_now_ns(), 0, "done"});
  expect_over(RankEnd::How::finished);
}

/// A rank that has ended is not silent: the collector above gets the end of the silence first.
TEST(RelayedSilence, TheTextThatEndsItIsPassedOnBeforeTheRanksEnd) {
  const Stopped stopped;
  const std::string endpoint = "ipc://" + testing::TempDir() + "silence_end" + std::to_string(getpid());
  zmq::context_t context;
  zmq::socket_t above = make_socket(context, Role::collector_publish);
  above.set(zmq::sockopt::rcvtimeo, 10'000);  // for a failing test to end
  above.bind(endpoints_of(endpoint).publish);
  Collector node(node_of(endpoint));
  Raw rank(node.publish_endpoint(), 7);
  rank.control(stopped.hello());
  rank.publish(0, stopped.tables());
  rank.publish(1, batch_of(0));
  ASSERT_TRUE(eventually([&] { return silences_in(node).size() == 1; }));
  rank.publish(2, wire::Finish{0, monotonic_now_ns(), 0, "done"});
  std::vector<std::string> passed_on;
  zmq::message_t message;
  while ((passed_on.empty() || passed_on.back() != "end") && above.recv(message)) {
    PackedFrames frames({message.data<std::uint8_t>(), message.size()});
    for (auto frame = frames.next(); !frame.empty(); frame = frames.next()) {
      const wire::Decoded decoded = wire::decode(frame.data(), frame.size(), wire::From::rank_publish);
      ASSERT_TRUE(decoded.message) << decoded.why;
      if (const auto* text = std::get_if<wire::Text>(&decoded.message->body)) passed_on.push_back(text->text);
      if (std::holds_alternative<wire::Finish>(decoded.message->body)) passed_on.push_back("end");
    }
  }
  ASSERT_EQ(passed_on.size(), 3U);
  EXPECT_NE(passed_on[0].find("has been silent"), std::string::npos) << passed_on[0];
  EXPECT_NE(passed_on[1].find("sends again after"), std::string::npos) << passed_on[1];
  EXPECT_EQ(passed_on[2], "end");
}

/// The hello of the process that ended it may be lost on the way, and come again seconds later.
TEST(RelayedSilence, OfARestartedRankItEndsAlthoughItsNodeSaidSoFirst) {
  Collector top(local());
  Raw node(top.publish_endpoint(), 9);
  const auto send_hello = [&](std::vector<wire::RelayHello::Range> silent) {
    node.control(wire::RelayHello{"node", clock_identity(), {{0, 1}}, std::move(silent)});
  };
  const auto hello = [&](std::uint64_t process) {
    node.control(wire::Hello{1, 0, "elsewhere", clock_identity(), true}, 0, process);
  };
  send_hello({});
  hello(7);
  node.publish(0, wire::Tables{tables_of(0, 1)}, 7);
  node.publish(
      1, wire::Text{monotonic_now_ns(), instrumentation::Severity::warning, store::silent_message(0, 6.5, 0)},
      7);
  send_hello({{0, 1}});
  const auto lasting = [&] {
    const std::vector<store::Silence> silences = silences_in(top);
    return silences.size() == 1 && silences[0].lasts();
  };
  ASSERT_TRUE(eventually([&] { return lasting() && top.status().ranks_connected == 1; }));
  send_hello({});  // the rank is back; its hello, sent before, was lost
  hello(8);        // and comes again
  EXPECT_TRUE(eventually([&] { return !lasting(); })) << "the silence stays open";
  double said_s = 0;
  top.read([&](const store::Store& store) {
    constexpr std::string_view kAgain = "sends again after ";
    for (const store::Message& one : store.messages()) {
      if (const auto at = one.text.find(kAgain); at != std::string::npos)
        said_s = std::stod(one.text.substr(at + kAgain.size()));
    }
  });
  EXPECT_GE(said_s, 6.5) << "what its node's text reported is part of it";
  hello(9);  // another restart: of no silence
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(silences_in(top).size(), 1U);
}

/// The hello of the rank's next process came before the text about the previous one: they come over different
/// connections.
TEST(RelayedSilence, OfAProcessThatHasBeenReplacedEndsWithItsText) {
  Collector top(local());
  Raw node(top.publish_endpoint(), 9);
  node.control(wire::RelayHello{"node", clock_identity(), {{0, 1}}, {}});
  const auto hello = [&](std::uint64_t process) {
    node.control(wire::Hello{1, 0, "elsewhere", clock_identity(), true}, 0, process);
  };
  hello(7);
  node.publish(0, wire::Tables{tables_of(0, 1)}, 7);
  ASSERT_TRUE(eventually([&] { return top.status().ranks_connected == 1 && top.status().messages == 1; }));
  hello(8);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  node.publish(
      1, wire::Text{monotonic_now_ns(), instrumentation::Severity::warning, store::silent_message(0, 6.5, 0)},
      7);
  EXPECT_TRUE(eventually([&] {
    const std::vector<store::Silence> silences = silences_in(top);
    return silences.size() == 1 && !silences[0].lasts();
  }));
  hello(9);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  std::size_t again = 0;
  top.read([&](const store::Store& store) {
    for (const store::Message& one : store.messages()) again += store::is_resumption_message(one) ? 1 : 0;
  });
  EXPECT_EQ(again, 1U) << "the restart after it ends no silence";
}

/// The collector above has no connection to the rank: its node's collector reports that it is silent.
TEST(RelayedSilence, APauseDoesNotWaitForASilentRankOfANode) {
  Collector top(local());
  Raw node(top.publish_endpoint(), 9);
  const auto send_hello = [&](std::vector<wire::RelayHello::Range> silent) {
    node.control(wire::RelayHello{"node", clock_identity(), {{0, 2}}, std::move(silent)});
  };
  send_hello({});
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    node.control(wire::Hello{2, 0, "elsewhere", clock_identity(), true}, rank);
  node.publish(0, wire::Tables{two_ranks(0)});
  ASSERT_TRUE(eventually([&] { return top.status().ranks_connected == 2 && top.status().messages == 1; }));
  Viewer viewer(top.view_endpoint());
  store::Store store;
  const auto pause = [&] { viewer.send({.kind = Command::Kind::pause, .rule = {}, .detail = {}}); };
  pause();
  ASSERT_TRUE(follow(viewer, store, [&] { return viewer.control().pausing; }));
  send_hello({{1, 1}});
  ASSERT_TRUE(follow(viewer, store, [&] { return !viewer.control().pausing; }));
  EXPECT_EQ(viewer.control().note, "rank 1 is silent: the others were resumed");
  pause();
  ASSERT_TRUE(follow(viewer, store, [&] {
    return viewer.control().note == "cannot pause: rank 1 is silent";
  })) << viewer.control().note;
  send_hello({});
  // Again and again: the hello comes over another connection than the viewer's command.
  EXPECT_TRUE(follow(viewer, store, [&] {
    if (viewer.control().pausing) return true;
    pause();
    return false;
  }));
  EXPECT_EQ(top.status().ranks_connected, 2U) << "a silent rank is still connected";
}

}  // namespace
}  // namespace shardscope::collector
