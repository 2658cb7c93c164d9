#include "runtime/comm/shm/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/device/cpu/huge_pages.h"
#include "runtime/device/error.h"

namespace shardscope::comm {
namespace {

[[noreturn]] void throw_errno(const char* call, const std::string& text) {
  const int code = errno;
  throw BackendError(call, code, text + ": " + std::strerror(code), "comm/shared memory");
}

/// At a multiple of 2 MiB, so that huge pages of the file can be mapped as such by every process
/// (map_aligned).
std::byte* map(int fd, std::size_t bytes) {
  // MAP_NORESERVE: the mapping must not count as committed memory.
  void* data = device::map_aligned(bytes, MAP_SHARED | MAP_NORESERVE, fd);
  if (data == nullptr) {
    throw_errno("mmap", "cannot map " + std::to_string(bytes >> 20) +
                            " MiB of shared memory (is the address space limited? see ulimit -v)");
  }
  // Most of it is never touched: keep it out of core files.
  madvise(data, bytes, MADV_DONTDUMP);
  return static_cast<std::byte*>(data);
}

}  // namespace

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}
FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Mapping::Mapping(FileDescriptor fd, std::byte* data, std::size_t size) noexcept
    : fd_(std::move(fd)), data_(data), size_(size) {}
Mapping::Mapping(Mapping&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}
/// The pages live until the last process has unmapped them and closed the file.
Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, size_);
}

Mapping Mapping::create(const std::string& name, std::size_t bytes) {
  // Sized once and never again: peers map `bytes` of it, and an access beyond its end would be a SIGBUS.
  FileDescriptor fd(memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!fd.valid()) throw_errno("memfd_create", "cannot make shared memory");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    throw_errno("ftruncate", "cannot size shared memory to " + std::to_string(bytes >> 20) + " MiB");
  }
  std::byte* data = map(fd.get(), bytes);
  return {std::move(fd), data, bytes};
}

/// `fd` is this process's own descriptor of the peer's file: both mappings show the same pages.
Mapping Mapping::open(FileDescriptor fd, std::size_t bytes) {
  std::byte* data = map(fd.get(), bytes);
  return {std::move(fd), data, bytes};
}

/// MADV_REMOVE punches a hole into the file. MADV_DONTNEED would drop only this process's page tables and
/// leave the pages to the others.
void Mapping::discard(std::span<std::byte> pages) const noexcept {
  if (!pages.empty()) madvise(pages.data(), pages.size(), MADV_REMOVE);
}

FileDescriptor open_peer_fd(pid_t pid, int fd) noexcept {
  // Needs ptrace read access to the process, which processes of one user have by default.
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  return FileDescriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
}

std::size_t region_bytes(std::size_t ranks_on_node) noexcept {
  constexpr std::size_t kGiB = std::size_t{1} << 30;
  constexpr std::size_t kAddressSpace = 32 * 1024 * kGiB;  // a quarter of what a process has
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  const std::size_t physical =
      pages > 0 && page > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page) : kGiB;
  // Twice the physical memory in whole GiB, 64 GiB at least; all ranks' regions together stay within
  // kAddressSpace, since each rank maps them all.
  const std::size_t wanted = std::max(64 * kGiB, (2 * physical + kGiB - 1) / kGiB * kGiB);
  return std::min(wanted, kAddressSpace / std::max<std::size_t>(ranks_on_node, 1) / kGiB * kGiB);
}

}  // namespace shardscope::comm
