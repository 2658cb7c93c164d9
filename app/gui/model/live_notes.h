// Where notes on a live run are kept: its recording may be on another machine, or not exist.
#pragma once

#include <string>

namespace shardscope::gui {

/// $XDG_STATE_HOME/shardscope/notes/RUN.json, by default in ~/.local/state; empty without a home directory or
/// for a run without an id.
[[nodiscard]] std::string live_notes_path(const std::string& run_id);

}  // namespace shardscope::gui
