// What a step's update did, for the Stepper: clipping, ZenFlow's choices and votes, LoCo's resets.
#pragma once

#include <optional>

#include "app/gui/model/stepping.h"

namespace shardscope::gui {

/// Nothing for events that are not of the update.
[[nodiscard]] std::optional<Deed> update_deed(const store::Store& store, const ev::Event& event);

}  // namespace shardscope::gui
