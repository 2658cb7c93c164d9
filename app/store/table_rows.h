// The static tables of a run as rows that can be queried by SQL (docs/recording.md). Our own readers use
// table `tables` instead.
#pragma once

#include <cstdint>
#include <optional>

#include "app/store/database.h"
#include "app/store/store_rows.h"

namespace shardscope::store {

class TableRows {
 public:
  /// Writes the rows that are missing. Data common to all ranks is written from the first rank that has it,
  /// and is replaced when that rank's tables grow. Throws DatabaseError.
  void write(Database& database, std::uint32_t rank, const ev::RunTables& tables);

 private:
  std::optional<std::uint32_t> run_of_, lists_of_;  ///< ranks
};

}  // namespace shardscope::store
