// Why a figure is missing from this run.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app/analysis/summary.h"
#include "app/store/store_rows.h"
#include "instrumentation/capability.h"

namespace shardscope::analysis {

namespace ev = shardscope::instrumentation;

/// `what` (plural) is recorded from detail `from` on; the run has events up to level `recorded` (nullopt:
/// none). "prefetches were not recorded, though the detail was params" if the level includes them, else
/// "prefetches are recorded from detail params on, and nothing above modules was recorded".
[[nodiscard]] std::string missing_reason(std::string_view what, ev::Detail from,
                                         std::optional<ev::Detail> recorded);

/// Why there is no figure about `what`, which needs a capability: the run cannot record it; or events are
/// missing in its steps: "events are missing in 12 of 12 steps: 300 dropped, 0 messages lost"; or the reason
/// above.
[[nodiscard]] std::string missing_reason(const Summary& summary, std::string_view what, ev::Detail from,
                                         ev::Capability capability);

/// Whether the run declares that it records this.
[[nodiscard]] bool records(const Summary& summary, ev::Capability capability);

/// Whether exposed communication is known: from collectives, or for an attached program on a GPU from the GPU
/// records, from which the partition of its time is computed.
[[nodiscard]] bool exposure_known(const Summary& summary);

/// Why no rank has measured model states.
[[nodiscard]] std::string missing_model_states(const Summary& summary);

/// "" if `steps` is `all`; else what a figure over `steps` of `all` steps covers and why: "over 3 of 12
/// steps; the others lack events".
[[nodiscard]] std::string coverage(const Summary& summary, std::uint32_t steps, std::uint32_t all);

}  // namespace shardscope::analysis
