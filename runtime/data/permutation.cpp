#include "runtime/data/permutation.h"

#include <bit>

#include "runtime/base/hash.h"

namespace shardscope::data {

Permutation::Permutation(std::int64_t n, std::uint64_t seed, std::int64_t epoch) noexcept
    : n_(static_cast<std::uint64_t>(n)),
      key_(base::hash64(base::hash64(seed) + static_cast<std::uint64_t>(epoch))) {
  const auto bits = static_cast<unsigned>(std::bit_width(n_ > 1 ? n_ - 1 : 1));
  half_bits_ = (bits + 1) / 2;
  half_mask_ = (std::uint64_t{1} << half_bits_) - 1;
}

std::int64_t Permutation::operator()(std::int64_t i) const noexcept {
  constexpr std::uint64_t kRounds = 6;
  auto value = static_cast<std::uint64_t>(i);
  do {
    std::uint64_t left = value >> half_bits_;
    std::uint64_t right = value & half_mask_;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const std::uint64_t mixed =
          left ^ (base::hash64(key_ + base::hash64(right * kRounds + round)) & half_mask_);
      left = right;
      right = mixed;
    }
    value = (left << half_bits_) | right;
  } while (value >= n_);
  return static_cast<std::int64_t>(value);
}

}  // namespace shardscope::data
