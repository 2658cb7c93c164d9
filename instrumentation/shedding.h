// The order in which ranks and collectors drop events when memory is short.
#pragma once

#include <cstdint>
#include <vector>

#include "instrumentation/event.h"

namespace shardscope::instrumentation {

/// Lowest importance first. Texts, tables, names and the end of a run are not events and are never shed.
enum class ShedClass : std::uint8_t { kernels, params, modules, phases, memory, steps };
inline constexpr std::uint8_t kShedClasses = 6;

[[nodiscard]] ShedClass shed_class(EventKind kind) noexcept;

/// Removes the events of one class from `events`, which are in order of time. Memory events with a pool's
/// watermark stay: its maximum, and its last event. Returns the number of removed events; widens `first_ns`
/// and `last_ns` to include their times.
std::uint32_t shed(std::vector<Event>& events, ShedClass victim, std::int64_t& first_ns,
                   std::int64_t& last_ns);

}  // namespace shardscope::instrumentation
