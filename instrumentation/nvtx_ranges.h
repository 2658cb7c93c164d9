// NVTX ranges of what the host issues, in a domain of our own ("shardscope"), so that Nsight Systems and
// other NVTX tools show the names that Shardscope shows. They are host time: when the launches of a phase,
// module or collective were issued, not when the GPU ran them.
#pragma once

#include <string>
#include <vector>

#include "instrumentation/event.h"

namespace shardscope::instrumentation::nvtx {

/// Names of modules, by id. Once, before the first event; not needed without a tool.
void name_modules(std::vector<std::string> paths);

/// Opens or closes the calling thread's range of a phase, module or collective; other events are not NVTX's.
/// A branch where no tool is attached, and nothing at all in a build without NVTX. Ranges nest as a thread's
/// calls do: a begin within is closed with what it lies in, an end without its begin is ignored. Does not
/// throw.
void note(const Event& event) noexcept;

}  // namespace shardscope::instrumentation::nvtx
