// How requests reach the kernel: io_uring, or blocking threads if io_uring is not available.
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

/// Alignment of file offsets, lengths and memory: a page suits direct I/O of every device.
inline constexpr std::int64_t kIoAlignment = plan::kSwapBlockBytes;

/// Requests on one open file, from one thread at a time.
class IoPort {
 public:
  IoPort() = default;
  virtual ~IoPort() = default;
  IoPort(const IoPort&) = delete;
  IoPort& operator=(const IoPort&) = delete;

  /// Submits requests; the port uses their memory until they complete.
  virtual void submit(std::span<const IoRequest> requests) = 0;
  /// Waits for at least one completion and appends all that are available.
  virtual void wait(std::vector<IoResult>& answers) = 0;
  /// "io_uring", "4 threads".
  [[nodiscard]] virtual std::string describe() const = 0;
};

/// At most `depth` requests are in flight at a time. Throws BackendError if the kernel denies io_uring.
[[nodiscard]] std::unique_ptr<IoPort> make_uring_port(int file, std::uint32_t depth);
/// pread and pwrite on `depth` threads (at most 64).
[[nodiscard]] std::unique_ptr<IoPort> make_thread_port(int file, std::uint32_t depth);
/// io_uring, or threads; in the second case `why` is the kernel's error, else empty.
[[nodiscard]] std::unique_ptr<IoPort> make_io_port(int file, std::uint32_t depth, std::string& why);

/// Maximum of requests in flight configured by `aio`: queue_depth for each of intra_op_parallelism.
[[nodiscard]] std::uint32_t io_depth(const plan::AioConfig& aio) noexcept;

/// Moves all of `parts` and returns. single_submit: one request per call into the kernel; overlap_events: a
/// new request after each completion, instead of refilling the queue when it is empty. Throws BackendError
/// naming `file`, offset and cause, once nothing is in flight any more.
void run_transfer(IoPort& port, IoDirection direction, std::span<const IoPart> parts,
                  const plan::AioConfig& aio, const std::string& file);

}  // namespace shardscope::offload
