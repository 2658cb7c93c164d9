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

/// `what`, a plural, are emitted from detail `from` on; of the run that is shown events up to `recorded` are
/// there (nothing: none). "prefetches were not recorded, though the detail was params" where the
/// level would have them, else "prefetches are recorded from detail params on, and nothing above modules was
/// recorded".
[[nodiscard]] std::string missing_reason(std::string_view what, ev::Detail from,
                                         std::optional<ev::Detail> recorded);

/// Why there is no figure about `what`, which takes a capability: the run says that it cannot record it, else
/// because events of the steps that it would be of are missing, else as above. "events are missing in 12 of
/// 12 steps: 300 dropped, 0 messages lost".
[[nodiscard]] std::string missing_reason(const Summary& summary, std::string_view what, ev::Detail from,
                                         ev::Capability capability);

/// Whether the run says that it records this.
[[nodiscard]] bool records(const Summary& summary, ev::Capability capability);

/// Whether communication beside computation is known: by collectives, or where a program attached to a run on
/// a GPU by that GPU's records, of which the partition of such a run's time is.
[[nodiscard]] bool exposure_known(const Summary& summary);

/// Why the model states were measured on no rank.
[[nodiscard]] std::string missing_model_states(const Summary& summary);

/// "", or where events are missing or the detail was changed: "over 3 of 12 steps; of the others events are
/// missing" for a figure that is of `steps` of `all`.
[[nodiscard]] std::string coverage(const Summary& summary, std::uint32_t steps, std::uint32_t all);

}  // namespace shardscope::analysis
