// Contents of param_status besides the status itself.
#pragma once

#include <cstdint>

namespace shardscope::plan {
enum class ParamStatus : std::uint8_t;
}

namespace shardscope::instrumentation {

/// Flag: this rank also holds its shard of a secondary copy of the parameter (hpZ, ZeRO++ section 3.2), which
/// the gathers of the backward read.
inline constexpr std::uint8_t kSecondaryHeld = 8;

/// The plan::ParamStatus of a status code or of store::ParamState::status.
[[nodiscard]] constexpr std::uint8_t status_of(std::uint8_t code) noexcept { return code & 7U; }
[[nodiscard]] constexpr bool secondary_held(std::uint8_t code) noexcept {
  return (code & kSecondaryHeld) != 0;
}

/// A parameter's status, and whether this rank also holds its shard of a secondary copy.
struct HeldStatus {
  std::uint8_t bits = 0;
  constexpr HeldStatus() = default;
  constexpr explicit HeldStatus(std::uint8_t from) noexcept : bits(from) {}
  constexpr HeldStatus(plan::ParamStatus status, bool secondary = false) noexcept
      : bits(static_cast<std::uint8_t>(static_cast<std::uint8_t>(status) |
                                       (secondary ? kSecondaryHeld : 0U))) {}
  [[nodiscard]] constexpr plan::ParamStatus status() const noexcept {
    return static_cast<plan::ParamStatus>(status_of(bits));
  }
  [[nodiscard]] constexpr bool secondary() const noexcept { return secondary_held(bits); }
  friend constexpr bool operator==(HeldStatus, HeldStatus) = default;
};

}  // namespace shardscope::instrumentation
