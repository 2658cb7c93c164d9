// Wall clock time of a recording: its events only have monotonic clocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shardscope::store {

class Database;

/// Stores in table meta by how much CLOCK_REALTIME is ahead of the collector's clock (CLOCK_MONOTONIC) now,
/// once; later changes of the wall clock are ignored. Not called for simulated runs.
void write_wall_clock(Database& database);

/// The stored difference in nanoseconds: collector clock + this = Unix time. nullopt where it has none.
/// Throws as open_recording() does.
[[nodiscard]] std::optional<std::int64_t> unix_offset_ns(const std::string& path);

}  // namespace shardscope::store
