// The connections between a node's collector and the top are cut, and both live on.
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "instrumentation/sockets.h"
#include "tests/app/collector/chain_parts.h"
#include "tests/app/collector/cut_connections.h"

namespace shardscope::collector {
namespace {

/// The node's ranks are reached over the next connection at once, not when one of them says something that
/// has not been passed on for long: until then none of their messages would be confirmed.
TEST(ChainCut, TheRanksOfANodeAreThereAgainWithItsNextConnection) {
  Collector top(local());
  Collector node(node_of(top.publish_endpoint()));
  GateKeeper gates[2];
  std::array<std::unique_ptr<RankLink>, 2> links = {link_of(node.publish_endpoint(), 0, gates[0]),
                                                    link_of(node.publish_endpoint(), 1, gates[1])};
  std::uint32_t next = 0;
  const auto steps_for = [&](std::chrono::milliseconds time) {
    for (const auto end = Clock::now() + time; Clock::now() < end; ++next) {
      for (auto& link : links) push(*link, next);
      std::this_thread::sleep_for(5ms);
    }
  };
  steps_for(500ms);
  ASSERT_EQ(top.status().ranks_connected, 2U);
  const Endpoints to = endpoints_of(top.publish_endpoint());
  ASSERT_EQ(cut_connections_to({to.publish, to.control}), 2);
  steps_for(1s);
  for (int i = 0; i < 30; ++i) {  // and receipts do not end that
    steps_for(50ms);
    EXPECT_EQ(top.status().ranks_connected, 2U);
  }
  const auto all = [&] {
    for (auto& link : links) link->pump();
    return top.status().events == 2 * next * kStepEvents;
  };
  EXPECT_TRUE(eventually(all)) << top.status().events << " of " << 2 * next * kStepEvents;
  EXPECT_EQ(node.status().shed_upstream, 0U);
  for (const auto& [reason, count] : top.status().rejected_by) ADD_FAILURE() << count << " by " << reason;
}

}  // namespace
}  // namespace shardscope::collector
