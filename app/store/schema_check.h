// Whether a file's tables are plain tables. A view in place of a table may have endless rows;
// a trigger, a virtual table or an expression in an index may compute anything; a recording has none of
// these.
#pragma once

#include <string>

#include "app/store/database.h"

namespace shardscope::store {

/// Describes an object of the file that no recording has; empty: none. Call before any table is read.
[[nodiscard]] std::string foreign_object(Database& database);

}  // namespace shardscope::store
