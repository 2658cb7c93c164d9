// Which processes the ranks of a node are, as one number: the node's collector sends it for the ranks that it
// lists, and the collector above computes the same of those whose hellos it has. Where the two are equal no
// hello has to be repeated. Pure.
#pragma once

#include <cstdint>

namespace shardscope::collector {

/// Of one rank; those of several are added up, in any order. `incarnation`: its process, as the collector
/// above gets it. Another process of the rank has another.
[[nodiscard]] constexpr std::uint64_t greeted_sum(std::uint32_t rank, std::uint64_t incarnation) noexcept {
  // Ranks apart by an odd number, then splitmix64's finaliser: sums of two nodes are alike by chance alone.
  std::uint64_t z = incarnation + (std::uint64_t{rank} + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

}  // namespace shardscope::collector
