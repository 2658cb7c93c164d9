// NCCL operations in progress: a pool of fixed size, written by NCCL's threads and read by one of ours.
//
// [Note: handles]
// A handle given to NCCL is a number, never an address: a kind, a slot in the pool and the generation of the
// operation in it. NCCL reports on operations after it has stopped them, after their communicator is gone
// and, with PXN, with handles of another process; such a handle has a past generation and is ignored. One
// word per slot holds generation, users and state: a reporting thread is a user while it writes, and a slot
// with users is not reused.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "instrumentation/event.h"

namespace shardscope::nccl_profiler {

/// Kind in bits 60-63; the rest depends on the kind. Never a valid address: those have the upper bits clear.
enum class HandleKind : std::uint8_t {
  none = 0,
  call = 1,
  operation = 2,
  channel = 3,
  proxy = 4,
  context = 5
};

struct Handle {
  HandleKind kind = HandleKind::none;
  std::uint8_t channel = 0;
  std::uint32_t generation = 0;
  std::uint32_t index = 0;  ///< of an operation: below 65536; of a call: its sequence

  [[nodiscard]] void* pack() const noexcept;
  [[nodiscard]] static Handle unpack(const void* handle) noexcept;
};

/// Properties of an operation, known when it starts.
struct OperationFacts {
  std::uint32_t sequence = instrumentation::kNoId;
  std::uint32_t communicator = 0;  ///< index of the context
  instrumentation::NcclAlgorithm algorithm{};
  instrumentation::NcclProtocol protocol{};
  std::uint8_t planned_channels = 0, warps = 0;
  instrumentation::CollectiveOp op{};
  std::uint8_t type = 255;    ///< ElementType::code
  std::uint8_t channels = 0;  ///< channels that will be timed; 0: none
  std::int64_t elems = 0, bytes = 0;
  std::uint64_t nccl_sequence = 0;
  std::int64_t started_ns = 0;  ///< host
};
/// Reported times of its kernel and its network operations.
struct OperationTimes {
  std::uint32_t channels_timed = 0;
  std::uint64_t begin_gpu_ns = 0, first_end_gpu_ns = 0, end_gpu_ns = 0;  ///< if channels_timed > 0
  std::uint32_t proxies = 0;
  std::int64_t proxy_begin_ns = 0, proxy_end_ns = 0;  ///< host; if proxies > 0
};

class Operations {
 public:
  static constexpr std::size_t kPlaces = 4096;
  Operations();
  ~Operations();
  Operations(const Operations&) = delete;
  Operations& operator=(const Operations&) = delete;

  // ---- NCCL's threads: wait-free, no allocation --------------------------------------------------------
  /// Handle of a new operation, or null if there is no free slot: then it is counted as lost.
  [[nodiscard]] void* start(const OperationFacts& facts) noexcept;
  void stop(Handle operation) noexcept;
  /// Handle of a channel of its kernel, or null if the operation is past.
  [[nodiscard]] void* begin_channel(Handle operation, std::uint8_t channel, std::uint64_t gpu_ns,
                                    std::int64_t host_ns) noexcept;
  void end_channel(Handle channel, std::uint64_t gpu_ns, std::int64_t host_ns) noexcept;
  [[nodiscard]] void* begin_proxy(Handle operation, std::int64_t host_ns) noexcept;
  void end_proxy(Handle proxy, std::int64_t host_ns) noexcept;
  /// Stores the context of the communicator of a handle's operation; false if it is past.
  [[nodiscard]] bool communicator_of(Handle handle, std::uint32_t& context) noexcept;
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

  // ---- the one reader -----------------------------------------------------------------------------------
  struct Reader {
    virtual ~Reader() = default;
    virtual void started(const OperationFacts& facts) = 0;
    virtual void ended(const OperationFacts& facts, const OperationTimes& times) = 0;
  };
  /// Calls `reader` once for each started operation, in order of start, and once for each completed one: it
  /// has stopped and its channels have ended, or NCCL has reported nothing about it for `timeout_ns` before
  /// `now_ns`. Frees the slots of completed ones. Returns how many remain.
  std::size_t collect(Reader& reader, std::int64_t now_ns, std::int64_t timeout_ns);

 private:
  struct alignas(64) Place;
  class Use;
  [[nodiscard]] Place* place_of(Handle handle) noexcept;

  const std::unique_ptr<Place[]> places_;
  std::atomic<std::uint32_t> next_{0};
  std::atomic<std::uint64_t> lost_{0};
  std::vector<std::uint32_t> fresh_;  ///< used by the reader
};

}  // namespace shardscope::nccl_profiler
