// Which processes the ranks of a node are, as one number: the node's collector says it of the ranks that it
// names, and the one above sums up the same of those whose hellos it has. Where the two are equal no hello
// has to be said again. Pure.
#pragma once

#include <cstdint>

#include "runtime/base/hash.h"

namespace shardscope::collector {

/// Of one rank; those of several are added up, in any order. `incarnation`: its process, as the collector
/// above gets it. Another process of the rank has another.
[[nodiscard]] constexpr std::uint64_t greeted_sum(std::uint32_t rank, std::uint64_t incarnation) noexcept {
  return base::hash64(base::hash64(rank) ^ incarnation);
}

}  // namespace shardscope::collector
