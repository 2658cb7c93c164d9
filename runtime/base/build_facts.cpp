#include "runtime/base/build_facts.h"

#include "runtime/base/commit.h"

namespace shardscope::base {

const char* version() { return SHARDSCOPE_VERSION; }

std::string build_facts(const std::string& program) {
#ifdef __clang__
  constexpr const char* kCompiler = "Clang " __clang_version__;
#else
  constexpr const char* kCompiler = "GCC " __VERSION__;
#endif
  return program + " " + version() + "\ncommit     " SHARDSCOPE_COMMIT "\ncompiler   " + kCompiler +
         ", " SHARDSCOPE_BUILD_TYPE "\noptions    " SHARDSCOPE_BUILD_OPTIONS;
}

}  // namespace shardscope::base
