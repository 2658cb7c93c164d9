// Anonymous shared memory: a sparse memfd, whose size is only address space until pages are touched; not
// bounded by the size of /dev/shm.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>

namespace shardscope::comm {

/// Owns a file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool valid() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

class Mapping {
 public:
  /// New zeroed memory. Throws BackendError.
  [[nodiscard]] static Mapping create(const std::string& name, std::size_t bytes);
  /// The memory behind `fd`, which a peer made; `bytes` as the peer sent it. Throws BackendError.
  [[nodiscard]] static Mapping open(FileDescriptor fd, std::size_t bytes);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) = delete;
  ~Mapping();

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Frees the physical pages; they read as zero afterwards, in every process that maps them.
  void discard(std::span<std::byte> pages) const noexcept;

 private:
  Mapping(FileDescriptor fd, std::byte* data, std::size_t size) noexcept;
  FileDescriptor fd_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Opens descriptor `fd` of process `pid`; invalid if the system does not permit it (another user, /proc
/// hidden).
[[nodiscard]] FileDescriptor open_peer_fd(pid_t pid, int fd) noexcept;

/// Address space to reserve for one rank's device memory: well above the machine's memory, so that the arena
/// never runs out of address space before the machine runs out of memory.
[[nodiscard]] std::size_t region_bytes(std::size_t ranks_on_node) noexcept;

}  // namespace shardscope::comm
