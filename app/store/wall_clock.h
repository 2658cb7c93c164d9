// When a recording's run was, by the recorder's wall clock: events have monotonic clocks only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shardscope::store {

class Database;

/// Notes in table meta by how much CLOCK_REALTIME is ahead of the collector's clock (CLOCK_MONOTONIC) now,
/// once; a wall clock that is set later is not followed. Not of a run that never was (a simulated one).
void write_wall_clock(Database& database);

/// That difference in nanoseconds: collector clock + this = Unix time. Nothing where the recording has none.
/// Throws as open_recording() does.
[[nodiscard]] std::optional<std::int64_t> unix_offset_ns(const std::string& path);

}  // namespace shardscope::store
