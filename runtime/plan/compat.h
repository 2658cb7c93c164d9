// Whose behaviour is followed where the sources disagree (docs/zero.md, section D).
#pragma once

#include <cstdint>

namespace shardscope::plan {

enum class Compat : std::uint8_t {
  shardscope,  ///< the better behaviour
  deepspeed,   ///< DeepSpeed 0.19, item by item where it can be observed
  notes,       ///< the published descriptions of ZeRO
};

}  // namespace shardscope::plan
