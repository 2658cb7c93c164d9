// A node's collector that is killed, and another that takes its place.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "app/store/recording.h"
#include "tests/app/collector/chain_parts.h"
#include "tests/child_process.h"

namespace shardscope::collector {
namespace {

namespace fs = std::filesystem;

/// A node's collector in a process of its own, to be killed. Made before this process has threads.
class NodeProcess {
 public:
  NodeProcess() {
    int down[2], up[2];
    if (pipe(down) != 0 || pipe(up) != 0) std::abort();
    to_ = down[1];
    from_ = up[0];
    child_ = fork_bound();
    if (child_ != 0) {
      close(down[0]);
      close(up[1]);
      return;
    }
    close(down[1]);
    char words[2][64] = {};
    if (read(down[0], words, sizeof words) != sizeof words) _exit(0);  // never begun
    CollectorOptions options = local(words[0]);
    options.upstream = words[1];
    Collector node(options);
    char endpoint[64] = {};
    std::snprintf(endpoint, sizeof endpoint, "%s", node.publish_endpoint().c_str());
    if (write(up[1], endpoint, sizeof endpoint) != sizeof endpoint) _exit(1);
    char more = 0;
    while (read(down[0], &more, 1) > 0) {
    }
    node.stop();
    _exit(0);
  }
  ~NodeProcess() {
    close(to_);
    close(from_);
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }
  NodeProcess(const NodeProcess&) = delete;
  NodeProcess& operator=(const NodeProcess&) = delete;
  std::string begin(const std::string& listen, const std::string& upstream) {
    char words[2][64] = {};
    std::snprintf(words[0], sizeof words[0], "%s", listen.c_str());
    std::snprintf(words[1], sizeof words[1], "%s", upstream.c_str());
    EXPECT_EQ(write(to_, words, sizeof words), static_cast<ssize_t>(sizeof words));
    char endpoint[64] = {};
    EXPECT_EQ(read(from_, endpoint, sizeof endpoint), static_cast<ssize_t>(sizeof endpoint));
    return endpoint;
  }
  void kill() {
    ::kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = -1;
  }

 private:
  pid_t child_ = -1;
  int to_ = -1, from_ = -1;
};

TEST(ChainKilled, AKilledNodeCollectorLeavesAGapAtMostAndTheRestIsWhole) {
  NodeProcess first, second;
  const std::string path = testing::TempDir() + "chain_killed_" + std::to_string(getpid()) + ".zscope";
  CollectorOptions options = local();
  options.record_path = path;
  std::uint32_t next = 0, lossless_from = 0;
  {
    Collector top(options);
    const std::string endpoint = first.begin("tcp://127.0.0.1:0", top.publish_endpoint());
    GateKeeper gates[2];
    std::array<std::unique_ptr<RankLink>, 2> links = {link_of(endpoint, 0, gates[0]),
                                                      link_of(endpoint, 1, gates[1])};
    const auto until = [&](const std::function<bool()>& condition) {
      return eventually(
          [&] {
            for (auto& link : links) link->pump();
            return condition();
          },
          30s);
    };
    const auto steps = [&](std::uint32_t count) {
      for (const std::uint32_t end = next + count; next < end; ++next) {
        for (auto& link : links) push(*link, next);
      }
    };
    steps(10);
    ASSERT_TRUE(until([&] { return top.status().events == 2 * 10 * kStepEvents; }));
    first.kill();
    steps(10);  // to none
    EXPECT_FALSE(top.status().finished) << "the run continues";
    ASSERT_EQ(second.begin(endpoint, top.publish_endpoint()), endpoint);
    // What was on its way to the killed one is lost with it. From when the second one passes on what both
    // ranks send, nothing is.
    const auto received = [&] {
      std::array<std::uint64_t, 2> events{};
      top.read([&](const store::Store& store) {
        for (const store::RankRow& row : store.ranks()) events.at(row.rank) = row.events;
      });
      return events;
    };
    const auto before = received();
    auto last = std::chrono::steady_clock::now();
    ASSERT_TRUE(until([&] {
      const auto now = std::chrono::steady_clock::now();
      if (now - last > 20ms) {
        steps(1);
        last = now;
      }
      const auto events = received();
      return events[0] > before[0] && events[1] > before[1];
    }));
    lossless_from = next;
    steps(10);
    for (auto& link : links) link->post(wire::Body(wire::Finish{0, monotonic_now_ns(), 0, "done"}));
    ASSERT_TRUE(until([&] { return links[0]->finish_received() && links[1]->finish_received(); }));
    ASSERT_TRUE(until([&] { return top.status().finished; }));
    for (const auto& [reason, count] : top.status().rejected_by) ADD_FAILURE() << count << " by " << reason;
    EXPECT_EQ(links[0]->shed() + links[1]->shed(), 0U);
  }
  store::RecordingInfo info;
  const store::Store store = store::open_recording(path, &info);
  EXPECT_TRUE(info.complete && info.problems.empty());
  ASSERT_EQ(store.ranks().size(), 2U);
  for (const store::RankRow& row : store.ranks()) {
    // A step was one message: what is not there was counted as lost, beside tables that were sent again.
    EXPECT_LE(row.events, next * kStepEvents);
    EXPECT_GE(row.events + row.lost_messages * kStepEvents, next * kStepEvents);
    EXPECT_EQ(row.exit_message, "done");
    std::uint64_t in_gaps = 0;
    for (const store::Gap& gap : store.gaps()) in_gaps += gap.rank == row.rank ? gap.messages : 0;
    EXPECT_EQ(in_gaps, row.lost_messages);
    if (row.events < next * kStepEvents) {
      EXPECT_GT(in_gaps, 0U) << "the gap is shown";
    }
  }
  std::vector<std::uint32_t> seen;
  for (const store::StepRow& step : store.steps()) seen.push_back(step.step);
  for (std::uint32_t step = 0; step < next; ++step) {
    if (step >= 10 && step < lossless_from) continue;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), step), 1) << step;
  }
  fs::remove(path);
}

}  // namespace
}  // namespace shardscope::collector
