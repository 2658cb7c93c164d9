// Which behaviour is implemented where the sources disagree (docs/zero.md, section D).
#pragma once

#include <cstdint>

namespace shardscope::plan {

enum class Compat : std::uint8_t {
  shardscope,  ///< our own choice
  deepspeed,   ///< DeepSpeed 0.19, wherever its behaviour can be observed
  notes,       ///< the published descriptions of ZeRO
};

}  // namespace shardscope::plan
