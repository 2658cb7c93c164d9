// A memory-mapped file: pages are loaded on first access.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace shardscope::base {

class MappedFile {
 public:
  MappedFile() = default;
  /// Throws FileError (open_file.h).
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace shardscope::base
