// What of a long live run is not kept in full (store.h, [Note: eviction]), in the words of the window.
#pragma once

#include <string>

#include "app/gui/model/session.h"

namespace shardscope::gui {

/// "details from 1.2 h on"; empty while everything is kept.
[[nodiscard]] std::string details_from(const store::Store& store);
/// "the last 49,152 steps": what figures and findings are of; empty while they are of every step.
[[nodiscard]] std::string steps_kept(const Session& run);
/// What became of the rest, for a tool tip.
[[nodiscard]] std::string eviction_text(const store::Store& store);

}  // namespace shardscope::gui
