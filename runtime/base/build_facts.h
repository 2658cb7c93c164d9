// Version, commit and compiler of a build: the first lines of --version.
#pragma once

#include <string>

namespace shardscope::base {

/// "0.1.0".
[[nodiscard]] const char* version();
/// Program and version, commit, compiler and options, a line each; the last has no line break.
[[nodiscard]] std::string build_facts(const std::string& program);

}  // namespace shardscope::base
