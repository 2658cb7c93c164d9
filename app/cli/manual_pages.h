// Manual pages of the command line, in the language of man(7).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/cli/command_text.h"

namespace shardscope::cli {

/// Pairs of file name and text: shardscope.1 with the verbs, and a page for each verb (shardscope-run.1).
/// `frame` is the source of the first (assets/man/shardscope.1.in), with @VERSION@, @VERBS@ and @OPTIONS@
/// to be replaced.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> manual_pages(const CommandText& program,
                                                                            std::string_view frame,
                                                                            std::string_view version);

}  // namespace shardscope::cli
