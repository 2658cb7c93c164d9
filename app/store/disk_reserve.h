// Reserved disk space for writes that must succeed when the disk is full.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::store {

/// An unnamed file in the folder of `path`: it occupies disk space while it is open, and is removed
/// however this process ends.
class DiskReserve {
 public:
  /// Some tens of pages of a recording, and the next part of its log's index.
  static constexpr std::int64_t kBytes = std::int64_t{128} << 10;

  DiskReserve() = default;
  /// Reserves nothing where the disk has no room.
  explicit DiskReserve(const std::string& path);
  ~DiskReserve() { release(); }
  DiskReserve(DiskReserve&& other) noexcept;
  DiskReserve& operator=(DiskReserve&& other) noexcept;
  void release() noexcept;

 private:
  int file_ = -1;
};

}  // namespace shardscope::store
