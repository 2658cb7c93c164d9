// Figures of a run of which every measured step has a value, or the run has one: what `check` and sweeps
// compare.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "app/analysis/digest.h"
#include "app/analysis/summary.h"
#include "app/store/store.h"

namespace shardscope::analysis {

using ValuesByStep = std::map<std::uint32_t, double>;

struct StepFigure {
  const char* name;   ///< "step_ms": in options and JSON
  const char* title;  ///< "step time": in tables
  const char* unit;
  bool lower_is_better;
  /// The figure of each measured step, without the first of the run; or, where this is null,
  ValuesByStep (*steps)(const store::Store&, const Digest&);
  /// of the run.
  std::optional<double> (*one)(const Summary&);
};

/// step_ms, tokens_per_s, exposed_comm_ms, idle_ms, peak, elements.
[[nodiscard]] std::span<const StepFigure> step_figures();

}  // namespace shardscope::analysis
