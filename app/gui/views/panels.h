// What panels share with one another, and the makers that the registry calls.
#pragma once

#include <cstdint>
#include <memory>

#include "app/gui/model/app_state.h"
#include "app/gui/views/view.h"

namespace shardscope::gui {

/// How long a rank computed in the last completed step, and whether that is out of line.
struct RankPace {
  std::int64_t busy_ns = 0;
  bool straggler = false;
};
[[nodiscard]] RankPace rank_pace(const AppState& app, std::uint32_t rank);

[[nodiscard]] std::unique_ptr<View> make_overview_view();
[[nodiscard]] std::unique_ptr<View> make_timeline_view();
[[nodiscard]] std::unique_ptr<View> make_partition_view();
[[nodiscard]] std::unique_ptr<View> make_memory_view();
[[nodiscard]] std::unique_ptr<View> make_communication_view();
[[nodiscard]] std::unique_ptr<View> make_stepper_view();
[[nodiscard]] std::unique_ptr<View> make_compare_view();
[[nodiscard]] std::unique_ptr<View> make_findings_view();
[[nodiscard]] std::unique_ptr<View> make_inspector_view();

}  // namespace shardscope::gui
