// Checksum of the processes of a node's ranks: the node's collector sends it for the ranks that it lists, and
// the collector above computes it for the ranks whose hellos it has received. Where the two are equal no
// hello has to be repeated. Pure.
#pragma once

#include <cstdint>

namespace shardscope::collector {

/// Term of one rank; the checksum is the sum over ranks, in any order. `incarnation`: identifies the rank's
/// process, as sent to the collector above; a restarted rank has another.
[[nodiscard]] constexpr std::uint64_t hello_sum(std::uint32_t rank, std::uint64_t incarnation) noexcept {
  // Odd multiple by rank, then splitmix64's finaliser: different sets have equal sums by chance only.
  std::uint64_t z = incarnation + (std::uint64_t{rank} + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

}  // namespace shardscope::collector
