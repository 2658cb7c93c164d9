// The span that owns the calls by which a thread queues GPU work: CUPTI records it with each call.
#pragma once

#include <cstdint>

#include "instrumentation/event.h"

namespace shardscope::profile::cuda {

/// Processes an event of the calling thread, in the order of the host, and sets the innermost open span as
/// CUPTI's owner of work that this thread queues from now on. Returns false if the event must not be emitted,
/// because the driver's records contain it.
[[nodiscard]] bool note_event(const instrumentation::Event& event);

/// Begin and end of a period of recording: CUPTI is not called outside of one.
void begin_period() noexcept;
void end_period() noexcept;

}  // namespace shardscope::profile::cuda
