// Names of the plan's enumerations as written in exports and JSON. The C interface has the same values in the
// same order.
#pragma once

#include "runtime/plan/bucket.h"
#include "runtime/plan/prefetch_outcome.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::plan {

/// "unknown" for a value outside the enumeration, such as one from a later version.
[[nodiscard]] const char* name_of(FlushReason reason) noexcept;
[[nodiscard]] const char* name_of(TraceMode mode) noexcept;
[[nodiscard]] const char* name_of(PrefetchStop stop) noexcept;
[[nodiscard]] const char* name_of(KeepReason reason) noexcept;
[[nodiscard]] const char* name_of(InvalidationCause cause) noexcept;
[[nodiscard]] const char* name_of(PrefetchOutcome outcome) noexcept;

}  // namespace shardscope::plan
