#include "app/gui/views/panels.h"

namespace shardscope::gui {

void View::update(Context&) {}
void View::header(Context&, Rect&) {}

std::vector<Choice> View::choices(const AppState&) { return {}; }

View* ViewRegistry::find(std::string_view name) const {
  for (const auto& view : views_) {
    if (view->name() == name) return view.get();
  }
  return nullptr;
}

void register_views(ViewRegistry& registry) {
  registry.add(make_overview_view());
  registry.add(make_timeline_view());
  registry.add(make_partition_view());
  registry.add(make_memory_view());
  registry.add(make_communication_view());
  registry.add(make_critical_path_view());
  registry.add(make_stepper_view());
  registry.add(make_compare_view());
  registry.add(make_findings_view());
  registry.add(make_messages_view());
  registry.add(make_what_if_view());
  registry.add(make_buckets_view());
  registry.add(make_inspector_view());
  registry.add(make_find_view());
  registry.add(make_statistics_view());
  registry.add(make_flame_view());
  registry.add(make_lecture_view());
  registry.add(make_notes_view());
  registry.add(make_trace_info_view());
  registry.add(make_connection_view());
  registry.add(make_options_view());
  registry.add(make_hang_view());
}

}  // namespace shardscope::gui
