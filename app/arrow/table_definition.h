// Tables whose rows the store holds in memory: each is written as one batch.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>

#include "app/arrow/table.h"

namespace shardscope::arrow {

/// A table: its name, its columns, and the function that writes all of its rows.
struct TableDefinition {
  std::string_view name;
  Schema (*schema)();
  void (*write)(const store::Store& store, const store::RecordingInfo& info, Batch& batch);
};

/// Column types, abbreviated for lists of columns.
inline constexpr auto kId = ColumnType::uint32;
inline constexpr auto kInteger = ColumnType::int64;
inline constexpr auto kNumber = ColumnType::float64;
inline constexpr auto kText = ColumnType::text;
inline constexpr auto kFlag = ColumnType::boolean;

/// Tables of the run: steps, ranks, parameters, modules, slices, messages, gaps, counters.
[[nodiscard]] std::span<const TableDefinition> run_tables();

/// Tables over the whole run, deleted events included: span_summary and memory_peaks of any recording;
/// own_times, distributions and moments have rows only in a recording with limits (--max-age, --max-size).
[[nodiscard]] std::span<const TableDefinition> retained_tables();

}  // namespace shardscope::arrow
