// Comma-separated tables (RFC 4180) of a run, for spreadsheets and data frames.
#pragma once

#include <string>
#include <vector>

#include "app/export/part.h"
#include "app/store/store.h"

namespace shardscope::exporter {

/// Writes spans.csv, steps.csv, step_times.csv, ranks.csv, params.csv, modules.csv, slices.csv, status.csv,
/// memory.csv, counters.csv, events.csv, messages.csv, gaps.csv and, for a whole recording, bandwidths.csv
/// into `folder`, which is created if it does not exist. Returns their paths. Throws std::runtime_error:
/// path, reason; for a part also if the folder already contains a bandwidths.csv.
std::vector<std::string> write_csv(const std::string& folder, const store::Store& store,
                                   const ExportPart& part = {});

}  // namespace shardscope::exporter
