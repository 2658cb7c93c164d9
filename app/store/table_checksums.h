// Checksums of what only SQL users read, and of which rows there are: nothing else would notice a damaged
// number there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/store/database.h"

namespace shardscope::store {

/// CRC-32C of the rows a query gives, in its order. Each value is a letter and its text: `n` (null), `i` and
/// the decimal number, `r` and the bits of the double as 16 hexadecimal digits, `t` and the text, `b` and the
/// bytes; each value is followed by 0x1F and each row by 0x1E. So a copy by SQL or VACUUM keeps it right.
[[nodiscard]] std::uint32_t rows_crc(Database& database, const std::string& query);

/// Writes `crc:TABLE` into table meta for each of them; within the transaction that finishes the recording.
void write_table_checksums(Database& database);

/// What is wrong in a finished recording, in words: tables that are not what their checksum says, and what
/// SQLite's own check finds of pages and indices. Reads the whole file.
[[nodiscard]] std::vector<std::string> check_tables(Database& database);

}  // namespace shardscope::store
