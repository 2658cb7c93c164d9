// Distributions of how long spans took, over a whole run in little room: what is left of a run of weeks when
// its events are gone. Mergeable: of several runs, or of several recorders' parts, each sum is that of both.
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

/// Which spans a sketch is of: those of a rank by lane, kind and code, or those of a module on all ranks.
struct SketchKey {
  std::uint32_t rank = ev::kNoId;  ///< kNoId: all
  ev::StreamId stream{};           ///< of a module: compute
  ev::EventKind kind{};            ///< the begin kind
  std::uint8_t code = 0;
  std::uint32_t module = ev::kNoId;  ///< kNoId: of a rank
  friend auto operator<=>(const SketchKey&, const SketchKey&) = default;
};

class SpanSketches {
 public:
  /// Modules beyond this number are counted with their ranks only.
  static constexpr std::uint32_t kMostModules = 1U << 14;

  /// The spans that ended in the stretch that `state` holds; `pauses` of its rank are not counted.
  void add(std::uint32_t rank, const RankState& state, const Pauses& pauses);
  [[nodiscard]] const std::map<SketchKey, QuantileSketch>& all() const noexcept { return sketches_; }

 private:
  std::map<SketchKey, QuantileSketch> sketches_;
};

}  // namespace shardscope::store
