// The static tables that ranks have sent: the run's, and each rank's own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "instrumentation/run_tables.h"

namespace shardscope::store {

/// Modules, parameters, slices and the configuration are the same on every rank and, with many ranks, large:
/// they are kept once.
class TablesOfRanks {
 public:
  void take(std::uint32_t rank, const instrumentation::RunTables& tables);
  [[nodiscard]] bool any() const noexcept { return run_.has_value(); }
  /// Complete tables, of the lowest rank among those with the most modules, parameters and slices; empty
  /// before the first. Tables grow during the run, on one rank a moment before another.
  [[nodiscard]] const instrumentation::RunTables& of_run() const;
  /// Without modules, parameters, slices and the configuration; null if the rank has sent none.
  [[nodiscard]] const instrumentation::RunTables* of_rank(std::uint32_t rank) const;

 private:
  std::optional<instrumentation::RunTables> run_;
  std::map<std::uint32_t, instrumentation::RunTables> ranks_;
};

}  // namespace shardscope::store
