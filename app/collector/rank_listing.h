// The ranks that a node's collector lists as its own, as the collector above has taken them. The node sends
// its list again and again: while it is the same, and nothing of its ranks has changed here, no rank is gone
// over. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "instrumentation/wire.h"

namespace shardscope::collector {

struct RankListing {
  /// More ranges than this no node has whose ranks are in order; they are not kept.
  static constexpr std::size_t kMostRanges = 256;

  std::vector<instrumentation::wire::RelayHello::Range> present, silent;
  std::uint64_t greeted = 0;  ///< sum of who they are (greeted_sum.h), as the node sent it
  std::uint64_t known = 0;    ///< the same of those that have greeted here, over the node's connection
  double at_s = -1e300;       ///< when the node listed them last
  bool kept = false;          ///< the ranks that `known` is of refer to `at_s` (RankSession::listed_s)
  bool changed = false;       ///< something of one of its ranks has, here

  /// Whether the hello has nothing that is not known of its ranks.
  [[nodiscard]] bool settled(const instrumentation::wire::RelayHello& hello) const {
    return kept && !changed && hello.greeted == known && hello.greeted == greeted &&
           hello.present == present && hello.silent == silent;
  }
};

}  // namespace shardscope::collector
