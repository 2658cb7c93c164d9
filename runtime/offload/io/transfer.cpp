#include <algorithm>
#include <cstring>

#include "runtime/device/error.h"
#include "runtime/offload/io/io_port.h"

namespace shardscope::offload {

/// Each factor is limited to kMost first, so the product of two large settings does not overflow.
std::uint32_t io_depth(const plan::AioConfig& aio) noexcept {
  constexpr std::int64_t kMost = 4096;  // supported by every io_uring
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(
      std::min(aio.queue_depth, kMost) * std::min(aio.intra_op_parallelism, kMost), 1, kMost));
}

void run_transfer(IoPort& port, IoDirection direction, std::span<const IoPart> parts,
                  const plan::AioConfig& aio, const std::string& file) {
  // Whole pages, as direct I/O needs; one request cannot carry more than the limit.
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
  const std::int64_t block =
      std::min((aio.block_size + kIoAlignment - 1) / kIoAlignment * kIoAlignment, kMostBytes);
  // The port uses a request's memory until its completion: even after a failed request this loop ends only
  // when none is in flight.
  BlockQueue queue(direction, parts, static_cast<std::size_t>(block), io_depth(aio));
  std::vector<IoRequest> requests;
  std::vector<IoResult> answers;
  // One pass: create requests, submit them, wait for completions. With overlap_events one wait, then new
  // requests at once for the free ids; without it all completions first, so the device's queue drains between
  // passes.
  while (!queue.done()) {
    requests.clear();
    while (const std::optional<IoRequest> request = queue.next()) requests.push_back(*request);
    // Each request is submitted separately, instead of as a batch.
    if (aio.single_submit) {
      for (const IoRequest& request : requests) port.submit({&request, 1});
    } else if (!requests.empty()) {
      port.submit(requests);
    }
    do {
      answers.clear();
      port.wait(answers);
      for (const IoResult& answer : answers) queue.answer(answer);
    } while (!aio.overlap_events && queue.in_flight() > 0);
  }
  if (!queue.failure()) return;
  // The first failure; there were no later requests.
  const BlockQueue::Failure& failure = *queue.failure();
  const std::string what = direction == IoDirection::read ? "read" : "write";
  throw BackendError(
      what, failure.error,
      "swap file in " + file + ": cannot " + what + " " + std::to_string(failure.part.bytes) +
          " bytes at offset " + std::to_string(failure.part.offset) + ": " +
          (failure.error == 0 ? std::string("the file ends before") : std::strerror(failure.error)),
      "offload/nvme");
}

}  // namespace shardscope::offload
