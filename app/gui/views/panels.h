// Factory functions of the panels, called by the registry.
#pragma once

#include <memory>

#include "app/gui/views/view.h"

namespace shardscope::gui {

[[nodiscard]] std::unique_ptr<View> make_overview_view();
[[nodiscard]] std::unique_ptr<View> make_timeline_view();
[[nodiscard]] std::unique_ptr<View> make_partition_view();
[[nodiscard]] std::unique_ptr<View> make_memory_view();
[[nodiscard]] std::unique_ptr<View> make_communication_view();
[[nodiscard]] std::unique_ptr<View> make_critical_path_view();
[[nodiscard]] std::unique_ptr<View> make_stepper_view();
[[nodiscard]] std::unique_ptr<View> make_compare_view();
[[nodiscard]] std::unique_ptr<View> make_findings_view();
[[nodiscard]] std::unique_ptr<View> make_inspector_view();
[[nodiscard]] std::unique_ptr<View> make_messages_view();
[[nodiscard]] std::unique_ptr<View> make_what_if_view();
[[nodiscard]] std::unique_ptr<View> make_buckets_view();
[[nodiscard]] std::unique_ptr<View> make_find_view();
[[nodiscard]] std::unique_ptr<View> make_statistics_view();
[[nodiscard]] std::unique_ptr<View> make_flame_view();
[[nodiscard]] std::unique_ptr<View> make_lecture_view();
[[nodiscard]] std::unique_ptr<View> make_notes_view();
[[nodiscard]] std::unique_ptr<View> make_trace_info_view();
[[nodiscard]] std::unique_ptr<View> make_connection_view();
[[nodiscard]] std::unique_ptr<View> make_options_view();
[[nodiscard]] std::unique_ptr<View> make_hang_view();

}  // namespace shardscope::gui
