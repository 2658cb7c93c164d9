#include <liburing.h>

#include <cerrno>
#include <cstring>

#include "runtime/device/error.h"
#include "runtime/offload/io/io_port.h"

namespace shardscope::offload {
namespace {

class UringPort final : public IoPort {
 public:
  UringPort(int file, std::uint32_t depth) : file_(file) {
    // The submission ring has room for `depth` entries, rounded up to a power of two, the completion ring for
    // twice as many: with at most `depth` in flight neither overflows.
    const int status = io_uring_queue_init(depth, &ring_, 0);
    if (status < 0) {
      throw BackendError("io_uring_queue_init", -status,
                         std::string("the kernel refuses io_uring: ") + std::strerror(-status), "offload/io");
    }
  }
  ~UringPort() override { io_uring_queue_exit(&ring_); }

  void submit(std::span<const IoRequest> requests) override {
    for (const IoRequest& request : requests) {
      io_uring_sqe* entry =
          io_uring_get_sqe(&ring_);  // never full: the ring has an entry for each request in flight
      const auto bytes = static_cast<unsigned>(request.part.bytes);
      const auto offset = static_cast<std::uint64_t>(request.part.offset);
      if (request.direction == IoDirection::read) {
        io_uring_prep_read(entry, file_, request.part.data, bytes, offset);
      } else {
        io_uring_prep_write(entry, file_, request.part.data, bytes, offset);
      }
      // After prep, which clears the entry. The id comes back with the completion. The field itself: liburing
      // before 2.2 sets pointers only.
      entry->user_data = request.id;
    }
    // The kernel may accept a part of the batch. EAGAIN and EBUSY are temporary; the entries stay in the ring
    // meanwhile.
    for (std::size_t left = requests.size(); left > 0;) {
      // Returns entries taken from the ring, or minus errno.
      const int taken = io_uring_submit(&ring_);
      if (taken == -EINTR || taken == -EAGAIN || taken == -EBUSY) continue;
      if (taken < 0) {
        throw BackendError("io_uring_submit", -taken, std::strerror(-taken), "offload/io");
      }
      left -= static_cast<std::size_t>(taken);
    }
  }

  void wait(std::vector<IoResult>& answers) override {
    io_uring_cqe* entry = nullptr;
    int status = 0;
    do {
      // A signal may interrupt the wait, without loss.
      status = io_uring_wait_cqe(&ring_, &entry);
    } while (status == -EINTR);
    if (status < 0) {
      throw BackendError("io_uring_wait_cqe", -status, std::strerror(-status), "offload/io");
    }
    do {
      // `res`: bytes moved, or minus errno, as IoResult has it.
      answers.push_back({static_cast<std::uint32_t>(entry->user_data), entry->res});
      // Returns the entry to the kernel, so its contents are read before.
      io_uring_cqe_seen(&ring_, entry);
      // All available ones, without another system call each.
    } while (io_uring_peek_cqe(&ring_, &entry) == 0);
  }

  [[nodiscard]] std::string describe() const override { return "io_uring"; }

 private:
  const int file_;
  io_uring ring_{};
};

}  // namespace

std::unique_ptr<IoPort> make_uring_port(int file, std::uint32_t depth) {
  return std::make_unique<UringPort>(file, depth);
}

/// Containers and hardened kernels deny io_uring (seccomp, kernel.io_uring_disabled); threads then perform
/// the same transfers.
std::unique_ptr<IoPort> make_io_port(int file, std::uint32_t depth, std::string& why) {
  why.clear();
  try {
    return make_uring_port(file, depth);
  } catch (const BackendError& refused) {
    why = refused.what();
    return make_thread_port(file, depth);
  }
}

}  // namespace shardscope::offload
