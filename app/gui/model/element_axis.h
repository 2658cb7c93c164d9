// The horizontal axis of the partition map: every parameter's elements in parameter order, true to scale
// or with small parameters widened, and the part of each that a rank owns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "instrumentation/emitter.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

enum class ElementScale : std::uint8_t {
  linear,      ///< one pixel holds the same number of elements everywhere
  compressed,  ///< width grows with the square root of a parameter's size, so biases are seen
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

  /// Position of an element of a parameter on [0, 1].
  [[nodiscard]] double position(std::uint32_t param, std::int64_t element) const noexcept;
  [[nodiscard]] double begin(std::uint32_t param) const noexcept { return starts_[param]; }
  [[nodiscard]] double end(std::uint32_t param) const noexcept { return starts_[param + 1]; }
  /// The parameter at a position, kNoId when there is none.
  [[nodiscard]] std::uint32_t param_at(double position) const noexcept;
  [[nodiscard]] std::int64_t element_at(std::uint32_t param, double position) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return starts_.empty() ? 0 : starts_.size() - 1; }
  /// What `rank` owns of `param`; usually one slice, none when it owns nothing of it.
  [[nodiscard]] std::span<const OwnedSlice> owned(std::uint32_t rank, std::uint32_t param) const noexcept;
  [[nodiscard]] std::int64_t owned_elems(std::uint32_t rank) const noexcept;
  [[nodiscard]] std::int64_t padding_elems(std::uint32_t rank) const noexcept;

 private:
  std::uint32_t world_ = 0;
  std::vector<double> starts_;            ///< by parameter, plus the end
  std::vector<std::int64_t> elems_;       ///< by parameter
  std::vector<std::size_t> slice_begin_;  ///< by rank * params + param, plus the end
  std::vector<OwnedSlice> slices_;
};

/// The stretch of [0, 1] on show; zooms and pans like the time axis.
struct UnitRange {
  double begin = 0, end = 1;
  void zoom(double factor, double anchor) noexcept;
  void pan(double delta) noexcept;
};

}  // namespace shardscope::gui
