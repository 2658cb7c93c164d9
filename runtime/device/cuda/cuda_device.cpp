#include <sys/mman.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "runtime/device/cpu/stream.h"
#include "runtime/device/cuda/check.h"
#include "runtime/device/cuda/stream.h"
#include "runtime/device/device.h"

namespace shardscope::device {
namespace cuda {
namespace {

using instrumentation::MemoryPool;
using instrumentation::StreamId;

class DeviceArena final : public Arena {
 public:
  explicit DeviceArena(std::string where) : Arena(MemoryPool::device), where_(std::move(where)) {}
  ~DeviceArena() override { release_segments(); }

 protected:
  void* raw_allocate(std::size_t bytes) override {
    void* data = nullptr;
    const cudaError_t result = cudaMalloc(&data, bytes);
    if (result == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // so that the next check does not find it
      return nullptr;
    }
    check(result, "cudaMalloc", where_);
    return data;
  }
  void raw_free(void* data, std::size_t) noexcept override { cudaFree(data); }

 private:
  const std::string where_;
};

class PinnedArena final : public Arena {
 public:
  explicit PinnedArena(std::string where) : Arena(MemoryPool::pinned), where_(std::move(where)) {}
  ~PinnedArena() override { release_segments(); }

 protected:
  void* raw_allocate(std::size_t bytes) override {
    void* data = nullptr;
    const cudaError_t result = cudaHostAlloc(&data, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
    if (result == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return nullptr;
    }
    check(result, "cudaHostAlloc", where_);
    return data;
  }
  void raw_free(void* data, std::size_t) noexcept override { cudaFreeHost(data); }

 private:
  const std::string where_;
};

class HostArena final : public Arena {
 public:
  HostArena() : Arena(MemoryPool::host) {}
  ~HostArena() override { release_segments(); }

 protected:
  void* raw_allocate(std::size_t bytes) override {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? nullptr : data;
  }
  void raw_free(void* data, std::size_t bytes) noexcept override { munmap(data, bytes); }
};

std::string version_text(int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); }

/// Error message if there is no usable device, and what to do.
std::string no_device(cudaError_t found) {
  int driver = 0;
  int runtime = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  if (cudaRuntimeGetVersion(&runtime) != cudaSuccess) runtime = CUDART_VERSION;
  cudaGetLastError();
  if (driver == 0) return "this machine has no NVIDIA driver (libcuda.so.1); run with --device cpu";
  if (driver / 1000 < runtime / 1000) {
    return "the NVIDIA driver is for CUDA " + version_text(driver) +
           ", and this program needs one for CUDA " + std::to_string(runtime / 1000) +
           ".0 or newer (580 or newer for CUDA 13): update the driver or run with --device cpu";
  }
  return std::string(cudaGetErrorString(found)) +
         "; this machine has no usable CUDA device (see CUDA_VISIBLE_DEVICES), run with --device cpu";
}

/// Makes `ordinal` the thread's device and creates its context first.
int opened(int ordinal, const std::string& where) {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found == cudaErrorNoDevice || found == cudaErrorInsufficientDriver ||
      (found == cudaSuccess && count == 0)) {
    cudaGetLastError();
    throw BackendError("cudaGetDeviceCount", static_cast<int>(found), no_device(found), where);
  }
  check(found, "cudaGetDeviceCount", where);
  if (ordinal < 0 || ordinal >= count) {
    throw BackendError("cudaSetDevice", 0,
                       "device " + std::to_string(ordinal) + " was asked for, but there are " +
                           std::to_string(count) + "; see CUDA_VISIBLE_DEVICES",
                       where);
  }
  check(cudaSetDevice(ordinal), "cudaSetDevice", where);
  // A host thread that waits sleeps: several ranks and their publishers share the processor's cores.
  check(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync), "cudaSetDeviceFlags", where);
  check(cudaFree(nullptr), "cudaFree", where);
  return ordinal;
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(const CudaDeviceOptions& options)
      : where_("CUDA device " + std::to_string(options.ordinal)),
        ordinal_(opened(options.ordinal, where_)),
        stamper_(ordinal_, where_),
        words_(where_),
        memory_(where_),
        pinned_(where_),
        threads_(options.host_threads),
        shared_{ordinal_, std::make_shared<EventPool>(cudaEventDisableTiming | cudaEventBlockingSync, where_),
                &stamper_, &words_},
        compute_(StreamId::compute, 0, shared_, where_ + ", compute stream"),
        // Communication has priority: a collective that waits for a multiprocessor delays every rank.
        gather_(StreamId::gather, high_priority(), shared_, where_ + ", gather stream"),
        reduce_(StreamId::reduce, high_priority(), shared_, where_ + ", reduce stream"),
        copy_(StreamId::copy, 0, shared_, where_ + ", copy stream") {
    memory_.set_limit(options.memory_limit_bytes);
    constexpr std::size_t kBytes = kernels::cuda::Context::kWorkspaceBytes;
    const std::array<CudaStream*, 4> streams{&compute_, &gather_, &reduce_, &copy_};
    for (std::size_t i = 0; i < streams.size(); ++i) {
      workspaces_[i] = memory_.allocate(kBytes, {instrumentation::MemoryCategory::temporary}, *streams[i]);
      streams[i]->set_workspace(workspaces_[i].data());
    }
  }

  ~CudaDevice() override {
    // Queued work may use memory until the streams have ended; errors were for synchronize() to report.
    for (const CudaStream* stream : {&compute_, &gather_, &reduce_, &copy_})
      cudaStreamSynchronize(stream->handle());
    worker_.reset();
    nvme_.reset();
    for (Buffer& workspace : workspaces_) workspace.reset();
  }

  Stream& compute() override { return compute_; }
  Stream& gather() override { return gather_; }
  Stream& reduce() override { return reduce_; }
  Stream& copy() override { return copy_; }
  Stream& worker() override {
    if (!worker_) worker_.emplace(StreamId::worker, threads_);
    return *worker_;
  }
  Stream& nvme() override {
    if (!nvme_) nvme_.emplace(StreamId::nvme, 1);
    return *nvme_;
  }
  std::vector<Stream*> started_streams() override {
    std::vector<Stream*> streams{&compute_, &gather_, &reduce_, &copy_};
    if (worker_) streams.push_back(&*worker_);
    if (nvme_) streams.push_back(&*nvme_);
    return streams;
  }
  std::unique_ptr<Event> make_event() override { return std::make_unique<CudaEvent>(); }
  std::unique_ptr<Event> make_timed_event() override {
    return std::make_unique<CudaEvent>(CpuEvent::Timing::kept);
  }
  Arena& memory() override { return memory_; }
  Arena& pinned() override { return pinned_; }
  Arena& host() override { return host_; }

  void copy_async(void* dst, const void* src, std::size_t bytes, Stream& stream) override {
    if (bytes == 0 || dst == src) return;
    if (stream.backend() == kernels::Backend::cpu) {  // host memory on both sides
      stream.run([=](const kernels::Exec&) { std::memcpy(dst, src, bytes); });
      return;
    }
    const cudaStream_t handle = static_cast<CudaStream&>(stream).handle();
    // A copy of pageable memory waits for the stream inside the driver and blocks other threads there,
    // including the one that the stream waits for. So wait for the stream before.
    if (pageable(dst) || pageable(src)) check(cudaStreamSynchronize(handle), "cudaStreamSynchronize", where_);
    check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, handle), "cudaMemcpyAsync", where_);
  }

  std::optional<std::int64_t> stamp_residual_ns() const override { return stamper_.residual_ns(); }
  std::string describe() const override {
    cudaDeviceProp properties{};
    int driver = 0;
    int runtime = 0;
    check(cudaGetDeviceProperties(&properties, ordinal_), "cudaGetDeviceProperties", where_);
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion", where_);
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion", where_);
    const auto gib = static_cast<double>(properties.totalGlobalMem) / (1U << 30);
    return std::string(properties.name) + ", " + std::to_string(properties.multiProcessorCount) +
           " multiprocessors, " + std::to_string(static_cast<long>(gib + 0.5)) + " GiB, compute capability " +
           std::to_string(properties.major) + "." + std::to_string(properties.minor) + ", CUDA " +
           version_text(runtime) + " (driver " + version_text(driver) + ")";
  }
  kernels::Backend backend() const noexcept override { return kernels::Backend::cuda; }
  std::string pci_bus_id() const override {
    std::array<char, 32> id{};
    check(cudaDeviceGetPCIBusId(id.data(), static_cast<int>(id.size()), ordinal_), "cudaDeviceGetPCIBusId",
          where_);
    return id.data();
  }
  std::optional<std::size_t> outside_bytes() const override {
    std::size_t free = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo", where_);
    const std::size_t taken = total - free;
    const std::size_t ours = memory_.reserved_bytes();
    return taken > ours ? taken - ours : 0;
  }

 private:
  /// Whether this is host memory unknown to the driver: neither pinned nor of a device.
  bool pageable(const void* address) const {
    cudaPointerAttributes attributes{};
    check(cudaPointerGetAttributes(&attributes, address), "cudaPointerGetAttributes", where_);
    return attributes.type == cudaMemoryTypeUnregistered;
  }
  int high_priority() const {
    int least = 0;
    int greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange", where_);
    return greatest;
  }

  const std::string where_;
  const int ordinal_;
  Stamper stamper_;
  WaitWords words_;
  DeviceArena memory_;
  PinnedArena pinned_;
  HostArena host_;
  const int threads_;
  const CudaStream::Shared shared_;
  CudaStream compute_;
  CudaStream gather_;
  CudaStream reduce_;
  CudaStream copy_;
  std::array<Buffer, 4> workspaces_;
  std::optional<CpuStream> worker_, nvme_;  ///< made on first use, by the host thread
};

}  // namespace
}  // namespace cuda

int cuda_device_count() noexcept {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

std::unique_ptr<Device> make_cuda_device(const CudaDeviceOptions& options) {
  if (options.host_threads < 1) {
    throw BackendError("make_cuda_device", 0,
                       "host_threads is " + std::to_string(options.host_threads) + "; give 1 or more",
                       "device/cuda");
  }
  return std::make_unique<cuda::CudaDevice>(options);
}

}  // namespace shardscope::device
