#include "runtime/base/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/base/open_file.h"

namespace shardscope::base {

MappedFile::MappedFile(const std::string& path) {
  const int file = open_file(path);
  struct stat status {};
  void* data = nullptr;
  int code = ::fstat(file, &status) == 0 ? 0 : errno;
  if (code == 0 && status.st_size > 0) {
    data = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) code = errno;
  }
  ::close(file);
  if (code != 0)
    throw FileError(std::string("cannot be mapped: ") + std::strerror(code) + "; check the disk");
  data_ = static_cast<const std::byte*>(data);
  size_ = static_cast<std::size_t>(status.st_size);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace shardscope::base
