#include "app/store/disk_reserve.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

namespace shardscope::store {

DiskReserve::DiskReserve(const std::string& path) {
  std::string name = (std::filesystem::absolute(path).parent_path() / ".shardscope-reserve-XXXXXX").string();
  file_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) return;
  ::unlink(name.c_str());
  if (::posix_fallocate(file_, 0, kBytes) != 0) release();
}

DiskReserve::DiskReserve(DiskReserve&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

DiskReserve& DiskReserve::operator=(DiskReserve&& other) noexcept {
  release();
  file_ = std::exchange(other.file_, -1);
  return *this;
}

void DiskReserve::release() noexcept {
  if (file_ >= 0) ::close(std::exchange(file_, -1));
}

}  // namespace shardscope::store
