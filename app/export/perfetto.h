// Perfetto's native trace format (TrackEvent protobuf): smaller than Chrome JSON, nanosecond resolution.
#pragma once

#include <iosfwd>
#include <string>

#include "app/export/part.h"
#include "app/store/store.h"

namespace shardscope::exporter {

/// One process per rank, one track per stream, counters of memory by category, flows from each gather to
/// the waits for it.
void write_perfetto(std::ostream& out, const store::Store& store, const ExportPart& part = {});
/// Writes it to a file, whole or not at all. Throws std::runtime_error: path, reason.
void write_perfetto(const std::string& path, const store::Store& store, const ExportPart& part = {});

}  // namespace shardscope::exporter
