// Times per step of phases, modules, waits, kernels, parameters and collectives in two runs, with the
// interval of their difference: the rows of Compare's tables and their distributions. Definitions:
// metrics.md 2.9.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/compared_rows.h"
#include "app/analysis/paired_steps.h"
#include "app/gui/model/compared_digest.h"
#include "app/gui/model/session.h"

namespace shardscope::gui {

enum class SeriesOf : std::uint8_t { phase, module, collective, wait, kernel, parameter };

inline constexpr const char* kOutsideOfPhases = "outside of phases";
inline constexpr const char* kCollectiveTime = "time, with waiting";

/// One figure of each measured step of both runs.
struct ComparedSeries {
  SeriesOf of = SeriesOf::phase;
  std::string name;                 ///< of the phase, operation, wait or kernel; path of module or parameter
  std::string figure;               ///< pass of the module, or what of the others; empty for phases
  std::string unit;                 ///< "ms", "bytes", "GB/s"; empty: a number
  analysis::ValuesByStep a{}, b{};  ///< by number of the step; empty: the run does not have it
  analysis::PairedSteps pairs{};    ///< of steps with the same number; the interval has 95 %
  [[nodiscard]] std::optional<double> median_a() const;
  [[nodiscard]] std::optional<double> median_b() const;
  [[nodiscard]] double change() const { return median_b().value_or(0) - median_a().value_or(0); }
};

struct ComparedSteps {
  /// Phases in order of execution, modules by the size of their difference, collectives by operation.
  std::vector<ComparedSeries> rows;
  std::size_t steps_a = 0, steps_b = 0, both = 0;  ///< read of each run, and of these with the same number
};

/// Over the latest `most_steps` measured steps `within` a range that both runs have (without any: of each
/// run), of `rank`, or of each run's lowest (collectives always); of very large steps fewer. A phase or
/// module that does not run in a step takes 0 in it.
[[nodiscard]] ComparedSteps compared_series(const Session& a, const Session& b, SeriesOf of,
                                            std::size_t most_steps, const ComparedDigests& digests = {},
                                            std::optional<std::uint32_t> rank = {},
                                            analysis::StepBounds within = {});

/// "39 steps with the same number in both runs".
[[nodiscard]] std::string steps_text(const ComparedSteps& steps);

}  // namespace shardscope::gui
