// A rank that sends nothing over a connection that lasts, and one whose connection is closed: stopped and
// ended are not the same, also where a node's collector passes the rank on.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>

#include "tests/app/collector/silences_seen.h"
#include "tests/app/collector/test_rank.h"
#include "tests/child_process.h"

namespace shardscope::collector {
namespace {

using store::RankEnd;

/// A rank in a process of its own, which runs until it is killed. Started before there are threads.
class Child {
 public:
  Child() {
    EXPECT_EQ(pipe(ends_.data()), 0);
    pid_ = fork_bound();
    if (pid_ == 0) _exit(run());
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(ends_[0]);
    close(ends_[1]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void connect(const std::string& endpoint) const {
    std::array<char, 128> text{};
    std::snprintf(text.data(), text.size(), "%s", endpoint.c_str());
    EXPECT_EQ(write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void signal(int number) const { kill(pid_, number); }

 private:
  [[nodiscard]] int run() const {
    std::array<char, 128> endpoint{};
    if (read(ends_[0], endpoint.data(), endpoint.size()) != static_cast<ssize_t>(endpoint.size())) return 2;
    Rank rank(endpoint.data(), 0, 1);
    for (std::uint32_t step = 0;; ++step) {
      rank.step(step);
      static_cast<void>(rank.until([] { return false; }, 50ms));
    }
  }
  std::array<int, 2> ends_{};
  pid_t pid_ = 0;
};

/// It is stopped, continued and killed.
void follow_signals(const Collector& shown, const Child& rank) {
  const auto is = [&](RankEnd::How how) {
    return eventually([&] { return end_of_only(shown).how == how; }, 60s);
  };
  const auto events = [&] {
    std::uint64_t count = 0;
    shown.read([&](const store::Store& store) { count = store.event_count(); });
    return count;
  };
  ASSERT_TRUE(eventually([&] { return events() > 3 * kEventsPerStep; }, 60s));
  rank.signal(SIGSTOP);
  ASSERT_TRUE(is(RankEnd::How::stopped));
  // These tables name no process whose state could be looked at.
  EXPECT_EQ(store::text_of(end_of_only(shown)), "rank 0 is silent, perhaps stopped");
  ASSERT_EQ(silences_in(shown).size(), 1U);
  EXPECT_TRUE(silences_in(shown)[0].lasts());
  // A collector above has not been sent the rank's name since it was silent for 2 s: 6 s later, were the rank
  // not listed again, it would be disconnected there.
  const auto since = Clock::now();
  EXPECT_TRUE(eventually(
      [&] { return end_of_only(shown).how != RankEnd::How::stopped || Clock::now() - since > 4s; }));
  EXPECT_EQ(end_of_only(shown).how, RankEnd::How::stopped);
  shown.read(
      [](const store::Store& store) { EXPECT_FALSE(store::first_failure(store)) << all_texts(store); });
  rank.signal(SIGCONT);
  ASSERT_TRUE(is(RankEnd::How::running));
  const std::vector<store::Silence> after = silences_in(shown);
  ASSERT_EQ(after.size(), 1U);
  EXPECT_FALSE(after[0].lasts());
  EXPECT_GT(after[0].end_ns - after[0].begin_ns, 8'000'000'000);
  rank.signal(SIGKILL);
  ASSERT_TRUE(is(RankEnd::How::silent));
}

TEST(Silence, ARankThatIsStoppedIsNotGone) {
  const Child rank;
  Collector collector(local());
  rank.connect(collector.publish_endpoint());
  follow_signals(collector, rank);
}

TEST(Silence, TheCollectorAboveKnowsItFromTheNodes) {
  const Child rank;
  Collector top(local());
  CollectorOptions options = local();
  options.upstream = top.publish_endpoint();
  Collector node(options);
  rank.connect(node.publish_endpoint());
  follow_signals(top, rank);
}

}  // namespace
}  // namespace shardscope::collector
