// The connection to a live run as text: endpoint, lag, lost data, who controls the run.
#pragma once

#include <string>

#include "app/gui/model/table.h"

namespace shardscope::gui {

struct AppState;
class Session;

/// "live", "connection lost", "disconnected"; "recording" for a file.
[[nodiscard]] std::string link_text(const Session& run);
/// Columns: what, value, note.
[[nodiscard]] Table connection_table(const AppState& app);

}  // namespace shardscope::gui
