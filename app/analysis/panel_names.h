// Names of the window's panels: what `--panel` takes, and what help and completions say of it.
#pragma once

#include <array>

namespace shardscope::analysis {

/// In the order in which help has them. tests/app/cli/errors_test.py holds it to the panels that there are;
/// "workspace" is the whole window.
inline constexpr std::array kPanelNames{
    "workspace",     "overview",   "timeline",   "partition", "memory",   "communication",
    "critical_path", "buckets",    "stepper",    "compare",   "findings", "messages",
    "whatif",        "find",       "statistics", "flame",     "lecture",  "notes",
    "inspector",     "trace_info", "connection", "options",   "why"};

}  // namespace shardscope::analysis
