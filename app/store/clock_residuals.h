// Bound on the error of a rank's times, by interval of the run, from the bound in each chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardscope::store {

class ClockResiduals {
 public:
  /// Most intervals; beyond it neighbours are merged with the larger bound, so that a result is never
  /// too small.
  static constexpr std::size_t kMost = 512;

  /// Adds the residual of a rank's next chunk, whose events lie in [begin, end] on the collector's clock.
  void add(std::int64_t begin_ns, std::int64_t end_ns, std::int64_t residual_ns);
  /// Largest residual of times in [begin, end], nanoseconds: of the chunks that overlap it and, where an edge
  /// lies between two chunks, of the next chunk on its other side, because a span may reach over the edge.
  /// nullopt before the first add().
  [[nodiscard]] std::optional<std::int64_t> largest(std::int64_t begin_ns, std::int64_t end_ns) const;

 private:
  struct ResidualInterval {
    std::int64_t begin_ns = 0, end_ns = 0, residual_ns = 0;
  };
  static void join(ResidualInterval& to, const ResidualInterval& next) noexcept;
  std::vector<ResidualInterval> intervals_;  ///< in the order of add()
  std::size_t each_ = 1, in_last_ = 0;       ///< chunks per interval, and in the last one
};

}  // namespace shardscope::store
