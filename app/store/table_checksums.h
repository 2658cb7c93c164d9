// Checksums of tables that only SQL users read, and of the set of rows: nothing else would detect a damaged
// number there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/store/database.h"

namespace shardscope::store {

/// CRC-32C of a query's rows, in its order. Each value is a letter and its text: `n` (null), `i` and
/// the decimal number, `r` and the bits of the double as 16 hexadecimal digits, `t` and the text, `b` and the
/// bytes; each value is followed by 0x1F and each row by 0x1E. So copies by SQL or VACUUM keep it valid.
[[nodiscard]] std::uint32_t rows_crc(Database& database, const std::string& query);

/// Writes `crc:TABLE` into table meta for each table; call in the transaction that finishes the recording.
void write_table_checksums(Database& database);

/// Describes damage of a finished recording: tables that do not match their checksum, and
/// findings of SQLite's own check of pages and indices. Reads the whole file. Recordings written
/// without these checksums only get the latter.
[[nodiscard]] std::vector<std::string> check_tables(Database& database);

}  // namespace shardscope::store
