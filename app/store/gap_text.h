// Describes what is missing in a gap and where it was lost.
#pragma once

#include <string>

#include "app/store/store_rows.h"

namespace shardscope::store {

/// "20 events dropped by the rank, 100 shed by a collector", "1 message lost between collectors", "300 events
/// that the recording holds damaged", ...
[[nodiscard]] std::string what_is_missing(const Gap& gap);

}  // namespace shardscope::store
