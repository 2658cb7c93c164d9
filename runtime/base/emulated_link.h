// An emulated network link over shared memory: set by a configuration, applied by a communicator.
#pragma once

namespace shardscope::base {

/// Delays each collective to at least the time a link would take: latency + bytes / rate, bytes being the
/// traffic of one rank (busbw convention: algorithm bytes times the factor of metrics.md 2.3).
struct EmulatedLink {
  double gbps = 0;  ///< 10^9 bits per second per rank; 0: off
  double latency_us = 0;
  /// Among ranks of one node only; below 0: the same as between nodes, 0: off.
  double intra_gbps = -1;
  double intra_latency_us = -1;

  /// The link of a communicator whose ranks are all on one node.
  [[nodiscard]] EmulatedLink within_node() const noexcept {
    return {intra_gbps < 0 ? gbps : intra_gbps, intra_latency_us < 0 ? latency_us : intra_latency_us, -1, -1};
  }
};

}  // namespace shardscope::base
