// The ranks that a node's collector lists as its own, as last received by the collector above. The node
// repeats its list: while it is the same, and none of its ranks has changed here, the ranks are not iterated
// over. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "instrumentation/wire.h"

namespace shardscope::collector {

struct RankListing {
  /// A node whose ranks are in order has fewer ranges; longer lists are not stored.
  static constexpr std::size_t kMostRanges = 256;

  std::vector<instrumentation::wire::RelayHello::Range> present, silent;
  std::uint64_t hello_sum = 0;  ///< checksum of the ranks' processes (hello_sum.h), as the node sent it
  std::uint64_t known = 0;      ///< the same for the ranks whose hello arrived over the node's connection
  double at_s = -1e300;         ///< when the node listed them last
  bool kept = false;            ///< the ranks in `known` point to `at_s` (RankSession::listed_s)
  bool changed = false;         ///< one of its ranks has changed here

  /// Whether the hello contains nothing new about its ranks.
  [[nodiscard]] bool settled(const instrumentation::wire::RelayHello& hello) const {
    return kept && !changed && hello.hello_sum == known && hello.hello_sum == hello_sum &&
           hello.present == present && hello.silent == silent;
  }
};

}  // namespace shardscope::collector
