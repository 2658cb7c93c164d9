// Encoding of a run's static tables in a recording (docs/recording.md, table `tables`).
#pragma once

#include <cstddef>
#include <vector>

#include "instrumentation/emitter.h"

namespace shardscope::store {

[[nodiscard]] std::vector<std::byte> encode_tables(const instrumentation::RunTables& tables);
/// Throws std::runtime_error: truncated, followed by other bytes, another version.
[[nodiscard]] instrumentation::RunTables decode_tables(const std::byte* data, std::size_t bytes);

}  // namespace shardscope::store
