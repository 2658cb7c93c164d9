// Text from outside for a terminal: names of a model, messages of ranks, paths. A terminal obeys escape
// sequences, and a line break in a name reads as a line of the program's own.
#pragma once

#include <string>
#include <string_view>

namespace shardscope::instrumentation {

/// On one line: control characters (line breaks and tabs as well), marks that turn the direction of writing
/// and bytes that are no UTF-8 as \n, \x1b, \u202e.
[[nodiscard]] std::string plain_line(std::string_view text);

/// Several lines: line breaks stay, and what follows one is indented, so that it cannot begin like a message
/// of the program.
[[nodiscard]] std::string plain_message(std::string_view text);

/// What the program laid out itself: line breaks stay as they are.
[[nodiscard]] std::string plain_lines(std::string_view text);

/// The same for JSON, which stays that.
[[nodiscard]] std::string plain_json(std::string_view text);

}  // namespace shardscope::instrumentation
