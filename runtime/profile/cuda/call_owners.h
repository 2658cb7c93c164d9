// Which span owns the calls by which a thread queues work on the GPU: CUPTI records it beside each call.
#pragma once

#include <cstdint>

#include "instrumentation/event.h"

namespace shardscope::profile::cuda {

/// Takes in an event of the calling thread, in the order of the host, and gives CUPTI the innermost open span
/// as the owner of what this thread queues from now on. False: the event is not wanted, because the driver's
/// records show the same.
[[nodiscard]] bool note_event(const instrumentation::Event& event);

/// A period of recording begins, or ends: outside of one nothing is said to CUPTI.
void begin_period() noexcept;
void end_period() noexcept;

}  // namespace shardscope::profile::cuda
