// Names of the window's panels: the values of `--panel`, for help and completions.
#pragma once

#include <array>

namespace shardscope::analysis {

/// In the order of the help. tests/app/cli/errors_test.py compares them with the existing panels; "workspace"
/// is the whole window.
inline constexpr std::array kPanelNames{
    "workspace",     "overview",   "timeline",   "partition", "memory",   "communication",
    "critical_path", "buckets",    "stepper",    "compare",   "findings", "messages",
    "whatif",        "find",       "statistics", "flame",     "lecture",  "notes",
    "inspector",     "trace_info", "connection", "options",   "why"};

}  // namespace shardscope::analysis
