#include "tests/gpu/host_cuda/runtime.h"

#include <cuda.h>
#include <pmmintrin.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/device/cpu/region_allocator.h"
#include "tests/gpu/host_cuda/trace.h"

namespace shardscope::host_cuda {
namespace {

constexpr std::size_t kDeviceBytes = std::size_t{16} << 30;  ///< sparse
constexpr std::size_t kGarbageBytes = std::size_t{24} << 20;
constexpr std::size_t kPage = 4096;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

[[noreturn]] void broken(const char* rule, const char* what) {
  std::fprintf(stderr, "host_cuda: %s: %s\n", what, rule);
  std::abort();
}

/// One file mapped twice: the program's addresses are inaccessible, the device uses the others.
/// With kernels that run on fibers (block.h) both are the same.
class Memory {
 public:
  static Memory& instance() {
    static auto* memory = new Memory;
    return *memory;
  }
  void* take(std::size_t bytes) {
    const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
    const std::lock_guard lock(mutex_);
    if (whole > kDeviceBytes) return nullptr;
    const auto offset = free_.take(whole);
    if (!offset) return nullptr;
    taken_.emplace(*offset, whole);
    used_ += whole;
    // Not zeros, as on a GPU; of large pieces the beginning.
    std::memset(own_ + *offset, 0xFF, std::min(whole, kGarbageBytes));
    return given_ + *offset;
  }
  /// How many bytes these were; 0 for what was not taken.
  std::size_t give_back(void* data) {
    const std::lock_guard lock(mutex_);
    const auto found = taken_.find(static_cast<std::size_t>(static_cast<std::byte*>(data) - given_));
    if (found == taken_.end()) return 0;
    madvise(own_ + found->first, found->second, MADV_REMOVE);
    const std::size_t bytes = found->second;
    free_.give_back(found->first, bytes);
    used_ -= bytes;
    taken_.erase(found);
    return bytes;
  }
  [[nodiscard]] bool holds(const void* data) const {
    const auto* at = static_cast<const std::byte*>(data);
    return at >= given_ && at < given_ + kDeviceBytes;
  }
  [[nodiscard]] void* own(const void* data) const {
    return own_ + (static_cast<const std::byte*>(data) - given_);
  }
  [[nodiscard]] std::size_t left() {
    const std::lock_guard lock(mutex_);
    return kDeviceBytes - used_;
  }

  void pin(const void* data, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    pinned_[static_cast<const std::byte*>(data)] = bytes;
  }
  std::size_t unpin(const void* data) {
    const std::lock_guard lock(mutex_);
    const auto node = pinned_.extract(static_cast<const std::byte*>(data));
    return node.empty() ? 0 : node.mapped();
  }
  [[nodiscard]] bool pinned(const void* data) {
    const auto* at = static_cast<const std::byte*>(data);
    const std::lock_guard lock(mutex_);
    auto after = pinned_.upper_bound(at);
    return after != pinned_.begin() && at < std::prev(after)->first + std::prev(after)->second;
  }

 private:
  Memory() {
    const int file = memfd_create("host_cuda", 0);
    if (file < 0 || ftruncate(file, static_cast<off_t>(kDeviceBytes)) != 0) broken("no memory", "start");
    const auto map = [file](int protection) {
      void* at = mmap(nullptr, kDeviceBytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
      if (at == MAP_FAILED) broken("no address space", "start");
      return static_cast<std::byte*>(at);
    };
    own_ = map(PROT_READ | PROT_WRITE);
#ifdef SHARDSCOPE_HOST_CUDA_KERNELS
    given_ = own_;  // addresses are in the arguments of kernels, which are not translated
#else
    given_ = map(PROT_NONE);
#endif
  }

  std::byte* given_ = nullptr;
  std::byte* own_ = nullptr;
  std::mutex mutex_;
  device::RegionAllocator free_{kDeviceBytes};
  std::map<std::size_t, std::size_t> taken_;  ///< offset to size
  std::map<const std::byte*, std::size_t> pinned_;
  std::size_t used_ = 0;
};

/// The first stream is not the first number, as with CUPTI.
std::atomic<std::uint32_t> g_streams{6};
std::atomic<Tracer*> g_tracer{nullptr};

class Stream {
 public:
  Stream() : number_(++g_streams), thread_([this] { run(); }) {}
  ~Stream() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void push(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
      ++pushed_;
    }
    changed_.notify_all();
  }
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  void wait() {
    std::unique_lock lock(mutex_);
    const std::uint64_t wanted = pushed_;
    changed_.wait(lock, [&] { return done_ >= wanted; });
  }

 private:
  void run() {
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ends_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::uint64_t pushed_ = 0, done_ = 0;
  bool ends_ = false;
  const std::uint32_t number_;
  std::thread thread_;
};

/// One recording of an event. Who waits for it waits for this one, although the event be recorded again.
struct Recording {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false;
  std::int64_t at_ns = 0;

  void reach() {
    const std::lock_guard lock(mutex);
    reached = true;
    at_ns = now_ns();
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return reached; });
  }
};

/// What a cudaEvent_t points to. One never recorded is reached.
class Point {
 public:
  [[nodiscard]] std::shared_ptr<Recording> last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }
  [[nodiscard]] std::shared_ptr<Recording> record() {
    auto recording = std::make_shared<Recording>();
    const std::lock_guard lock(mutex_);
    last_ = recording;
    return recording;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<Recording> last_;
};

/// CUDA's last error of a thread: every call that does not return success sets it, an event that is not ready
/// too, and nothing but cudaGetLastError clears it.
thread_local cudaError_t t_last_error = cudaSuccess;
cudaError_t kept(cudaError_t error) { return t_last_error = error; }

Stream& of(cudaStream_t stream) {
  if (stream == nullptr) broken("the project uses no default stream", "stream");
  return *reinterpret_cast<Stream*>(stream);
}
Point& of(cudaEvent_t event) { return *reinterpret_cast<Point*>(event); }

CUresult wait_value(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  const auto* word = reinterpret_cast<const std::atomic<std::uint64_t>*>(address);
  if (flags != CU_STREAM_WAIT_VALUE_GEQ || !Memory::instance().pinned(word)) return CUDA_ERROR_INVALID_VALUE;
  of(stream).push([word, value] {
    while (static_cast<std::int64_t>(word->load() - value) < 0)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  });
  return CUDA_SUCCESS;
}

}  // namespace

Tracer* tracer() noexcept { return g_tracer.load(); }

void launch(cudaStream_t stream, const char* name, std::function<void()> work, dim3 grid, dim3 block) {
  const TracedCall call({.kind = Work::Kind::kernel,
                         .stream = of(stream).number(),
                         .name = name,
                         .grid = grid,
                         .block = block});
  of(stream).push(call.traced(std::move(work)));
}

void* seen_by_device(const void* pointer, const char* what) {
  Memory& memory = Memory::instance();
  if (pointer == nullptr || memory.pinned(pointer)) return const_cast<void*>(pointer);
  if (!memory.holds(pointer)) broken("a kernel is given pageable memory of the host", what);
  return memory.own(pointer);
}

}  // namespace shardscope::host_cuda

using shardscope::host_cuda::kept;
using shardscope::host_cuda::Memory;
using shardscope::host_cuda::of;
using shardscope::host_cuda::Point;
using shardscope::host_cuda::seen_by_device;
using shardscope::host_cuda::Stream;
using shardscope::host_cuda::TracedCall;
using shardscope::host_cuda::TracedWait;
using shardscope::host_cuda::Wait;
using shardscope::host_cuda::Work;

namespace {

void tell_memory(const void* data, std::size_t bytes, bool pinned, bool freed) {
  if (auto* tracer = shardscope::host_cuda::tracer()) tracer->memory(data, bytes, pinned, freed);
}

}  // namespace

extern "C" {

void host_cuda_set_tracer(shardscope::host_cuda::Tracer* tracer) { shardscope::host_cuda::g_tracer = tracer; }
std::uint32_t host_cuda_stream_number(cudaStream_t stream) { return of(stream).number(); }

cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaGetLastError() { return std::exchange(shardscope::host_cuda::t_last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return shardscope::host_cuda::t_last_error; }
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorNotReady ? "cudaErrorNotReady" : "error of host_cuda";
}
const char* cudaGetErrorString(cudaError_t) { return "error of host_cuda"; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* to, int) {
  *to = {};
  std::strcpy(to->name, "host threads");
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int) {
  std::snprintf(id, static_cast<std::size_t>(length), "0000:17:00.0");
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int) {
  switch (what) {
    case cudaDevAttrMultiProcessorCount:
      *value = 4;  // few, so that kernels that loop over their grid do
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = shardscope::host_cuda::compute_capability;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = 227 << 10;  // as on sm_90
      return cudaSuccess;
    default:
      return cudaErrorInvalidValue;
  }
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return *least = 0, *greatest = -5, cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = Memory::instance().left();
  *total = shardscope::host_cuda::kDeviceBytes;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long, cudaDriverEntryPointQueryResult*) {
  const bool known = std::strcmp(symbol, "cuStreamWaitValue64") == 0;
  *function = known ? reinterpret_cast<void*>(&shardscope::host_cuda::wait_value) : nullptr;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  *data = Memory::instance().take(bytes);
  if (*data == nullptr) return kept(cudaErrorMemoryAllocation);
  tell_memory(*data, bytes, false, false);
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  if (data == nullptr) return cudaSuccess;
  const std::size_t bytes = Memory::instance().give_back(data);
  if (bytes == 0) return cudaErrorInvalidValue;
  tell_memory(data, bytes, false, true);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
  *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*data == nullptr) return kept(cudaErrorMemoryAllocation);
  Memory::instance().pin(*data, bytes);
  tell_memory(*data, bytes, true, false);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* data) {
  tell_memory(data, Memory::instance().unpin(data), true, true);
  std::free(data);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* data, std::size_t bytes, unsigned) {
  Memory::instance().pin(data, bytes);
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* data) {
  Memory::instance().unpin(data);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = reinterpret_cast<cudaStream_t>(new Stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete &of(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const TracedWait traced(Wait::stream, of(stream).number());
  of(stream).wait();
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (auto recording = of(event).last()) of(stream).push([recording] { recording->wait(); });
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* to, const void* address) {
  Memory& memory = Memory::instance();
  *to = {};
  to->type = memory.holds(address)    ? cudaMemoryTypeDevice
             : memory.pinned(address) ? cudaMemoryTypeHost
                                      : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  Memory& memory = Memory::instance();
  const auto pageable = [&](const void* p) { return !memory.holds(p) && !memory.pinned(p); };
  const cudaMemcpyKind direction = !memory.holds(from) ? cudaMemcpyHostToDevice
                                   : memory.holds(to)  ? cudaMemcpyDeviceToDevice
                                                       : cudaMemcpyDeviceToHost;
  const TracedCall call(
      {.kind = Work::Kind::copy, .stream = of(stream).number(), .direction = direction, .bytes = bytes});
  if (pageable(from)) {  // read now, whatever the stream still waits for
    auto* first = static_cast<const std::byte*>(from);
    std::vector<std::byte> read(first, first + bytes);
    void* there = pageable(to) ? to : seen_by_device(to, "copy");
    of(stream).push(
        call.traced([there, read = std::move(read)] { std::memcpy(there, read.data(), read.size()); }));
    return cudaSuccess;
  }
  void* there = pageable(to) ? to : seen_by_device(to, "copy");
  const void* here = seen_by_device(from, "copy");
  of(stream).push(call.traced([=] { std::memcpy(there, here, bytes); }));
  if (pageable(to)) of(stream).wait();
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream) {
  void* there = seen_by_device(data, "memset");
  const TracedCall call({.kind = Work::Kind::set, .stream = of(stream).number(), .bytes = bytes});
  of(stream).push(call.traced([=] { std::memset(there, value, bytes); }));
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new Point);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  of(stream).push([recording = of(event).record()] { recording->reach(); });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const auto recording = of(event).last();
  if (!recording) return cudaSuccess;
  const bool reached = [&] {
    const std::lock_guard lock(recording->mutex);
    return recording->reached;
  }();
  const TracedWait traced(reached ? Wait::event : Wait::look_not_ready, UINT32_MAX);
  return reached ? cudaSuccess : kept(cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const TracedWait traced(Wait::event, UINT32_MAX);
  if (const auto recording = of(event).last()) recording->wait();
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const auto from = of(begin).last();
  const auto to = of(end).last();
  if (!from || !to) return cudaErrorInvalidResourceHandle;
  *milliseconds = static_cast<float>(static_cast<double>(to->at_ns - from->at_ns) * 1e-6);
  return cudaSuccess;
}
}
