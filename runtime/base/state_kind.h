// The fp32 states that an optimizer keeps for the elements it updates: three, and with ZenFlow two more while
// a sum or a publication is pending.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shardscope::base {

enum class StateKind : std::uint8_t {
  master,
  momentum,
  variance,
  waiting_sum,  ///< gradients of the current interval, unscaled and clipped
  published     ///< parameters on the device, while they lack an update that the master weights have
};
inline constexpr std::size_t kStateKindCount = 5;
/// The states of every optimizer.
inline constexpr std::array kStateKinds{StateKind::master, StateKind::momentum, StateKind::variance};

}  // namespace shardscope::base
