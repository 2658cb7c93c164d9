// The static tables of a run as rows that anyone can query with SQL (docs/recording.md). Readers of ours take
// table `tables` instead.
#pragma once

#include <cstdint>
#include <optional>

#include "app/store/database.h"
#include "app/store/store.h"

namespace shardscope::store {

class TableRows {
 public:
  /// Writes what is not there yet. What is the same on every rank is taken from the first that tells it, and
  /// again when that one tells more. Throws DatabaseError.
  void write(Database& database, std::uint32_t rank, const ev::RunTables& tables);

 private:
  std::optional<std::uint32_t> run_of_, lists_of_;  ///< ranks
};

}  // namespace shardscope::store
