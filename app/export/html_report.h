// One self-contained HTML page of a run: identity, verdict, partition of time per rank, the timeline of a
// typical step, partition map, memory over time against the expression, communication, disclosures.
#pragma once

#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "app/store/store.h"

namespace shardscope::exporter {

/// The page as text. `problems`: what is missing or damaged in the recording it was made from.
[[nodiscard]] std::string html_report(const store::Store& store, const analysis::Summary& summary,
                                      const std::vector<std::string>& problems);

/// Writes it whole or not at all (temporary file, then rename). Throws std::runtime_error: path, reason.
void write_html_report(const std::string& path, const store::Store& store, const analysis::Summary& summary,
                       const std::vector<std::string>& problems);

}  // namespace shardscope::exporter
