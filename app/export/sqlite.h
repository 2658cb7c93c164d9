// An SQLite file with tables named and shaped like those of an Nsight Systems export, for users who have
// queries for it, beside our own tables (steps, memory, parameters).
#pragma once

#include <string>

#include "app/export/part.h"
#include "app/store/store.h"

namespace shardscope::exporter {

/// Writes a new file at `path`, whole or not at all (temporary file, then rename). Throws
/// std::runtime_error: path, reason.
void write_sqlite(const std::string& path, const store::Store& store, const ExportPart& part = {});

}  // namespace shardscope::exporter
