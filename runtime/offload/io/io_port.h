// How requests reach the kernel: io_uring, or threads that block where io_uring is not to be had.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/offload/io/block_queue.h"
#include "runtime/plan/offload.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::offload {

/// Alignment of file offsets, lengths and memory: a page suits every device's direct input and output.
inline constexpr std::int64_t kIoAlignment = plan::kSwapBlockBytes;

/// Requests on one open file, from one thread at a time.
class IoPort {
 public:
  IoPort() = default;
  virtual ~IoPort() = default;
  IoPort(const IoPort&) = delete;
  IoPort& operator=(const IoPort&) = delete;

  /// Hands requests over; their memory belongs to the port until they are answered.
  virtual void submit(std::span<const IoRequest> requests) = 0;
  /// Waits for at least one answer and appends all there are.
  virtual void wait(std::vector<IoResult>& answers) = 0;
  /// "io_uring", "4 threads".
  [[nodiscard]] virtual std::string describe() const = 0;
};

/// At most `depth` requests are in flight at a time. Throws BackendError when the kernel refuses
/// io_uring.
[[nodiscard]] std::unique_ptr<IoPort> make_uring_port(int file, std::uint32_t depth);
/// pread and pwrite on `depth` threads (at most 64).
[[nodiscard]] std::unique_ptr<IoPort> make_thread_port(int file, std::uint32_t depth);
/// io_uring, or threads; `why` says in the second case what the kernel answered, else it is empty.
[[nodiscard]] std::unique_ptr<IoPort> make_io_port(int file, std::uint32_t depth, std::string& why);

/// Requests in flight that `aio` asks for: queue_depth for each of intra_op_parallelism.
[[nodiscard]] std::uint32_t io_depth(const plan::AioConfig& aio) noexcept;

/// Moves all of `parts` and returns. single_submit: one request per call into the kernel; overlap_events: a
/// new request for each answer, instead of a full queue after an empty one. Throws BackendError naming
/// `file`, offset and cause, once nothing is in flight any more.
void run_transfer(IoPort& port, IoDirection direction, std::span<const IoPart> parts,
                  const plan::AioConfig& aio, const std::string& file);

}  // namespace shardscope::offload
