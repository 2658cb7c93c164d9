#include "runtime/offload/swap_space.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "kernels/cost.h"
#include "runtime/device/error.h"

namespace shardscope::offload {
namespace {

namespace ev = shardscope::instrumentation;

constexpr const char* kWhere = "offload/nvme";

/// The address that represents offset 0 of the file; never dereferenced.
constexpr std::uintptr_t kBase = kIoAlignment;

/// Opens an unnamed file. Without O_TMPFILE a named file is created and unlinked at once.
int open_unnamed(const std::string& folder, int flags) {
  int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);
  // EOPNOTSUPP: the file system has no O_TMPFILE. EISDIR, ENOENT: the kernel does not support it; a missing
  // folder fails below.
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return file;
  std::string path = folder + "/shardscope-XXXXXX";
  file = mkostemp(path.data(), O_CLOEXEC | flags);
  const int error = errno;
  if (file >= 0) unlink(path.c_str());
  errno = error;
  return file;
}

}  // namespace

IoBuffer::IoBuffer(device::Arena& pool, std::size_t bytes, device::MemoryTag tag, device::Stream& stream)
    // One block more than requested, so that data() can return an aligned address: arenas align to 256 bytes
    // only.
    : buffer_(pool.allocate(io_round(bytes) + static_cast<std::size_t>(kIoAlignment), tag, stream)) {}

std::byte* IoBuffer::data() const noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(buffer_.data());
  return reinterpret_cast<std::byte*>(io_round(address));
}

/// Allocates ranges of the file as an arena allocates memory, so that they are accounted alike: an "address"
/// is an offset plus kBase.
class SwapSpace::FileArena final : public device::Arena {
 public:
  FileArena(int file, const std::string& folder)
      : Arena(ev::MemoryPool::nvme), file_(file), folder_(folder) {}
  ~FileArena() override { release_segments(); }

 protected:
  void* raw_allocate(std::size_t bytes) override {
    // posix_fallocate, not ftruncate: a hole reserves no space, and a later write into it could fail.
    const int error = file_ < 0 ? 0 : posix_fallocate(file_, end_, static_cast<off_t>(bytes));
    if (error != 0) {
      throw BackendError("posix_fallocate", error,
                         "nvme_path " + folder_ + ": cannot reserve " + std::to_string(bytes) +
                             " bytes after " + std::to_string(end_) + ": " + std::strerror(error) +
                             ". Free space there or name another disk",
                         kWhere);
    }
    // Never null, which would mean exhausted, because of kBase. As kBase is a multiple of the alignment, an
    // aligned address is an aligned offset.
    return reinterpret_cast<void*>(
        kBase + static_cast<std::uintptr_t>(std::exchange(end_, end_ + static_cast<off_t>(bytes))));
  }
  void raw_free(void*, std::size_t) noexcept override {}  // the file is deleted as a whole

 private:
  const int file_;
  const std::string folder_;
  off_t end_ = 0;
};

SwapSpace::SwapSpace(device::Device& device, const std::string& folder, const plan::AioConfig& aio)
    : device_(device), aio_(aio), folder_(folder) {
  if (device.backend() == kernels::Backend::cost) {
    places_ = std::make_unique<FileArena>(file_, folder);
    return;
  }
  // Bypasses the page cache, which would use host memory for data read once per step.
  file_ = open_unnamed(folder, O_DIRECT);
  if (file_ < 0 && errno == EINVAL) {  // the file system has no direct I/O
    direct_ = false;
    file_ = open_unnamed(folder, 0);
  }
  if (file_ < 0) {
    throw BackendError("open", errno,
                       "nvme_path " + folder + ": cannot make a swap file: " + std::strerror(errno) +
                           ". Name a folder on a local disk that this user may write to",
                       kWhere);
  }
  // One port, used from the nvme stream's worker only.
  port_ = make_io_port(file_, io_depth(aio), why_threads_);
  places_ = std::make_unique<FileArena>(file_, folder);
}

SwapSpace::~SwapSpace() {
  try {
    // Queued transfers use the port, the file and host memory.
    device_.nvme().synchronize();
  } catch (...) {  // NOLINT(bugprone-empty-catch): reported where the step waited for it
  }
  // The arena first: it refers to the file. Then the port, whose ring refers to it too.
  places_.reset();
  port_.reset();
  if (file_ >= 0) close(file_);
}

device::Buffer SwapSpace::reserve(std::size_t bytes, device::MemoryTag tag) {
  // Ranges begin and end at whole blocks, so transfers of adjacent ranges never share one.
  return places_->allocate(io_round(bytes), tag, device_.nvme());
}

std::int64_t SwapSpace::position(const device::Buffer& place) noexcept {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(place.data()) - kBase);
}

void SwapSpace::queue(IoDirection direction, std::vector<IoPart> parts, TransferLabel label,
                      std::int64_t buffers_in_use) {
  std::int64_t bytes = 0;
  for (const IoPart& part : parts) bytes += static_cast<std::int64_t>(part.bytes);
  // For the event: queue depth of this transfer, at most that of the port.
  const std::int64_t blocks = (bytes + aio_.block_size - 1) / aio_.block_size;
  const auto kind =
      direction == IoDirection::read ? ev::TransferKind::nvme_read : ev::TransferKind::nvme_write;
  const ev::Fields<ev::EventKind::transfer_begin> fields{
      .transfer = kind,
      .param = label.param,
      .sub_group = label.group,
      .queue_depth = static_cast<std::uint32_t>(std::min<std::int64_t>(blocks, io_depth(aio_))),
      .bytes = bytes,
      .swap_buffers = buffers_in_use};
  device::Stream& stream = device_.nvme();
  // The timestamp is taken when the stream gets here, so waiting for `copied` or `closed` is not part of the
  // transfer.
  execution::emit_on<ev::EventKind::transfer_begin>(stream, fields);
  // run_transfer() blocks only the nvme stream's worker.
  stream.run([this, direction, bytes, moved = std::move(parts)](const kernels::Exec& exec) {
    if (exec.meter != nullptr) return exec.meter->add({.bytes = static_cast<double>(bytes)});
    run_transfer(*port_, direction, moved, aio_, folder_);
  });
  execution::emit_end_on<ev::EventKind::transfer_begin>(stream, fields);
}

std::string SwapSpace::describe() const {
  if (!port_) return "simulated, nothing is moved";
  std::string text = port_->describe() + (direct_ ? ", direct" : ", through the page cache");
  text += ", depth " + std::to_string(io_depth(aio_)) + " x " + std::to_string(aio_.block_size) + " bytes";
  if (!direct_) text += "; the file system of " + folder_ + " has no direct input and output (O_DIRECT)";
  if (!why_threads_.empty()) text += "; threads because " + why_threads_;
  return text;
}

}  // namespace shardscope::offload
