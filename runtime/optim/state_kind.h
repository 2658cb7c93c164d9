// The three ranges of fp32 that an optimizer keeps of every element it updates.
#pragma once

#include <array>
#include <cstdint>

namespace shardscope::optim {

enum class StateKind : std::uint8_t { master, momentum, variance };
inline constexpr std::array kStateKinds{StateKind::master, StateKind::momentum, StateKind::variance};

}  // namespace shardscope::optim
