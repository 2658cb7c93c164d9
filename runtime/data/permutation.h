// The order of one epoch: a permutation of [0, n) drawn from (seed, epoch), element by element and without
// storing it, so that shuffling a data set of any size needs no memory.
#pragma once

#include <cstdint>

namespace shardscope::data {

/// A balanced Feistel network over the smallest even power of two that holds n, walked until the value is
/// below n (Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains", cycle walking: at most 4 steps
/// on average). Six rounds of hash64.
class Permutation {
 public:
  Permutation(std::int64_t n, std::uint64_t seed, std::int64_t epoch) noexcept;
  /// Element `i` of the order, 0 <= i < n.
  [[nodiscard]] std::int64_t operator()(std::int64_t i) const noexcept;

 private:
  std::uint64_t n_;
  std::uint64_t key_;
  unsigned half_bits_ = 0;
  std::uint64_t half_mask_ = 0;
};

}  // namespace shardscope::data
