// What a recording has beside events, row by row with its checksum: static tables, names, ranks, messages.
#pragma once

#include "app/store/database.h"
#include "app/store/recording_problems.h"
#include "app/store/store.h"

namespace shardscope::store {

// Each gives `store` what it finds and adds to `problems` the rows whose checksum or contents are wrong.
// Throws DatabaseError where SQLite cannot read on.
void read_tables(Database& database, Store& store, Problems& problems);
void read_names(Database& database, Store& store, Problems& problems);
void read_ranks(Database& database, Store& store, Problems& problems);
/// After the events: they set time 0.
void read_messages(Database& database, Store& store, Problems& problems);

}  // namespace shardscope::store
