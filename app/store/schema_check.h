// Whether a file's tables can be what they are called. A view in place of a table may have rows without end,
// a trigger, a virtual table or an expression in an index may compute anything; a recording has none of
// these.
#pragma once

#include <string>

#include "app/store/database.h"

namespace shardscope::store {

/// Empty, or what the file has that no recording has, in words. Before any of its tables is read.
[[nodiscard]] std::string foreign_object(Database& database);

}  // namespace shardscope::store
