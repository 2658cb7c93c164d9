// An SQLite file whose tables have the names and columns of an Nsight Systems export, for existing queries,
// beside tables of our own (steps, memory, parameters).
#pragma once

#include <string>

#include "app/export/part.h"
#include "app/store/store.h"

namespace shardscope::exporter {

/// Writes a new file at `path`, whole or not at all (temporary file, then rename). Throws
/// std::runtime_error: path, reason.
void write_sqlite(const std::string& path, const store::Store& store, const ExportPart& part = {});

}  // namespace shardscope::exporter
