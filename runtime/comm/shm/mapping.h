// A piece of anonymous shared memory: a memfd, sparse, so that its size is only address space until pages
// are touched; not bounded by the size of /dev/shm.
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
  /// Gives the physical pages back; they read as zero afterwards, for every process that maps them.
  void discard(std::span<std::byte> pages) const noexcept;

 private:
  Mapping(FileDescriptor fd, std::byte* data, std::size_t size) noexcept;
  FileDescriptor fd_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The memfd number `fd` of process `pid`; invalid when the system refuses (another user, /proc hidden).
[[nodiscard]] FileDescriptor open_peer_fd(pid_t pid, int fd) noexcept;

/// Address space to reserve for one rank's device memory: well above what the machine holds, so that the
/// arena never runs out of room before the machine runs out of memory.
[[nodiscard]] std::size_t region_bytes(std::size_t ranks_on_node) noexcept;

}  // namespace shardscope::comm
