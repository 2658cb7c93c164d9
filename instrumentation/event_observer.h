// Observer of a process's own events, beside the collector: called on the publishing thread, so that it costs
// the training threads nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "instrumentation/event.h"

namespace shardscope::instrumentation {

/// Receives each batch as the publisher sends it: roughly in order of time (see [Note: holding back] in
/// time_merge.h), `ticks` in nanoseconds of the monotonic clock. `dropped`: events lost since the previous
/// call.
using EventObserver = std::function<void(std::span<const Event> events, std::uint64_t dropped)>;

/// Used by publishers created from now on; {} for none. Called on their thread, never during their
/// construction; it must not emit.
void set_event_observer(EventObserver observer);

}  // namespace shardscope::instrumentation
