// Chrome trace JSON for Perfetto and chrome://tracing. HTA and TraceLens read another dialect: kineto.h.
#pragma once

#include <iosfwd>
#include <string>

#include "app/export/part.h"
#include "app/store/store.h"

namespace shardscope::exporter {

/// Streams the trace to `out`: spans as complete events that nest per thread (one per stream), a flow from
/// each gather to the waits for it, counters of memory by category, losses, instants, gaps. Times are
/// microseconds relative to `baseTimeNanoseconds`. The text is streamed; memory holds the gathers of one rank
/// at a time.
void write_chrome(std::ostream& out, const store::Store& store, const ExportPart& part = {});

/// Writes it to a file, whole or not at all (temporary file, then rename). Throws std::runtime_error: path,
/// reason.
void write_chrome(const std::string& path, const store::Store& store, const ExportPart& part = {});

}  // namespace shardscope::exporter
