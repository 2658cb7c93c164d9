// Messages from inside this library to the publisher of the process (without one they are dropped).
#pragma once

#include <string>

#include "instrumentation/event.h"

namespace shardscope::instrumentation {

/// From any thread; not for the hot path.
void post_message(Severity severity, const std::string& text);

}  // namespace shardscope::instrumentation
