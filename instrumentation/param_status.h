// What the status of a param_status event says, the low 4 bits of its code.
#pragma once

#include <cstdint>

namespace shardscope::instrumentation {

/// Beside the status: this rank also holds its part of a secondary copy of the parameter (hpZ, ZeRO++ section
/// 3.2), from which the gathers of the backward read.
inline constexpr std::uint8_t kSecondaryHeld = 8;

/// plan::ParamStatus. Of a StatusCode or of store::ParamState::status.
[[nodiscard]] constexpr std::uint8_t status_of(std::uint8_t code) noexcept { return code & 7U; }
[[nodiscard]] constexpr bool secondary_held(std::uint8_t code) noexcept {
  return (code & kSecondaryHeld) != 0;
}

}  // namespace shardscope::instrumentation
