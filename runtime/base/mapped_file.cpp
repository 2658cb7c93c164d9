#include "runtime/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace shardscope::base {

MappedFile::MappedFile(const std::string& path) {
  auto fail = [&](int code) { throw std::system_error(code, std::generic_category(), path); };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(errno);
  struct stat status {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    const int code = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    ::close(file);
    fail(code);
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ > 0) {
    void* const data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) {
      const int code = errno;
      ::close(file);
      fail(code);
    }
    data_ = static_cast<const std::byte*>(data);
  }
  ::close(file);
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
