// Transfers between memory and swap files: every byte arrives whatever the kernel answers, and what cannot
// arrive is an error that says why.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <random>

#include "runtime/device/error.h"
#include "runtime/offload/swap_space.h"

namespace shardscope::offload {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::byte> noise(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  std::minstd_rand random(7);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

class Folder {
 public:
  Folder() : path_(::testing::TempDir() + "shardscope-io-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp " + path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A file that is memory, and an operating system with scripted answers.
class FakePort final : public IoPort {
 public:
  explicit FakePort(std::size_t bytes) : file(bytes) {}
  /// What to answer to a request; the default moves everything.
  std::function<std::int64_t(const IoRequest&)> answer = [](const IoRequest& request) {
    return static_cast<std::int64_t>(request.part.bytes);
  };
  std::vector<std::byte> file;
  std::size_t submits = 0, most_in_flight = 0;

  void submit(std::span<const IoRequest> requests) override {
    ++submits;
    pending_.insert(pending_.end(), requests.begin(), requests.end());
    most_in_flight = std::max(most_in_flight, pending_.size());
  }
  void wait(std::vector<IoResult>& answers) override {
    ASSERT_FALSE(pending_.empty()) << "waits for nothing";
    const IoRequest request = pending_.back();  // not in the order of asking
    pending_.pop_back();
    const std::int64_t result = answer(request);
    if (result > 0) {
      std::byte* at = file.data() + request.part.offset;
      if (request.direction == IoDirection::read) {
        std::memcpy(request.part.data, at, static_cast<std::size_t>(result));
      } else {
        std::memcpy(at, request.part.data, static_cast<std::size_t>(result));
      }
    }
    answers.push_back({request.id, result});
  }
  [[nodiscard]] std::string describe() const override { return "fake"; }
  [[nodiscard]] bool idle() const { return pending_.empty(); }

 private:
  std::deque<IoRequest> pending_;
};

plan::AioConfig blocks_of(std::int64_t bytes, std::int64_t depth = 4) {
  plan::AioConfig aio;
  aio.block_size = bytes;
  aio.queue_depth = depth;
  return aio;
}

TEST(Transfer, KeepsTheQueueAsDeepAsAskedAndNoDeeper) {
  FakePort port(100000);
  std::vector<std::byte> data = noise(90000);
  const std::vector<IoPart> parts{{0, data.data(), 50000}, {60000, data.data() + 50000, 40000}};
  run_transfer(port, IoDirection::write, parts, blocks_of(4096, 3), "test");
  EXPECT_EQ(port.most_in_flight, 3U);
  EXPECT_EQ(std::memcmp(port.file.data(), data.data(), 50000), 0);
  EXPECT_EQ(std::memcmp(port.file.data() + 60000, data.data() + 50000, 40000), 0);
}

TEST(Transfer, SubmitsOneByOneOrInBatches) {
  std::vector<std::byte> data(8 * 4096);
  const std::vector<IoPart> parts{{0, data.data(), data.size()}};
  plan::AioConfig aio = blocks_of(4096, 4);
  aio.overlap_events = false;  // full queue, empty queue, full queue
  FakePort batches(data.size());
  run_transfer(batches, IoDirection::read, parts, aio, "test");
  EXPECT_EQ(batches.submits, 2U);
  aio.single_submit = true;
  FakePort single(data.size());
  run_transfer(single, IoDirection::read, parts, aio, "test");
  EXPECT_EQ(single.submits, 8U);
  aio.overlap_events = true;  // refilled after every answer
  FakePort overlapped(data.size());
  run_transfer(overlapped, IoDirection::read, parts, aio, "test");
  EXPECT_EQ(overlapped.submits, 8U);
  EXPECT_EQ(overlapped.most_in_flight, 4U);
}

TEST(Transfer, AsksAgainForWhatAShortAnswerLeft) {
  FakePort port(40960);
  port.file = noise(port.file.size());
  std::size_t asked = 0;
  port.answer = [&](const IoRequest& request) -> std::int64_t {
    ++asked;
    if (asked % 5 == 1) return -EINTR;
    if (asked % 5 == 2) return -EAGAIN;
    return static_cast<std::int64_t>((request.part.bytes + 1) / 2);
  };
  std::vector<std::byte> data(port.file.size());
  const std::vector<IoPart> parts{{0, data.data(), data.size()}};
  run_transfer(port, IoDirection::read, parts, blocks_of(4096), "test");
  EXPECT_EQ(data, port.file);
}

TEST(Transfer, FailsOnceNothingIsInFlight) {
  std::vector<std::byte> data(16 * 4096);
  const std::vector<IoPart> parts{{0, data.data(), data.size()}};
  const auto failing = [&](FakePort& port, IoDirection direction, std::int64_t result) {
    port.answer = [result, n = 0](const IoRequest& request) mutable -> std::int64_t {
      return ++n == 6 ? result : static_cast<std::int64_t>(request.part.bytes);
    };
    run_transfer(port, direction, parts, blocks_of(4096), "/disk");
  };
  FakePort broken(data.size());
  EXPECT_THAT([&] { failing(broken, IoDirection::read, -EIO); },
              ThrowsMessage<BackendError>(AllOf(HasSubstr("/disk: cannot read 4096 bytes at offset"),
                                                HasSubstr("Input/output error"))));
  EXPECT_TRUE(broken.idle()) << "the kernel would still write to memory that is given back";
  FakePort ended(data.size());
  EXPECT_THAT([&] { failing(ended, IoDirection::read, 0); },
              ThrowsMessage<BackendError>(HasSubstr("the file ends before")));
  FakePort full(data.size());
  EXPECT_THAT([&] { failing(full, IoDirection::write, -ENOSPC); },
              ThrowsMessage<BackendError>(HasSubstr("No space left")));
}

class Ports : public ::testing::TestWithParam<const char*> {};

TEST_P(Ports, BringBackWhatWasWritten) {
  const Folder folder;
  const int file = open((folder.path() + "/file").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  const std::uint32_t depth = 8;
  std::unique_ptr<IoPort> port;
  if (GetParam() == std::string("threads")) {
    port = make_thread_port(file, depth);
  } else {
    std::string why;
    port = make_io_port(file, depth, why);
    if (!why.empty()) GTEST_SKIP() << why;
  }
  const std::vector<std::byte> data = noise((3 << 20) + 5000);
  for (const bool single : {false, true}) {
    for (const bool overlap : {false, true}) {
      plan::AioConfig aio = blocks_of(64 << 10, depth);
      aio.single_submit = single;
      aio.overlap_events = overlap;
      std::vector<std::byte> copy = data;
      const std::vector<IoPart> out{{4096, copy.data(), 1 << 20},
                                    {4 << 20, copy.data() + (1 << 20), copy.size() - (1 << 20)}};
      run_transfer(*port, IoDirection::write, out, aio, folder.path());
      std::fill(copy.begin(), copy.end(), std::byte{0});
      run_transfer(*port, IoDirection::read, out, aio, folder.path());
      EXPECT_EQ(copy, data) << port->describe() << " single " << single << " overlap " << overlap;
    }
  }
  std::vector<std::byte> beyond(4096);
  const std::vector<IoPart> outside{{64 << 20, beyond.data(), beyond.size()}};
  EXPECT_THROW(run_transfer(*port, IoDirection::read, outside, blocks_of(4096), "x"), BackendError);
  port.reset();
  close(file);
  const std::vector<IoPart> closed{{0, beyond.data(), beyond.size()}};
  port = make_thread_port(file, 1);
  EXPECT_THAT([&] { run_transfer(*port, IoDirection::write, closed, blocks_of(4096), "x"); },
              ThrowsMessage<BackendError>(HasSubstr("Bad file descriptor")));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Ports, ::testing::Values("io_uring", "threads"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(SwapSpace, KeepsPiecesApartAndLeavesNothingBehind) {
  const Folder folder;
  const auto device = device::make_cpu_device(nullptr);
  {
    SwapSpace space(*device, folder.path(), {});
    device::Buffer first = space.reserve(10000, {});
    device::Buffer second = space.reserve(3 << 20, {});
    IoBuffer memory(device->host(), 3 << 20, {}, device->nvme());
    std::memset(memory.data(), 1, 3 << 20);
    const std::size_t bytes = io_round(10000);
    space.queue(IoDirection::write, {{SwapSpace::position(second), memory.data(), 3 << 20}}, {}, 0);
    space.queue(IoDirection::read, {{SwapSpace::position(first), memory.data(), bytes}}, {}, 0);
    device->nvme().synchronize();
    EXPECT_EQ(std::count(memory.data(), memory.data() + bytes, std::byte{0}),
              static_cast<std::ptrdiff_t>(bytes))
        << "what was never written is zero";
    EXPECT_EQ(memory.data()[bytes], std::byte{1});
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "the file has no name even while it is open";
  }
}

TEST(SwapSpace, SaysWhatIsWrongWithAFolder) {
  const auto device = device::make_cpu_device(nullptr);
  EXPECT_THAT(
      [&] { SwapSpace space(*device, "/nowhere/at/all", {}); },
      ThrowsMessage<BackendError>(AllOf(HasSubstr("nvme_path /nowhere/at/all: cannot make a swap file"),
                                        HasSubstr("No such file or directory"))));
}

TEST(SwapSpace, FindsAFullDiskBeforeItIsUsed) {
  const Folder folder;
  const auto device = device::make_cpu_device(nullptr);
  const bool mounted = mount("none", folder.path().c_str(), "tmpfs", 0, "size=1m") == 0;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  if (!mounted) {  // without the right to mount, a limit on files stands for the end of the disk
    signal(SIGXFSZ, SIG_IGN);
    const rlimit small{1 << 20, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  {
    SwapSpace space(*device, folder.path(), {});
    EXPECT_THAT(
        [&] { (void)space.reserve(64 << 20, {}); },
        ThrowsMessage<BackendError>(AllOf(HasSubstr("nvme_path " + folder.path() + ": cannot reserve"),
                                          HasSubstr("name another disk"))));
  }
  if (mounted) {
    umount(folder.path().c_str());
  } else {
    setrlimit(RLIMIT_FSIZE, &before);
  }
}

}  // namespace
}  // namespace shardscope::offload
