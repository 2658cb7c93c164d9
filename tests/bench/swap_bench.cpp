// NVMe swap through the runtime against what the same file system gives to fio and to a bare io_uring loop:
// same folder, same bytes, same block size and depth, same run, alternating.
//   swap_bench FOLDER [MIB=1024] [ROUNDS=5] [BLOCK_KIB=1024] [DEPTH=8] [TRANSFER_MIB=96]
// TRANSFER_MIB: of one swap operation, as a tile of master weights, momentum and variance would be.
#include <fcntl.h>
#include <liburing.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/offload/swap_space.h"
#include "tests/bench/timing.h"

namespace {

using namespace shardscope;  // NOLINT(google-build-using-namespace): a program of its own
using offload::IoDirection;

struct Settings {
  std::string folder;
  std::size_t bytes = 0, block = 0, transfer = 0;
  std::uint32_t depth = 0;
};

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

/// The pattern with no runtime: a file, a ring, `depth` blocks in flight.
class Bare {
 public:
  explicit Bare(const Settings& settings) : settings_(settings) {
    std::string path = settings.folder + "/swap-bench-XXXXXX";
    file_ = mkostemp(path.data(), O_DIRECT);
    if (file_ < 0) fail("bare: open");
    unlink(path.c_str());
    if (posix_fallocate(file_, 0, static_cast<off_t>(settings.bytes)) != 0) fail("bare: fallocate");
    if (io_uring_queue_init(settings.depth, &ring_, 0) != 0) fail("bare: io_uring");
    memory_ = static_cast<char*>(mmap(nullptr, settings.transfer, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  }
  void run(IoDirection direction) {
    std::size_t next = 0;
    std::uint32_t in_flight = 0;
    while (next < settings_.bytes || in_flight > 0) {
      bool asked = false;
      for (; next < settings_.bytes && in_flight < settings_.depth; next += settings_.block, ++in_flight) {
        io_uring_sqe* entry = io_uring_get_sqe(&ring_);
        char* data = memory_ + next % settings_.transfer;
        const auto bytes = static_cast<unsigned>(settings_.block);
        if (direction == IoDirection::read) {
          io_uring_prep_read(entry, file_, data, bytes, next);
        } else {
          io_uring_prep_write(entry, file_, data, bytes, next);
        }
        asked = true;
      }
      if (asked) io_uring_submit(&ring_);
      io_uring_cqe* answer = nullptr;
      if (io_uring_wait_cqe(&ring_, &answer) != 0) fail("bare: wait");
      do {
        if (answer->res != static_cast<int>(settings_.block)) fail("bare: short transfer");
        io_uring_cqe_seen(&ring_, answer);
        --in_flight;
      } while (io_uring_peek_cqe(&ring_, &answer) == 0);
    }
  }

 private:
  const Settings settings_;
  int file_ = -1;
  io_uring ring_{};
  char* memory_ = nullptr;
};

/// What a rank does: transfers queued on the nvme stream, from and to swap buffers.
class Runtime {
 public:
  explicit Runtime(const Settings& settings)
      : settings_(settings),
        device_(device::make_cpu_device(nullptr)),
        space_(*device_, settings.folder, aio()) {
    for (std::size_t at = 0; at < settings.bytes; at += settings.transfer) {
      places_.push_back(space_.reserve(settings.transfer, {}));
    }
    for (int i = 0; i < 2; ++i) {
      buffers_.emplace_back(device_->pinned(), settings.transfer, device::MemoryTag{}, device_->nvme());
      std::memset(buffers_.back().data(), 1, settings.transfer);
    }
  }
  void run(IoDirection direction) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      space_.queue(direction,
                   {{offload::SwapSpace::position(places_[i]), buffers_[i % 2].data(), settings_.transfer}},
                   {}, 1);
    }
    device_->nvme().synchronize();
  }
  [[nodiscard]] std::string describe() const { return space_.describe(); }

 private:
  [[nodiscard]] plan::AioConfig aio() const {
    plan::AioConfig config;
    config.block_size = static_cast<std::int64_t>(settings_.block);
    config.queue_depth = settings_.depth;
    return config;
  }
  const Settings settings_;
  std::unique_ptr<device::Device> device_;
  offload::SwapSpace space_;
  std::vector<device::Buffer> places_;
  std::vector<offload::IoBuffer> buffers_;
};

/// Bytes per second of fio; 0 where it is not installed.
double fio(const Settings& settings, IoDirection direction) {
  const std::string rw = direction == IoDirection::read ? "read" : "write";
  const std::string command = "fio --name=swap --filename=" + settings.folder + "/swap-bench-fio --rw=" + rw +
                              " --ioengine=io_uring --direct=1 --bs=" + std::to_string(settings.block) +
                              " --iodepth=" + std::to_string(settings.depth) +
                              " --size=" + std::to_string(settings.bytes) +
                              " --fallocate=posix --overwrite=0 --output-format=json 2>/dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char chunk[4096];
  for (std::size_t got = 0; (got = fread(chunk, 1, sizeof chunk, pipe)) > 0;) text.append(chunk, got);
  if (pclose(pipe) != 0) return 0;
  const auto report = nlohmann::json::parse(text.substr(text.find('{')));
  return report["jobs"][0][rw]["bw_bytes"].get<double>();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: swap_bench FOLDER [MIB] [ROUNDS] [BLOCK_KIB] [DEPTH] [TRANSFER_MIB]\n");
    return 2;
  }
  const auto argument = [&](int i, std::size_t fallback) {
    return argc > i ? static_cast<std::size_t>(std::atoll(argv[i])) : fallback;
  };
  Settings settings;
  settings.folder = argv[1];
  settings.bytes = argument(2, 1024) << 20;
  const std::size_t rounds = argument(3, 5);
  settings.block = argument(4, 1024) << 10;
  settings.depth = static_cast<std::uint32_t>(argument(5, 8));
  settings.transfer = argument(6, 96) << 20;
  settings.bytes = settings.bytes / settings.transfer * settings.transfer;

  Bare bare(settings);
  Runtime runtime(settings);
  std::printf("%zu MiB in transfers of %zu MiB; runtime: %s\n", settings.bytes >> 20, settings.transfer >> 20,
              runtime.describe().c_str());
  for (const IoDirection direction : {IoDirection::write, IoDirection::read}) {
    std::vector<double> with_runtime, without, with_fio;
    bare.run(direction);  // once unmeasured: the first write also makes the file's blocks real
    runtime.run(direction);
    for (std::size_t round = 0; round < rounds; ++round) {
      const auto total = static_cast<double>(settings.bytes);
      without.push_back(total / seconds([&] { bare.run(direction); }));
      with_runtime.push_back(total / seconds([&] { runtime.run(direction); }));
      with_fio.push_back(fio(settings, direction));
    }
    const double ours = median(with_runtime);
    std::printf("%-5s runtime %8.1f MB/s; bare io_uring %8.1f (%.0f %%); fio %8.1f (%.0f %%)\n",
                direction == IoDirection::read ? "read" : "write", ours / 1e6, median(without) / 1e6,
                100 * ours / median(without), median(with_fio) / 1e6, 100 * ours / median(with_fio));
  }
  unlink((settings.folder + "/swap-bench-fio").c_str());
  return 0;
}
