// Lines on the terminal. Names of models, configurations and paths may hold escape sequences: shown as text.
#pragma once

#include <cstdio>
#include <string>

#include "instrumentation/plain_text.h"

namespace shardscope::train {

/// "shardscope: TEXT" on standard error.
inline void report(const std::string& text) {
  std::fprintf(stderr, "shardscope: %s\n", instrumentation::plain_message(text).c_str());
}

/// On standard output, at once.
inline void print_line(const std::string& text) {
  std::printf("%s\n", instrumentation::plain_message(text).c_str());
  std::fflush(stdout);
}

}  // namespace shardscope::train
