// Cache key of data derived from a run's tables: equal while they are unchanged.
#pragma once

#include <cstddef>
#include <cstdint>

#include "app/store/store.h"

namespace shardscope::gui {

/// The tables of one rank only grow; tables of another rank replace them if that rank is lower or they are
/// larger (store::TablesOfRanks).
struct TablesKey {
  std::uint64_t run = 0;  ///< Session::number()
  std::uint32_t rank = 0;
  std::size_t modules = 0, params = 0, slices = 0;
  friend bool operator==(const TablesKey&, const TablesKey&) = default;
};

[[nodiscard]] inline TablesKey key_of_tables(std::uint64_t run, const store::Store& store) {
  if (!store.has_tables()) return {.run = run};
  const instrumentation::RunTables& tables = store.tables();
  return {run, tables.rank, tables.modules.size(), tables.params.size(), tables.slices.size()};
}

}  // namespace shardscope::gui
