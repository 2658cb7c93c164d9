// The ranges of fp32 that an optimizer keeps of the elements it updates: three of every one, and ZenFlow two
// more while something waits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shardscope::base {

enum class StateKind : std::uint8_t {
  master,
  momentum,
  variance,
  waiting_sum,  ///< gradients of the interval that runs, unscaled and clipped
  published     ///< parameters as the device has them, while they lack an update that the master weights have
};
inline constexpr std::size_t kStateKindCount = 5;
/// What every optimizer keeps.
inline constexpr std::array kStateKinds{StateKind::master, StateKind::momentum, StateKind::variance};

}  // namespace shardscope::base
