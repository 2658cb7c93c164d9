#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "runtime/device/cpu/huge_pages.h"
#include "runtime/device/cpu/region_allocator.h"
#include "runtime/device/cpu/stream.h"
#include "runtime/device/device.h"
#include "runtime/device/error.h"

namespace shardscope::device {
namespace {

/// Private memory of this process.
class PrivateArena final : public Arena {
 public:
  explicit PrivateArena(instrumentation::MemoryPool pool) : Arena(pool) {}
  ~PrivateArena() override { release_segments(); }

 protected:
  void* raw_allocate(std::size_t bytes) override {
    void* data = map_aligned(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (data != nullptr && bytes > kHugePage) madvise(data, bytes, MADV_HUGEPAGE);
    return data;
  }
  void raw_free(void* data, std::size_t bytes) noexcept override { munmap(data, bytes); }
};

/// Memory that the peers of this node read in place.
class RegionArena final : public Arena {
 public:
  RegionArena(instrumentation::MemoryPool pool, SharedRegion& region)
      : Arena(pool), region_(region), allocator_(region.bytes().size()) {}
  ~RegionArena() override { release_segments(); }

 protected:
  void* raw_allocate(std::size_t bytes) override {
    const auto offset = allocator_.take(bytes);
    if (!offset) return nullptr;
    std::byte* data = region_.bytes().data() + *offset;
    // Not the segments of small requests, which stay mostly untouched.
    if (bytes > kHugePage) collapse_shared(data, bytes);
    return data;
  }
  void raw_free(void* data, std::size_t bytes) noexcept override {
    auto* start = static_cast<std::byte*>(data);
    region_.discard({start, bytes});
    allocator_.give_back(static_cast<std::size_t>(start - region_.bytes().data()), bytes);
  }

 private:
  SharedRegion& region_;
  RegionAllocator allocator_;
};

std::unique_ptr<Arena> make_device_arena(SharedRegion* region) {
  constexpr auto kPool = instrumentation::MemoryPool::device;
  if (region == nullptr) return std::make_unique<PrivateArena>(kPool);
  return std::make_unique<RegionArena>(kPool, *region);
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuDeviceOptions& options)
      : memory_(make_device_arena(options.region)),
        pinned_(instrumentation::MemoryPool::pinned),
        host_(instrumentation::MemoryPool::host),
        threads_(options.compute_threads),
        compute_(instrumentation::StreamId::compute, options.compute_threads),
        gather_(instrumentation::StreamId::gather, 1),
        reduce_(instrumentation::StreamId::reduce, 1),
        copy_(instrumentation::StreamId::copy, 1) {
    memory_->set_limit(options.memory_limit_bytes);
  }

  Stream& compute() override { return compute_; }
  Stream& gather() override { return gather_; }
  Stream& reduce() override { return reduce_; }
  Stream& copy() override { return copy_; }
  Stream& worker() override {
    if (!worker_) worker_.emplace(instrumentation::StreamId::worker, threads_);
    return *worker_;
  }
  Stream& nvme() override {
    if (!nvme_) nvme_.emplace(instrumentation::StreamId::nvme, 1);
    return *nvme_;
  }
  std::vector<Stream*> started_streams() override {
    std::vector<Stream*> streams{&compute_, &gather_, &reduce_, &copy_};
    if (worker_) streams.push_back(&*worker_);
    if (nvme_) streams.push_back(&*nvme_);
    return streams;
  }
  std::unique_ptr<Event> make_event() override { return std::make_unique<CpuEvent>(); }
  std::unique_ptr<Event> make_timed_event() override {
    return std::make_unique<CpuEvent>(CpuEvent::Timing::kept);
  }
  Arena& memory() override { return *memory_; }
  Arena& pinned() override { return pinned_; }
  Arena& host() override { return host_; }

  void copy_async(void* dst, const void* src, std::size_t bytes, Stream& stream) override {
    if (bytes == 0 || dst == src) return;
    stream.run([=](const kernels::Exec&) { std::memcpy(dst, src, bytes); });
  }

  std::string describe() const override {
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long page = sysconf(_SC_PAGESIZE);
    const double gib = static_cast<double>(pages) * static_cast<double>(page) / (1U << 30);
    return cpu_model() + ", " + std::to_string(std::thread::hardware_concurrency()) + " hardware threads, " +
           std::to_string(static_cast<long>(gib + 0.5)) + " GiB";
  }
  kernels::Backend backend() const noexcept override { return kernels::Backend::cpu; }

 private:
  // The arenas are destroyed last: queued work may use memory until the streams have ended.
  std::unique_ptr<Arena> memory_;
  PrivateArena pinned_;
  PrivateArena host_;
  const int threads_;
  CpuStream compute_;
  CpuStream gather_;
  CpuStream reduce_;
  CpuStream copy_;
  std::optional<CpuStream> worker_, nvme_;  ///< made on first use, by the host thread
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(const CpuDeviceOptions& options) {
  if (options.compute_threads < 1) {
    throw BackendError("make_cpu_device", 0,
                       "compute_threads is " + std::to_string(options.compute_threads) + "; give 1 or more",
                       "device/cpu");
  }
  return std::make_unique<CpuDevice>(options);
}

std::unique_ptr<Device> make_cpu_device(SharedRegion* region) {
  return make_cpu_device(CpuDeviceOptions{region, 1, 0});
}

}  // namespace shardscope::device
