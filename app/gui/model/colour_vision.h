// Simulation of colour blindness, for pictures (--vision) and for the test that all palette colours stay
// distinguishable.
#pragma once

#include "app/gui/model/palette.h"

namespace shardscope::gui {

enum class Vision : std::uint8_t {
  all,
  no_red,    ///< protanopia
  no_green,  ///< deuteranopia
  no_blue,   ///< tritanopia
};

/// Machado, Oliveira and Fernandes 2009 (IEEE TVCG 15:6), severity 1, in linear RGB.
[[nodiscard]] Rgb seen(Rgb color, Vision vision) noexcept;

}  // namespace shardscope::gui
