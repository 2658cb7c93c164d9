// What `shardscope --version` prints.
#pragma once

#include <string>

namespace shardscope::cli {

/// base::build_facts() and the versions of libraries, a line each.
[[nodiscard]] std::string version_text();

}  // namespace shardscope::cli
