// Artifacts made from a finished recording: a report page and a screenshot of every panel.
#pragma once

#include <string>
#include <vector>

#include "app/cli/run_source.h"

namespace shardscope::cli {

/// Writes the HTML report of a recording, beside the one of `baseline` where that is not empty. Throws
/// UserError when it cannot.
void write_report(const std::string& recording, const std::string& html, const std::string& baseline = {});
/// The same for a source opened from `name`. A live run is not played: its findings have no gain, and say so.
void write_report(const RunSource& run, const std::string& name, const std::string& html,
                  const std::string& baseline = {});

/// Renders each panel with the dashboard program, off screen. Returns the files written; a panel that
/// fails is reported on standard error and omitted.
[[nodiscard]] std::vector<std::string> write_screenshots(const std::string& recording,
                                                         const std::string& folder, const std::string& size);

}  // namespace shardscope::cli
