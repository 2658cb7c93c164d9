// A device with streams, events and accounted memory, shaped so that CUDA fits without change: work is
// asynchronous and stream-ordered, and no code assumes that the host can access device memory.
//
// [Note: stream-ordered memory]
// A buffer belongs to the stream it was allocated on. Freeing it returns it to that stream at once, in
// host order: the next allocation on the same stream may reuse it, because work on one stream runs in
// order. A user of the buffer on another stream must first have made the owning stream wait for an
// event recorded there (FSDP2's rule). So the accounted figures are deterministic, and no host wait is
// needed to free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "instrumentation/event.h"
#include "kernels/types.h"

namespace shardscope::device {

class Stream;

/// A point in a stream's work. Re-recordable; waiting for an event never recorded returns at once.
class Event {
 public:
  virtual ~Event() = default;
  [[nodiscard]] virtual bool reached() const = 0;  ///< query, never waits
  virtual void host_wait() = 0;                    ///< blocks the calling thread; rethrows a stream's failure
};

/// Completes an event from the times at which its points were reached, in the order of `points` (nanoseconds
/// of the monotonic clock). Called on the thread that determines the times.
using Complete = void (*)(instrumentation::Event& event, std::span<const std::int64_t> reached_ns);

/// Runs work in order. All members are called from the rank's host thread.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Queues work. On the CPU the worker thread runs it; on CUDA it is run at once and launches on `exec`.
  virtual void run(std::function<void(const kernels::Exec&)> work) = 0;
  /// Later work on this stream starts after `event` as last recorded at the time of this call.
  virtual void wait(Event& event) = 0;
  virtual void record(Event& event) = 0;
  /// Emits `event` with the time at which this stream reaches this point. Dropped without cost when its
  /// detail level is off.
  virtual void emit(const instrumentation::Event& event) = 0;
  /// The same, for events computed from times: `complete` receives those of `points`, timed events as last
  /// recorded at the time of this call. Does not wait for them: this stream must be ordered after each.
  virtual void emit_timed(const instrumentation::Event& event, std::span<Event* const> points,
                          Complete complete) = 0;
  /// Blocks the host until everything queued has run; rethrows the first failure of this stream.
  virtual void synchronize() = 0;
  [[nodiscard]] virtual instrumentation::StreamId id() const noexcept = 0;
  [[nodiscard]] virtual kernels::Backend backend() const noexcept = 0;
};

/// What a buffer is for. Categories: metrics.md section 1.
struct MemoryTag {
  instrumentation::MemoryCategory category = instrumentation::MemoryCategory::temporary;
  std::uint32_t owner = instrumentation::kNoId;  ///< parameter or module id, for attribution
};

class Arena;

/// Owns a piece of an arena. Move-only; freeing follows [Note: stream-ordered memory].
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();
  [[nodiscard]] void* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] explicit operator bool() const noexcept { return data_ != nullptr; }
  void reset();  ///< frees now

 private:
  friend class Arena;
  Buffer(Arena* arena, void* data, std::size_t bytes, MemoryTag tag, Stream* stream);
  Arena* arena_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  MemoryTag tag_;
  Stream* stream_ = nullptr;
};

/// One pool's memory (device, host, pinned), cached per stream, accounted by category. The figures are the
/// requested sizes, rounded up to kAlignment; `reserved` includes the cache.
class Arena {
 public:
  static constexpr std::size_t kAlignment = 256;
  virtual ~Arena();
  /// Throws BackendError with the breakdown by category if the pool is exhausted.
  [[nodiscard]] Buffer allocate(std::size_t bytes, MemoryTag tag, Stream& stream);
  /// Moves the accounting of a live buffer to another category (a gradient becomes a shard, ...).
  void retag(Buffer& buffer, MemoryTag tag);
  /// Accounts `bytes` of a live buffer tagged `from` under `to` from now on, for a buffer that serves two
  /// purposes. Undo it (rebook back) before the buffer is freed or retagged.
  void rebook(std::size_t bytes, MemoryTag from, MemoryTag to);
  /// Emits the memory in use as allocations made now, one per category: for a publisher started after them.
  void emit_used() const noexcept;
  [[nodiscard]] std::size_t used_bytes() const noexcept;
  [[nodiscard]] std::size_t peak_bytes() const noexcept;
  [[nodiscard]] std::size_t used_bytes(instrumentation::MemoryCategory category) const noexcept;
  [[nodiscard]] std::size_t reserved_bytes() const noexcept;
  [[nodiscard]] instrumentation::MemoryPool pool() const noexcept;
  /// Maximum that the pool may allocate from the system (`reserved_bytes`); 0: no limit of its own.
  void set_limit(std::size_t bytes) noexcept;
  [[nodiscard]] std::size_t limit_bytes() const noexcept;
  /// Returns every segment without live buffers to the system; returns their bytes. Waits for the streams
  /// that own them, because their queued work may still use freed memory.
  std::size_t trim();
  /// "param_shard 1.25 GiB, activation 310 MiB": categories in use, largest first.
  [[nodiscard]] std::string breakdown() const;

 protected:
  friend class Buffer;
  struct State;
  explicit Arena(instrumentation::MemoryPool pool);
  /// Null if the backend has not enough memory left. `bytes` is a multiple of 4096.
  [[nodiscard]] virtual void* raw_allocate(std::size_t bytes) = 0;
  virtual void raw_free(void* data, std::size_t bytes) noexcept = 0;
  /// Every derived destructor calls this first, while its raw_free still exists.
  void release_segments() noexcept;
  std::unique_ptr<State> state_;

 private:
  void free(void* data, std::size_t bytes, MemoryTag tag) noexcept;
};

/// "param_shard", ... as in metrics.md section 1.
using instrumentation::name_of;

/// The device a rank computes on, with its four streams. CPU: worker threads. CUDA: cudaStream_t. In addition
/// there are two streams of host threads, on any device, for offloaded model states; they start on first use.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual Stream& compute() = 0;
  [[nodiscard]] virtual Stream& gather() = 0;
  [[nodiscard]] virtual Stream& reduce() = 0;
  [[nodiscard]] virtual Stream& copy() = 0;
  /// Arithmetic on host memory (Backend::cpu, the threads of a CPU device's compute stream).
  [[nodiscard]] virtual Stream& worker() = 0;
  /// Storage I/O; work on it may block.
  [[nodiscard]] virtual Stream& nvme() = 0;
  /// The streams started so far.
  [[nodiscard]] virtual std::vector<Stream*> started_streams() = 0;
  [[nodiscard]] virtual std::unique_ptr<Event> make_event() = 0;
  /// One that also remembers when it was reached, for Stream::emit_timed.
  [[nodiscard]] virtual std::unique_ptr<Event> make_timed_event() = 0;
  [[nodiscard]] virtual Arena& memory() = 0;  ///< device pool; on the CPU visible to the peers of this node
  [[nodiscard]] virtual Arena& pinned() = 0;
  [[nodiscard]] virtual Arena& host() = 0;  ///< pageable memory of the host
  /// dst and src may each be on the device or the host.
  virtual void copy_async(void* dst, const void* src, std::size_t bytes, Stream& stream) = 0;
  [[nodiscard]] virtual std::string describe() const = 0;  ///< for the hardware table
  /// Maximum error so far of the timestamps of stream events on the host's clock; nullopt if streams use the
  /// host's clock.
  [[nodiscard]] virtual std::optional<std::int64_t> stamp_residual_ns() const { return std::nullopt; }
  [[nodiscard]] virtual kernels::Backend backend() const noexcept = 0;
  /// The GPU's address on the PCI bus, "0000:17:00.0"; empty: not a GPU.
  [[nodiscard]] virtual std::string pci_bus_id() const { return {}; }
  /// Bytes of device memory in use according to the driver, but not allocated by this runtime: its context
  /// and libraries, other processes. nullopt if there is no driver to ask.
  [[nodiscard]] virtual std::optional<std::size_t> outside_bytes() const { return std::nullopt; }
  /// Waits for every stream that exists (end of run, pause).
  void synchronize();
};

/// CPU device. `region` is the memory that peers of the same node can read (runtime/comm makes it);
/// null: private memory (single rank, tests).
class SharedRegion {
 public:
  virtual ~SharedRegion() = default;
  [[nodiscard]] virtual std::span<std::byte> bytes() const noexcept = 0;
  virtual void discard(std::span<std::byte> pages) = 0;  ///< returns physical pages to the system
};
struct CpuDeviceOptions {
  SharedRegion* region = nullptr;
  int compute_threads = 1;  ///< threads a kernel of the compute stream may use
  std::size_t memory_limit_bytes =
      0;  ///< of the device pool; 0: the size of the region or of the system's memory
};
[[nodiscard]] std::unique_ptr<Device> make_cpu_device(const CpuDeviceOptions& options);
[[nodiscard]] std::unique_ptr<Device> make_cpu_device(SharedRegion* region);

struct CudaDeviceOptions {
  int ordinal = 0;                     ///< among the devices in CUDA_VISIBLE_DEVICES
  int host_threads = 1;                ///< threads a kernel of the worker stream may use
  std::size_t memory_limit_bytes = 0;  ///< of the device pool; 0: the device's memory
};
/// Number of CUDA devices this process may use; 0 in builds without CUDA.
[[nodiscard]] int cuda_device_count() noexcept;
/// Throws BackendError if there is no such device, and in builds without CUDA. The device must be used only
/// from the thread that created it.
[[nodiscard]] std::unique_ptr<Device> make_cuda_device(const CudaDeviceOptions& options);

}  // namespace shardscope::device
