// Entries of the palette besides the names of the run: everything that menus and title lines offer.
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
  std::function<void()> act;  ///< references the arguments of palette_entries()
};

/// Entries that match `typed`: enabled commands, panels to show or close, options of the visible
/// panels, buttons of their title lines and of the top bar (UiState::toolbar), layouts and recent
/// recordings.
[[nodiscard]] std::vector<PaletteEntry> palette_entries(Context& ctx, const ViewRegistry& views, Docks& docks,
                                                        const Recent& recent, std::string_view typed);

/// Deletes the current layout, one of the user's own, and shows the first preset.
void delete_shown_layout(AppState& app, Docks& docks);

}  // namespace shardscope::gui
