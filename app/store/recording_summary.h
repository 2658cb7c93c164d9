// The summary tables of a recording (steps, memory peaks, spans by kind, gaps), for queries in SQL.
#pragma once

#include "app/store/database.h"
#include "app/store/store.h"

namespace shardscope::store {

/// Creates the table of steps: its columns come from the table of event kinds.
void create_steps(Database& database);
/// Replaces the summary tables by what `store` holds. Throws DatabaseError.
void write_summary(Database& database, const Store& store);

}  // namespace shardscope::store
