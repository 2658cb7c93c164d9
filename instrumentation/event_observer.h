// Another reader of a process's own events, beside the collector: on the publishing thread, so that the
// training threads pay nothing for it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "instrumentation/event.h"

namespace shardscope::instrumentation {

/// What the publisher sends, as it sends it: about in order of time (see [Note: holding back] in
/// time_merge.h), `ticks` in nanoseconds of the monotonic clock. `dropped`: events that were lost since the
/// call before.
using EventObserver = std::function<void(std::span<const Event> events, std::uint64_t dropped)>;

/// For publishers made from now on; {} for none. Called on their thread and never during their construction;
/// it must not emit.
void set_event_observer(EventObserver observer);

}  // namespace shardscope::instrumentation
