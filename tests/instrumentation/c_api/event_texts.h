// What is written from the table of event kinds (instrumentation/event_kinds.def) and kept in the repository:
// the constants and functions of the C interface, those of the Python package and the table of
// docs/events.md.
#pragma once

#include <string>

namespace shardscope::test {

/// "  SHARDSCOPE_EVENT_STEP_BEGIN = 1," and so on.
[[nodiscard]] std::string c_constants();
/// One inline function for each kind that a program emits itself.
[[nodiscard]] std::string c_functions();
/// One function of the Python package for each of these, but for what a GPU's driver records.
[[nodiscard]] std::string python_functions();
/// The rows of the manual's table.
[[nodiscard]] std::string manual_rows();

}  // namespace shardscope::test
