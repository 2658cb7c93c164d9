// Sampled counters as curves on rows of the timeline: a program's own, processors in use, the GPU's power and
// clocks (app/analysis/counters.h). The other curves: row_curves.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/gui/model/app_state.h"
#include "app/gui/model/row_curves.h"

namespace shardscope::gui {

struct SampledCounter {
  std::string name, unit;
  bool rate = false;  ///< values are means over intervals, not states
  bool own = false;   ///< of the program
};
/// Those of all ranks, the library's first; each once, by name.
[[nodiscard]] std::vector<SampledCounter> sampled_counters(const AppState& app);
/// The one of this name on a rank, for each row of a frame; nullopt: it has none.
[[nodiscard]] std::optional<SampledCounter> sampled_counter(const AppState& app, std::uint32_t rank,
                                                            const std::string& name);
/// Its description, for a menu and a tooltip.
[[nodiscard]] std::string meaning_text(const SampledCounter& counter);
/// "211 W"
[[nodiscard]] std::string value_text(const SampledCounter& counter, double value);

/// The curve of a rank in `count` columns of `range`.
[[nodiscard]] RowCurve sampled_curve(const AppState& app, const std::string& name, std::uint32_t rank,
                                     TimeRange range, std::size_t count);
/// Tooltip at a time.
[[nodiscard]] std::string tip_of(const SampledCounter& counter, std::uint32_t rank, const RowCurve& curve,
                                 TimeRange range, std::int64_t at_ns);

}  // namespace shardscope::gui
