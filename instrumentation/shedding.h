// What goes first when there is no room for everything: the order in which ranks and collectors shed events.
#pragma once

#include <cstdint>
#include <vector>

#include "instrumentation/event.h"

namespace shardscope::instrumentation {

/// Lowest detail first. Texts, tables, names and the end of a run are no events and are never shed.
enum class ShedClass : std::uint8_t { kernels, params, modules, phases, memory, steps };
inline constexpr std::uint8_t kShedClasses = 6;

[[nodiscard]] ShedClass shed_class(EventKind kind) noexcept;

/// Removes the events of one class from `events`, in order of time. Of memory events those stay that carry a
/// pool's watermark: where it holds most, and the last of the stretch. Returns how many went; `first_ns` and
/// `last_ns` are widened to their times.
std::uint32_t shed(std::vector<Event>& events, ShedClass victim, std::int64_t& first_ns,
                   std::int64_t& last_ns);

}  // namespace shardscope::instrumentation
