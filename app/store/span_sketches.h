// Distributions of span durations over a whole run in bounded memory: kept when a run of weeks no longer has
// its events. Mergeable across runs and across parts of a run.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "app/store/pauses.h"
#include "app/store/quantile_sketch.h"
#include "app/store/store_rows.h"

namespace shardscope::store {

class RankState;

/// The spans of a sketch: those of a rank by lane, kind and code, or those of a module on all ranks.
struct SketchKey {
  std::uint32_t rank = ev::kNoId;  ///< kNoId: all
  ev::StreamId stream{};           ///< for a module: compute
  ev::EventKind kind{};            ///< the begin kind
  std::uint8_t code = 0;
  std::uint32_t module = ev::kNoId;  ///< kNoId: a rank's
  friend auto operator<=>(const SketchKey&, const SketchKey&) = default;
};

class SpanSketches {
 public:
  /// Modules beyond this number are only counted in their ranks' sketches.
  static constexpr std::uint32_t kMostModules = 1U << 14;

  /// Adds the spans that ended in `state`, without the rank's `pauses`.
  void add(std::uint32_t rank, const RankState& state, const Pauses& pauses);
  [[nodiscard]] const std::map<SketchKey, QuantileSketch>& all() const noexcept { return sketches_; }

 private:
  std::map<SketchKey, QuantileSketch> sketches_;
};

}  // namespace shardscope::store
