// A transfer between host memory and a file as requests of at most block_size bytes: the next request, and
// the handling of each completion. Pure: performs no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shardscope::offload {

enum class IoDirection : std::uint8_t { read, write };

/// A contiguous piece of a file and its source or destination in host memory.
struct IoPart {
  std::int64_t offset = 0;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

struct IoRequest {
  IoDirection direction = IoDirection::read;
  IoPart part;
  std::uint32_t id = 0;  ///< of the request while it is in flight
};

/// Result of a request: bytes transferred, or minus errno.
struct IoResult {
  std::uint32_t id = 0;
  std::int64_t result = 0;
};

class BlockQueue {
 public:
  /// At most `depth` requests in flight. `parts` are divided into blocks of `block_bytes` in order.
  BlockQueue(IoDirection direction, std::span<const IoPart> parts, std::size_t block_bytes,
             std::uint32_t depth);

  /// The next request; nullopt while `depth` are in flight or when none is left.
  [[nodiscard]] std::optional<IoRequest> next();
  /// Handles a completion. The remainder of a short transfer is requested again; after EINTR and EAGAIN all
  /// of it. After a failure there are no more requests, and failure() describes the first one.
  void answer(IoResult result);

  [[nodiscard]] std::uint32_t in_flight() const noexcept { return in_flight_; }
  /// Whether nothing is in flight and no request is left.
  [[nodiscard]] bool done() const noexcept;

  struct Failure {
    int error = 0;  ///< errno; 0: the file ended
    IoPart part;
  };
  [[nodiscard]] const std::optional<Failure>& failure() const noexcept { return failure_; }

 private:
  [[nodiscard]] std::optional<IoPart> cut();

  const IoDirection direction_;
  const std::span<const IoPart> parts_;
  const std::size_t block_bytes_;
  std::size_t part_ = 0;       ///< being cut
  std::size_t cut_bytes_ = 0;  ///< of that part, requested already
  std::vector<IoPart> again_;  ///< remainders of short transfers
  std::vector<IoPart> asked_;  ///< by request id
  std::vector<std::uint32_t> free_ids_;
  std::uint32_t in_flight_ = 0;
  std::optional<Failure> failure_;
};

}  // namespace shardscope::offload
