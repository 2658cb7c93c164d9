// Checks of option values on the command lines of all programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace shardscope::config {

/// Type of an option's value.
enum class OptionValue : std::uint8_t { text, number, whole_number, count };

/// Error message for values that CLI11 2.1 silently misreads, else "": an empty value, read as the default
/// (with an unset shell variable `--record "$FILE"` would record nothing); the next option, read as a missing
/// value; a number beyond 64 bits, read as the largest; one below 0, read as 2^64 more; 010, read as 8; and
/// NaN, accepted in every range.
[[nodiscard]] std::string validate(OptionValue kind, std::string_view text);

/// Checks the values of every option of `app` and of its verbs in this way, but not positional arguments
/// (files, the command of `attach`). Call it when all options have been added.
void check_option_values(CLI::App& app);

}  // namespace shardscope::config
