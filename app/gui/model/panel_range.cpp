#include "app/gui/model/panel_range.h"

#include "app/gui/model/app_state.h"
#include "app/gui/model/format.h"

namespace shardscope::gui {

PanelRange panel_range(const AppState& app) {
  return {app.measured.value_or(app.time.range()), app.measured.has_value()};
}

std::string text_of(const PanelRange& shown) {
  return (shown.measured ? "measured range, " : "range shown, ") + duration(shown.range.length()).text();
}

}  // namespace shardscope::gui
