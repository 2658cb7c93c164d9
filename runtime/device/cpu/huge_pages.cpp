#include "runtime/device/cpu/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace shardscope::device {
namespace {

constexpr int kMadviseCollapse = 25;  // MADV_COLLAPSE, which glibc 2.36 does not name
constexpr std::size_t kPage = 4096;

std::uintptr_t round_up(std::uintptr_t n, std::size_t unit) noexcept { return (n + unit - 1) / unit * unit; }

void unmap(std::uintptr_t begin, std::uintptr_t end) noexcept {
  if (begin < end) munmap(reinterpret_cast<void*>(begin), end - begin);
}

}  // namespace

void* map_aligned(std::size_t bytes, int flags, int fd) noexcept {
  const std::size_t reserved = round_up(bytes, kPage) + kHugePage;
  void* const space = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<std::uintptr_t>(space);
  const std::uintptr_t aligned = round_up(start, kHugePage);
  void* const data =
      mmap(reinterpret_cast<void*>(aligned), bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0);
  if (data == MAP_FAILED) {
    unmap(start, start + reserved);
    return nullptr;
  }
  unmap(start, aligned);
  unmap(aligned + round_up(bytes, kPage), start + reserved);
  return data;
}

void collapse_shared(void* data, std::size_t bytes) noexcept {
  const auto start = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t begin = round_up(start, kHugePage);
  const std::uintptr_t end = (start + bytes) / kHugePage * kHugePage;
  if (begin >= end) return;
  // The kernel rejects a huge page without resident memory; one small page is enough.
  for (std::uintptr_t page = begin; page < end; page += kHugePage) {
    static_cast<void>(*reinterpret_cast<const volatile std::byte*>(page));
  }
  madvise(reinterpret_cast<void*>(begin), end - begin, kMadviseCollapse);
}

}  // namespace shardscope::device
