// Tables whose rows a store has in memory: each is written into one batch.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>

#include "app/arrow/table.h"

namespace shardscope::arrow {

/// A table by its name: its columns, and what writes every row of it.
struct TableDefinition {
  std::string_view name;
  Schema (*schema)();
  void (*write)(const store::Store& store, const store::RecordingInfo& info, Batch& batch);
};

/// What a column holds, short for lists of columns.
inline constexpr auto kId = ColumnType::uint32;
inline constexpr auto kInteger = ColumnType::int64;
inline constexpr auto kNumber = ColumnType::float64;
inline constexpr auto kText = ColumnType::text;
inline constexpr auto kFlag = ColumnType::boolean;

/// Of the run as the store has it: steps, ranks, parameters, modules, slices, messages, gaps.
[[nodiscard]] std::span<const TableDefinition> run_tables();

/// What is known of the whole run, deleted events included: span_summary and memory_peaks of any recording;
/// of one with limits (--max-age, --max-size) also own_times, distributions and moments, of others no row.
[[nodiscard]] std::span<const TableDefinition> retained_tables();

}  // namespace shardscope::arrow
