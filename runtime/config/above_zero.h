// A check for option values above 0 with a readable message.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace shardscope::config {

/// CLI::PositiveNumber prints the range of a double instead.
inline const CLI::Validator kAboveZero(
    [](std::string& text) {
      double value = 0;
      return CLI::detail::lexical_cast(text, value) && value > 0 ? std::string()
                                                                 : text + " is not a number above 0";
    },
    "POSITIVE");

}  // namespace shardscope::config
