// Reads the tables whose rows have a checksum each: static tables, names, ranks, messages.
#pragma once

#include "app/store/database.h"
#include "app/store/recording_problems.h"
#include "app/store/store.h"

namespace shardscope::store {

// Each function adds valid rows to `store`, and rows with a wrong checksum or contents to `problems`. Throws
// DatabaseError if SQLite cannot read the table.
void read_tables(Database& database, Store& store, Problems& problems);
void read_names(Database& database, Store& store, Problems& problems);
void read_ranks(Database& database, Store& store, Problems& problems);
/// Call after the events were read: they define time 0.
void read_messages(Database& database, Store& store, Problems& problems);

}  // namespace shardscope::store
