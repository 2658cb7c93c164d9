// Escapes text from outside before a terminal shows it: names of a model, messages of ranks, paths. A
// terminal obeys escape sequences, and a line break in a name could fake a line of the program itself.
#pragma once

#include <string>
#include <string_view>

namespace shardscope::instrumentation {

/// One line: control characters (also line breaks and tabs), directional marks and bytes that are not valid
/// UTF-8 become \n, \x1b, \u202e.
[[nodiscard]] std::string plain_line(std::string_view text);

/// Several lines: line breaks stay, and each following line is indented, so that it cannot look like a
/// message of the program.
[[nodiscard]] std::string plain_message(std::string_view text);

/// For text laid out by the program itself: line breaks stay as they are.
[[nodiscard]] std::string plain_lines(std::string_view text);

/// The same for JSON text, which stays valid JSON.
[[nodiscard]] std::string plain_json(std::string_view text);

}  // namespace shardscope::instrumentation
