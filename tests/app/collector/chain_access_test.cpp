// A chain of collectors and what reaches its ranks: keys on each hop, commands and pauses through a node.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>

#include "tests/app/collector/chain_parts.h"

namespace shardscope::collector {
namespace {

namespace fs = std::filesystem;

/// Keys of one hop in a folder: the collector's, and one of a publisher.
class Keys {
 public:
  explicit Keys(const std::string& name)
      : folder_(testing::TempDir() + "chain_keys_" + name + std::to_string(getpid())) {
    fs::create_directories(folder_);
    fs::permissions(folder_, fs::perms::owner_all);
    KeyFile collector;
    collector.role = KeyRole::collector;
    collector.pair = make_key_pair();
    KeyFile publish;
    publish.role = KeyRole::publish;
    publish.pair = make_key_pair();
    publish.collector = collector.pair.public_key;
    collector.allowed.push_back({KeyRole::publish, publish.pair.public_key});
    write_key_file(folder_ + "/publish.key", publish);
    write_key_file(folder_ + "/collector.key", collector);
  }
  ~Keys() { fs::remove_all(folder_); }
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::string publish() const { return folder_ + "/publish.key"; }

 private:
  std::string folder_;
};

TEST(ChainAccess, EachHopHasItsOwnKeys) {
  const Keys outer("top"), inner("node");
  CollectorOptions top_options = local();
  top_options.keys = outer.folder();
  Collector top(top_options);
  CollectorOptions options = node_of(top.publish_endpoint());
  options.keys = inner.folder();
  options.upstream_key = outer.publish();
  Collector node(options);
  GateKeeper gates[2];
  auto link = link_of(node.publish_endpoint(), 0, gates[0], inner.publish());
  // The key of the other hop opens neither door.
  auto stranger = link_of(node.publish_endpoint(), 1, gates[1], outer.publish());
  options.upstream_key = inner.publish();
  options.keys = inner.folder();
  Collector false_node(options);
  push(*link, 0);
  push(*stranger, 0);
  EXPECT_TRUE(eventually([&] {
    link->pump();
    stranger->pump();
    return top.status().events == kStepEvents && top.status().refused > 0 && node.status().refused > 0;
  })) << top.status().events
      << " " << top.status().refused << " " << node.status().refused;
  EXPECT_FALSE(stranger->collector_alive());
  EXPECT_EQ(node.status().events, kStepEvents);
  EXPECT_EQ(false_node.status().events, 0U);
}

TEST(ChainAccess, APauseAStepAndAResumeReachEveryRankThroughItsNode) {
  Collector top(local());
  Collector left(node_of(top.publish_endpoint())), right(node_of(top.publish_endpoint()));
  std::array<GateKeeper, 2> gates;
  std::array<std::unique_ptr<RankLink>, 2> links = {link_of(left.publish_endpoint(), 0, gates[0]),
                                                    link_of(right.publish_endpoint(), 1, gates[1])};
  std::atomic<bool> end{false};
  std::array<std::thread, 2> ranks;
  std::array<std::atomic<std::uint32_t>, 2> steps{};
  std::atomic<std::uint32_t> met{0};  // the ranks go through each step together, as collectives make them
  for (std::size_t r = 0; r < 2; ++r) {
    ranks[r] = std::thread([&, r] {
      for (std::uint32_t step = 0; !end; ++step) {
        gates[r].pass(GateKind::step, step);
        steps[r] = step;
        for (std::uint32_t module = 0; module < 3; ++module) gates[r].pass(GateKind::pre_forward, module);
        ++met;
        while (met < 2 * (step + 1) && !end) std::this_thread::yield();
      }
    });
  }
  Viewer viewer(top.view_endpoint());
  store::Store store;
  const auto until = [&](const std::function<bool()>& condition) {
    return eventually([&] {
      for (auto& link : links) link->pump();
      viewer.poll(store, 2ms);
      return condition();
    });
  };
  EXPECT_TRUE(until([&] { return top.status().ranks_connected == 2; }));
  viewer.send({.kind = Command::Kind::pause, .rule = {}, .detail = {}});
  EXPECT_TRUE(until([&] { return viewer.control().paused; })) << viewer.control().note;
  const std::uint64_t first = gates[0].passed();
  EXPECT_EQ(first, gates[1].passed());
  EXPECT_TRUE(gates[0].position().holding && gates[1].position().holding);
  // To the next step: every rank at the same gate again.
  viewer.send({.kind = Command::Kind::resume, .rule = {StopRule::Kind::step, 0, 0}, .detail = {}});
  EXPECT_TRUE(until([&] { return viewer.control().paused && viewer.control().gate > first; }))
      << viewer.control().note;
  EXPECT_EQ(gates[0].passed(), gates[1].passed());
  EXPECT_EQ(gates[0].position().kind, GateKind::step);
  const std::uint32_t at = steps[0];
  viewer.send({.kind = Command::Kind::resume, .rule = {}, .detail = {}});
  EXPECT_TRUE(until([&] { return steps[0] > at + 5 && steps[1] > at + 5; })) << "both go on";
  end = true;
  for (GateKeeper& gate : gates) gate.release_for_shutdown();
  for (std::thread& rank : ranks) rank.join();
}

TEST(ChainAccess, ACommandReachesARankThatHasPublishedNothingYet) {
  Collector top(local());
  Collector node(node_of(top.publish_endpoint()));
  Raw rank(node.publish_endpoint(), 7);
  Viewer viewer(top.view_endpoint());
  store::Store store;
  ASSERT_TRUE(follow(viewer, store, [&] {
    rank.control(wire::Hello{2, 0, "elsewhere", clock_identity(), false});
    return top.status().ranks_connected == 1;
  }));
  viewer.send({.kind = Command::Kind::set_detail, .rule = {}, .detail = Detail::phases});
  EXPECT_TRUE(follow(viewer, store, [&] { return rank.was_sent(wire::RankCommand::Kind::set_detail); }));
}

}  // namespace
}  // namespace shardscope::collector
