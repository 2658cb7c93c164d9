// The evicted part of a long live run (store.h, [Note: eviction]), as text.
#pragma once

#include <string>

#include "app/gui/model/session.h"

namespace shardscope::gui {

/// "details from 1.2 h on"; empty when nothing was evicted.
[[nodiscard]] std::string details_from(const store::Store& store);
/// "the last 49,152 steps": the steps that figures and findings cover; empty when they cover all.
[[nodiscard]] std::string steps_kept(const Session& run);
/// Explains what is kept of the evicted part, for a tooltip.
[[nodiscard]] std::string eviction_text(const store::Store& store);

}  // namespace shardscope::gui
