// What this program was built from: `shardscope --version`.
#pragma once

#include <string>

namespace shardscope::cli {

/// "0.1.0".
[[nodiscard]] const char* version();
/// Version, commit, compiler, options and the versions of libraries, a line each.
[[nodiscard]] std::string version_text();

}  // namespace shardscope::cli
