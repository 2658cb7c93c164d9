// A distribution of durations in buckets whose width grows with the value: quantiles within a relative error,
// for any range; sketches can be merged (as in DDSketch).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace shardscope::store {

class QuantileSketch {
 public:
  /// A quantile is within 2 % of a value with that rank.
  static constexpr double kError = 0.02;

  void add(std::int64_t ns, std::uint64_t times = 1);
  void merge(const QuantileSketch& other);
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::int64_t min_ns() const noexcept { return min_ns_; }  ///< exact
  [[nodiscard]] std::int64_t max_ns() const noexcept { return max_ns_; }  ///< exact
  /// q in [0, 1]; needs at least one value.
  [[nodiscard]] double quantile(double q) const;

  /// docs/recording.md, "What was not kept".
  [[nodiscard]] std::vector<std::byte> encode() const;
  /// Throws std::runtime_error on bytes that encode() does not write.
  [[nodiscard]] static QuantileSketch decode(std::span<const std::byte> bytes);

 private:
  struct Bucket {
    std::int32_t index = 0;  ///< values in (g^(index - 1), g^index], g = (1 + kError) / (1 - kError)
    std::uint64_t count = 0;
  };
  Bucket& bucket(std::int32_t index);

  std::vector<Bucket> buckets_;  ///< by index; of values above 0
  std::uint64_t zeros_ = 0, count_ = 0;
  std::int64_t min_ns_ = 0, max_ns_ = 0;
};

}  // namespace shardscope::store
