// Device memory in pages of 2 MiB: a matrix product that walks down columns touches a page per row, and with
// pages of 4 KiB it spends a twentieth of its time on TLB misses.
#pragma once

#include <cstddef>

namespace shardscope::device {

/// Size and alignment of a huge page of x86-64.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// mmap(2) of `bytes` from the start of `fd` (or -1), readable and writable, at an address that is a multiple
/// of kHugePage: only then can a huge page of the file be one in the mapping of every process. Null, with
/// errno, when mmap fails.
[[nodiscard]] void* map_aligned(std::size_t bytes, int flags, int fd) noexcept;

/// Backs the whole huge pages within [data, data + bytes) of a shared mapping at once, so these bytes become
/// resident, which costs less than the faults of small pages would. If the kernel cannot (before Linux 6.1,
/// or no free huge page) nothing changes.
void collapse_shared(void* data, std::size_t bytes) noexcept;

}  // namespace shardscope::device
