// What the command lines of all programs refuse, whatever the option.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace shardscope::config {

/// What an option's value has to be.
enum class OptionValue : std::uint8_t { text, number, whole_number, count };

/// What is wrong with the value, or "": what CLI11 2.1 takes for something else in silence. That is an empty
/// value for the default (where a shell's variable is not set, `--record "$FILE"` would record nothing), the
/// option behind a missing value for that value, a number beyond 64 bits for the largest, one below 0 for
/// 2^64 more, 010 for 8, and NaN for a number in every range.
[[nodiscard]] std::string what_is_wrong(OptionValue kind, std::string_view text);

/// Checks the values of every option of `app` and of its verbs in this way; those of positions (files, the
/// command of `attach`) are as they are. Call it when all options have been added.
void check_option_values(CLI::App& app);

}  // namespace shardscope::config
