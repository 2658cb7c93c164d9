// Names of our enumerations as DeepSpeed prints them.
#pragma once

#include "runtime/plan/scheduler.h"

namespace shardscope::plan {

/// ZeroParamStatus.name of deepspeed/runtime/zero/partition_parameters.py.
[[nodiscard]] constexpr const char* deepspeed_word(ParamStatus status) noexcept {
  switch (status) {
    case ParamStatus::available:
      return "AVAILABLE";
    case ParamStatus::in_flight:
      return "INFLIGHT";
    case ParamStatus::not_available:
      return "NOT_AVAILABLE";
  }
  return "";
}

}  // namespace shardscope::plan
