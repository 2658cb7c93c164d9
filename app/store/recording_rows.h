// Checksums of the rows that a reader uses. A row's checksum covers its values, not SQLite's bytes, so that
// it stays valid after VACUUM or a copy by SQL.
#pragma once

#include <cstdint>
#include <string>

#include "app/store/store_rows.h"

namespace shardscope::store {

[[nodiscard]] std::uint32_t row_crc(const RankRow& row);
/// `at_collector_ns`: the time as stored, on the collector's clock.
[[nodiscard]] std::uint32_t row_crc(const Message& message, std::int64_t at_collector_ns);
[[nodiscard]] std::uint32_t row_crc(std::uint32_t rank, std::uint32_t id, const std::string& name);

}  // namespace shardscope::store
