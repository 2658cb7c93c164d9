// The names of enumerators, as exports and summary tables spell them; "unknown" outside the enum.
#pragma once

#include "instrumentation/event.h"

namespace shardscope::store {

using instrumentation::name_of;
/// plan::ParamStatus by its number.
[[nodiscard]] const char* status_name(unsigned status) noexcept;

}  // namespace shardscope::store
