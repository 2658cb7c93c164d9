// Opens files that users name, for reading.
#pragma once

#include <stdexcept>
#include <string>

namespace shardscope::base {

/// Why a file cannot be used, and what to do. The caller names the file and what it is for.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A descriptor of a regular file, the caller's to close. Throws FileError. A pipe is refused, not waited
/// for: each rank reads its inputs itself, and some of them twice.
[[nodiscard]] int open_file(const std::string& path);

/// A file's whole text. Throws FileError.
[[nodiscard]] std::string read_file(const std::string& path);

}  // namespace shardscope::base
