// Horizontal axis of the partition map: the elements of all parameters in parameter order, to scale or with
// small parameters widened, and the slice of each parameter that a rank owns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "instrumentation/emitter.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

enum class ElementScale : std::uint8_t {
  linear,      ///< one pixel covers the same number of elements everywhere
  compressed,  ///< width proportional to the square root of the size: keeps biases visible
};

struct OwnedSlice {
  std::int64_t param_offset = 0;  ///< first element within the parameter
  std::int64_t elems = 0;
  std::int64_t padding_elems = 0;
};

class ElementAxis {
 public:
  ElementAxis() = default;
  ElementAxis(const ev::RunTables& tables, ElementScale scale);

  /// Maps an element of a parameter to [0, 1].
  [[nodiscard]] double position(std::uint32_t param, std::int64_t element) const noexcept;
  [[nodiscard]] double begin(std::uint32_t param) const noexcept { return starts_[param]; }
  [[nodiscard]] double end(std::uint32_t param) const noexcept { return starts_[param + 1]; }
  /// The parameter at a position, or kNoId.
  [[nodiscard]] std::uint32_t param_at(double position) const noexcept;
  [[nodiscard]] std::int64_t element_at(std::uint32_t param, double position) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return starts_.empty() ? 0 : starts_.size() - 1; }
  /// Slices of `param` that `rank` owns: usually one, empty if none.
  [[nodiscard]] std::span<const OwnedSlice> owned(std::uint32_t rank, std::uint32_t param) const noexcept;
  [[nodiscard]] std::int64_t owned_elems(std::uint32_t rank) const noexcept;
  [[nodiscard]] std::int64_t padding_elems(std::uint32_t rank) const noexcept;

 private:
  std::uint32_t world_ = 0;
  std::vector<double> starts_;            ///< by parameter, and the end of the last
  std::vector<std::int64_t> elems_;       ///< by parameter
  std::vector<std::size_t> slice_begin_;  ///< by rank * params + param, and the end of the last
  std::vector<OwnedSlice> slices_;
};

/// Visible part of [0, 1]; zooms and pans like the time axis.
struct UnitRange {
  double begin = 0, end = 1;
  void zoom(double factor, double anchor) noexcept;
  void pan(double delta) noexcept;
};

}  // namespace shardscope::gui
