// The summary tables of a recording (steps, memory peaks, spans by kind, gaps), for queries in SQL.
#pragma once

#include <cstdint>
#include <span>

#include "app/store/database.h"
#include "app/store/store.h"

namespace shardscope::store {

/// Creates a table of steps: its columns come from the table of event kinds.
void create_steps(Database& database, const char* table = "steps");
/// Puts rows in such a table, in place of those of the same steps; their times move by `delta_ns`.
void write_step_rows(Database& database, const char* table, std::span<const StepRow> rows,
                     std::int64_t delta_ns);
/// Replaces the summary tables by what `store` holds. Throws DatabaseError.
void write_summary(Database& database, const Store& store);

}  // namespace shardscope::store
