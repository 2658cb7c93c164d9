// Why a figure is missing, in words that are true of this run.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app/store/store.h"

namespace shardscope::analysis {

namespace ev = shardscope::instrumentation;

/// `what`, a plural, are emitted from detail `from` on; of the run that is shown events up to `recorded` are
/// there (nothing: none). "this run tells no prefetches, though it was recorded at detail params" where the
/// level would have them, else "prefetches are recorded from detail params on, and nothing above modules was
/// recorded".
[[nodiscard]] std::string not_told(std::string_view what, ev::Detail from,
                                   std::optional<ev::Detail> recorded);

}  // namespace shardscope::analysis
