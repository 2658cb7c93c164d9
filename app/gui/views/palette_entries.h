// What the palette lists beside the names of the run: whatever menus and title lines can do.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/gui/model/recent.h"
#include "app/gui/views/context.h"
#include "app/gui/views/docks.h"
#include "app/gui/views/view.h"

namespace shardscope::gui {

struct PaletteEntry {
  std::string text, kind, hint;
  std::function<void()> act;  ///< holds references to what palette_entries() was given
};

/// Those that have the words of `typed`: commands that are available, panels to show and to close, what the
/// panels shown can be switched to, buttons of their title lines and of the top bar (UiState::toolbar),
/// layouts and recordings opened before.
[[nodiscard]] std::vector<PaletteEntry> palette_entries(Context& ctx, const ViewRegistry& views, Docks& docks,
                                                        const Recent& recent, std::string_view typed);

/// Deletes the layout that is shown, one of the user's own, and shows the first preset.
void delete_shown_layout(AppState& app, Docks& docks);

}  // namespace shardscope::gui
