// The files of a run's samples.
#pragma once

#include <string>

#include "runtime/base/mapped_file.h"
#include "runtime/base/open_file.h"
#include "runtime/data/stream.h"

namespace shardscope::data {

/// Throws DataError naming the file.
[[noreturn]] inline void fail_file(const std::string& path, const std::string& text) {
  throw DataError("data: " + path + ": " + text);
}

/// Maps the whole file read-only. Throws DataError if it cannot be opened or mapped.
[[nodiscard]] inline base::MappedFile open_input(const std::string& path) {
  try {
    return base::MappedFile(path);
  } catch (const base::FileError& error) {
    fail_file(path, error.what());
  }
}

}  // namespace shardscope::data
