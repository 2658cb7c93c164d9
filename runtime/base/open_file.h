// Opens files named by users, for reading.
#pragma once

#include <stdexcept>
#include <string>

namespace shardscope::base {

/// Why a file cannot be used, and what to do. The caller adds the file's name and purpose.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Opens a regular file; the caller must close the descriptor. Throws FileError. A pipe is rejected: each
/// rank reads its inputs itself, and some of them twice.
[[nodiscard]] int open_file(const std::string& path);

/// A file's whole text. Throws FileError.
[[nodiscard]] std::string read_file(const std::string& path);

}  // namespace shardscope::base
