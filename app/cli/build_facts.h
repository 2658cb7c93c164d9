// The output of `shardscope --version`.
#pragma once

#include <string>

namespace shardscope::cli {

/// base::build_facts() and the versions of libraries, one per line.
[[nodiscard]] std::string version_text();

}  // namespace shardscope::cli
