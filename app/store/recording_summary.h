// The summary tables of a recording (steps, memory peaks, spans by kind, gaps), for queries in SQL.
#pragma once

#include <cstdint>
#include <span>

#include "app/store/database.h"
#include "app/store/store.h"

namespace shardscope::store {

/// Creates a table of steps. Its value columns are those of for_each_step_column().
void create_steps(Database& database, const char* table = "steps");
/// Inserts rows into such a table, or replaces those of the same steps. Times are shifted by `delta_ns`.
void write_step_rows(Database& database, const char* table, std::span<const StepRow> rows,
                     std::int64_t delta_ns);
/// Replaces the contents of the summary tables by those of `store`. Throws DatabaseError.
void write_summary(Database& database, const Store& store);

}  // namespace shardscope::store
