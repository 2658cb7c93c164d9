// Formats options in --help in words, where CLI11 prints the names of its validators.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace shardscope::cli {

/// "N from 0 to 1000" for "UINT:UINT in [0 - 1000]", "a|b" for "TEXT:{a,b}", "ENDPOINT" for "TEXT:ENDPOINT".
[[nodiscard]] std::string value_words(const std::string& type);

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_usage(const CLI::Option* option) const override;
};

}  // namespace shardscope::cli
