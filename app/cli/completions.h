// Completion scripts for shells, with every verb, option and choice.
#pragma once

#include <string>

#include "app/cli/command_text.h"

namespace shardscope::cli {

/// For `source`, or a file NAME in the folder of bash-completion.
[[nodiscard]] std::string bash_completion(const CommandText& program);
/// For a file _NAME in a folder of fpath.
[[nodiscard]] std::string zsh_completion(const CommandText& program);
/// For a file NAME.fish in a folder of fish_complete_path.
[[nodiscard]] std::string fish_completion(const CommandText& program);

}  // namespace shardscope::cli
