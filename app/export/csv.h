// Comma-separated tables (RFC 4180) of a run, for spreadsheets and data frames.
#pragma once

#include <string>
#include <vector>

#include "app/export/part.h"
#include "app/store/store.h"

namespace shardscope::exporter {

/// Writes spans.csv, steps.csv, step_times.csv, ranks.csv, params.csv, modules.csv, slices.csv, status.csv,
/// memory.csv, events.csv, messages.csv, gaps.csv and, of a whole recording, bandwidths.csv into `folder`,
/// which is made if it is not there. Returns their paths. Throws std::runtime_error: path, reason; for a part
/// also where the folder has a bandwidths.csv.
std::vector<std::string> write_csv(const std::string& folder, const store::Store& store,
                                   const ExportPart& part = {});

}  // namespace shardscope::exporter
