// Peaks of torch's caching allocator between two readings, which torch itself counts only since a reset that
// belongs to the script. Compiled where the package is used (torch_helper.py): it needs the ABI of that
// torch.
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <type_traits>

namespace {

/// Requested bytes in use since the tracker was attached, and their maximum since the last reading. Written
/// under the allocator's lock of the device, read by any thread.
struct Device {
  std::atomic<std::int64_t> now{0}, peak{0};
};
std::array<Device, 64> devices;

void add(Device& device, std::int64_t bytes) {
  const std::int64_t now = device.now.load(std::memory_order_relaxed) + bytes;
  device.now.store(now);
  std::int64_t peak = device.peak.load();
  while (now > peak && !device.peak.compare_exchange_weak(peak, now)) {
  }
}

/// Called for each operation of the allocator: takes no lock, and above all not the GIL.
template <typename Entry>
void seen(const Entry& entry) {
  const auto index = static_cast<std::size_t>(entry.device_);
  if (index >= devices.size()) return;
  const auto bytes = static_cast<std::int64_t>(entry.size_);
  if (entry.action_ == Entry::ALLOC) add(devices[index], bytes);
  // As torch's own count of allocated bytes: the block may still wait for a stream that used it.
  if (entry.action_ == Entry::FREE_REQUESTED) add(devices[index], -bytes);
}

}  // namespace

/// Returns whether the peaks are counted; else `error` has the reason. Call once: torch cannot remove a
/// tracker.
extern "C" int shardscope_count_peaks(char* error, std::size_t size) {
  try {
    c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(
        [](const auto& entry) { seen<std::decay_t<decltype(entry)>>(entry); });
    return 1;
  } catch (const std::exception& thrown) {
    std::strncpy(error, thrown.what(), size - 1);
    return 0;
  }
}

/// Bytes by which the allocator's use of the device has exceeded the present one since the last call.
extern "C" std::int64_t shardscope_above_now(int device) {
  if (device < 0 || static_cast<std::size_t>(device) >= devices.size()) return 0;
  Device& of = devices[static_cast<std::size_t>(device)];
  std::int64_t peak = of.peak.load(), now = of.now.load();
  while (!of.peak.compare_exchange_weak(peak, now)) now = of.now.load();
  return std::max<std::int64_t>(peak - now, 0);
}
