// Figures with one value per measured step or one per run, which `check` and sweeps compare.
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
  /// The figure of each measured step, without the first of the run; null for a figure of the run.
  ValuesByStep (*steps)(const store::Store&, const Digest&);
  /// The figure of the run, if `steps` is null.
  std::optional<double> (*one)(const Summary&);
};

/// step_ms, tokens_per_s, exposed_comm_ms, idle_ms, peak, elements.
[[nodiscard]] std::span<const StepFigure> step_figures();

}  // namespace shardscope::analysis
