// A rank that fails, dies, leaves or does something else: everybody ends, and knows why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <stdexcept>

#include "runtime/comm/shm/shm_world.h"
#include "runtime/comm/transport.h"
#include "runtime/device/error.h"
#include "tests/runtime/comm/thread_ranks.h"

namespace shardscope::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

comm::WorldOptions patient() {
  comm::WorldOptions options;
  options.timeout = std::chrono::minutes(10);  // a test that ends by this time-out has failed by ctest's
  return options;
}

void gather_once(comm::Communicator& communicator, device::Device& device, std::int64_t elems = 100) {
  const device::Buffer full = device.memory().allocate(
      static_cast<std::size_t>(elems) * communicator.world() * 4, {}, device.gather());
  auto* own = static_cast<float*>(full.data()) + elems * communicator.rank();
  const comm::GatherPart part{own, full.data(), elems, 0};
  communicator.all_gather({&part, 1}, kernels::DType::f32, device.gather(), {});
  device.gather().synchronize();
}

TEST(Failure, AThrowingRankEndsTheOthersWithItsMessage) {
  const auto outcomes = run_ranks(4, patient(), [](comm::World& world, device::Device& device) {
    const auto communicator = world.make_communicator("gather");
    gather_once(*communicator, device);
    if (world.rank() == 2) throw std::runtime_error("the data file is gone");
    gather_once(*communicator, device);
  });
  EXPECT_EQ(outcomes[2].error, "the data file is gone");
  for (const std::size_t r : {0U, 1U, 3U}) {
    EXPECT_THAT(outcomes[r].error, HasSubstr("rank 2 failed: the data file is gone"));
  }
}

TEST(Failure, ARankThatThrowsWithCollectivesUnderWayDoesNotHang) {
  // Rank 0 has a gather queued that the others never join; its own stack must still unwind.
  const auto outcomes = run_ranks(3, patient(), [](comm::World& world, device::Device& device) {
    const auto gather = world.make_communicator("gather");
    const auto reduce = world.make_communicator("reduce");
    device::Buffer full = device.memory().allocate(4096, {}, device.gather());
    if (world.rank() == 0) {
      const comm::GatherPart part{full.data(), full.data(), 8, 0};
      gather->all_gather({&part, 1}, kernels::DType::f32, device.gather(), {});
      throw std::runtime_error("out of ideas");
    }
    reduce->all_reduce(std::array{comm::AllReducePart{full.data(), 16}}, kernels::DType::f32, 1,
                       device.reduce(), {});
    device.synchronize();
  });
  EXPECT_EQ(outcomes[0].error, "out of ideas");
  EXPECT_THAT(outcomes[1].error, HasSubstr("rank 0 failed: out of ideas"));
  EXPECT_THAT(outcomes[2].error, HasSubstr("rank 0 failed: out of ideas"));
}

TEST(Failure, DifferentOperationsAreNamedOnEveryRank) {
  const auto outcomes = run_ranks(3, patient(), [](comm::World& world, device::Device& device) {
    const auto communicator = world.make_communicator("mixed");
    device::Buffer data = device.memory().allocate(4096, {}, device.reduce());
    if (world.rank() == 1) {
      communicator->all_reduce(std::array{comm::AllReducePart{data.data(), 64}}, kernels::DType::f32, 1,
                               device.reduce(), {9});
    } else {
      const comm::ReducePart part{data.data(), data.data(), 64, 0, 0};
      communicator->reduce({&part, 1}, kernels::DType::f32, 1, device.reduce(), {9});
    }
    device.synchronize();
  });
  for (const auto& outcome : outcomes) {
    EXPECT_THAT(
        outcome.error,
        AllOf(HasSubstr("communicator 'mixed'"), HasSubstr("rank 0 reduce of 1 part, 64 elements f32"),
              HasSubstr("rank 1 all_reduce of 1 part, 64 elements f32"), HasSubstr("group 9")));
  }
}

TEST(Failure, DifferentSizesAreNamedOnEveryRank) {
  const auto outcomes = run_ranks(2, patient(), [](comm::World& world, device::Device& device) {
    const auto communicator = world.make_communicator("gather");
    gather_once(*communicator, device, world.rank() == 1 ? 101 : 100);
  });
  for (const auto& outcome : outcomes) {
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("rank 0 all_gather of 1 part, 200 elements"),
                                     HasSubstr("rank 1 all_gather of 1 part, 202 elements")));
  }
}

TEST(Failure, DifferentRootsAreAMismatch) {
  const auto outcomes = run_ranks(2, patient(), [](comm::World& world, device::Device& device) {
    const auto communicator = world.make_communicator("reduce");
    device::Buffer data = device.memory().allocate(256, {}, device.reduce());
    const comm::ReducePart part{data.data(), data.data(), 8, world.rank(), 0};
    communicator->reduce({&part, 1}, kernels::DType::f32, 1, device.reduce(), {});
    device.synchronize();
  });
  for (const auto& outcome : outcomes) EXPECT_THAT(outcome.error, HasSubstr("other part sizes, roots"));
}

TEST(Failure, DifferentParametersOfOneSizeAreAMismatch) {
  const auto outcomes = run_ranks(2, patient(), [](comm::World& world, device::Device& device) {
    const auto communicator = world.make_communicator("reduce");
    device::Buffer data = device.memory().allocate(256, {}, device.reduce());
    const comm::ReducePart part{data.data(), data.data(), 8, 0, 7 + world.rank()};
    communicator->reduce({&part, 1}, kernels::DType::f32, 1, device.reduce(), {});
    device.synchronize();
  });
  for (const auto& outcome : outcomes) EXPECT_THAT(outcome.error, HasSubstr("factors or parameters"));
}

/// Queues a collective that no other rank enters, as NCCL's does on a device.
class Queueing final : public comm::Transport {
 public:
  Queueing(std::unique_ptr<comm::Transport> host, int& moved) : host_(std::move(host)), moved_(moved) {}
  [[nodiscard]] std::string describe() const override { return "queueing"; }
  void check_memory(const void*, std::size_t) const override {}
  [[nodiscard]] bool asynchronous() const noexcept override { return true; }
  [[nodiscard]] bool compares() const noexcept override { return false; }
  void enter(const comm::Collective&) override {}
  void move(const comm::Collective&, const kernels::Exec&) override { ++moved_; }
  void leave(const comm::Collective&) override {}
  void check_failure() const override { host_->check_failure(); }
  void abandon() noexcept override { host_->abandon(); }
  void host_all_gather(const char* what, std::span<const std::byte> mine, std::span<std::byte> all) override {
    ++exchanges;
    host_->host_all_gather(what, mine, all);
  }
  void host_broadcast(std::span<std::byte> bytes, std::uint32_t root) override {
    host_->host_broadcast(bytes, root);
  }
  static inline std::atomic<int> exchanges{0};

 private:
  std::unique_ptr<comm::Transport> host_;
  int& moved_;
};

struct QueuedRun {
  std::vector<RankOutcome> outcomes;
  int exchanges = 0;
  std::array<int, 2> moved{};  ///< collectives that the transport got, by rank
};
/// Two all-reduces, the second of `elems` for parameter `param`.
QueuedRun queue_two(bool checks, const std::function<comm::AllReducePart(std::uint32_t)>& second) {
  QueuedRun run;
  Queueing::exchanges = 0;
  run.outcomes = run_ranks(2, patient(), [&](comm::World& world, device::Device& device) {
    world.set_adapter([&](std::unique_ptr<comm::Transport> host, const std::string&, const comm::Group&) {
      return std::make_unique<Queueing>(std::move(host), run.moved[world.rank()]);
    });
    world.set_sanity_checks(checks);
    const auto communicator = world.make_communicator("queued");
    device::Buffer data = device.memory().allocate(256, {}, device.reduce());
    comm::AllReducePart first = second(0), other = second(world.rank());
    first.data = other.data = data.data();
    communicator->all_reduce({&first, 1}, kernels::DType::f32, 1, device.reduce(), {});
    communicator->all_reduce({&other, 1}, kernels::DType::f32, 1, device.reduce(), {});
    device.synchronize();
  });
  run.exchanges = Queueing::exchanges;
  return run;
}

// On a device ranks compare only on request, and then before the collective is queued.
TEST(Failure, WithSanityChecksQueuedCollectivesAreComparedToo) {
  const auto swapped = [](std::uint32_t rank) { return comm::AllReducePart{nullptr, 8, 7 + rank}; };
  const auto longer = [](std::uint32_t rank) { return comm::AllReducePart{nullptr, 8 + rank, 7}; };
  const auto same = [](std::uint32_t) { return comm::AllReducePart{nullptr, 8, 7}; };
  const auto errors = [](const QueuedRun& run) { return run.outcomes[0].error + run.outcomes[1].error; };
  for (const auto& second : {std::function<comm::AllReducePart(std::uint32_t)>(swapped), {longer}, {same}}) {
    const QueuedRun unchecked = queue_two(false, second);
    EXPECT_EQ(errors(unchecked), "");
    EXPECT_EQ(unchecked.exchanges, 0) << "it costs nothing while it is off";
    EXPECT_EQ(unchecked.moved, (std::array{2, 2}));
  }
  const QueuedRun alike = queue_two(true, same);
  EXPECT_EQ(errors(alike), "");
  EXPECT_EQ(alike.exchanges, 4);
  EXPECT_EQ(alike.moved, (std::array{2, 2}));
  for (const auto& [run, text] :
       {std::pair(queue_two(true, swapped), "factors or parameters"),
        std::pair(queue_two(true, longer), "rank 1 all_reduce of 1 part, 9 elements")}) {
    for (const auto& outcome : run.outcomes) {
      EXPECT_THAT(outcome.error, AllOf(HasSubstr("communicator 'queued'"), HasSubstr(text)));
    }
    EXPECT_EQ(run.moved, (std::array{1, 1})) << "the transport did not get what differs";
  }
}

TEST(Failure, DifferentHostCallsAreNamed) {
  const auto outcomes = run_ranks(2, patient(), [](comm::World& world, device::Device&) {
    const auto communicator = world.make_communicator("host");
    double value = 1;
    if (world.rank() == 0) {
      communicator->all_reduce_host({&value, 1});
    } else {
      communicator->barrier_host();
    }
  });
  for (const auto& outcome : outcomes) {
    EXPECT_THAT(outcome.error,
                AllOf(HasSubstr("rank 0 all_reduce_host of 8 bytes"), HasSubstr("rank 1 barrier_host")));
  }
}

TEST(Failure, CommunicatorsMadeInAnotherOrderAreNamed) {
  const auto outcomes = run_ranks(2, patient(), [](comm::World& world, device::Device&) {
    static_cast<void>(world.make_communicator(world.rank() == 0 ? "gather" : "reduce"));
  });
  for (const auto& outcome : outcomes) {
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("make gather"), HasSubstr("make reduce")));
  }
}

TEST(Failure, ARankThatDoesNotComeIsNamedAfterTheTimeOut) {
  comm::WorldOptions options;
  options.timeout = std::chrono::milliseconds(200);
  const auto outcomes = run_ranks(3, options, [](comm::World& world, device::Device& device) {
    const auto communicator = world.make_communicator("gather");
    if (world.rank() == 1) {
      while (world.first_failure().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    gather_once(*communicator, device);
  });
  EXPECT_EQ(outcomes[1].error, "");
  for (const std::size_t r : {0U, 2U}) {
    EXPECT_THAT(outcomes[r].error,
                AllOf(HasSubstr("rank 1 did not come to all_gather of 1 part, 300 elements"),
                      HasSubstr("within 200 ms")));
  }
}

TEST(Failure, MemoryThatPeersCannotReadIsRefused) {
  const auto outcomes = run_ranks(2, patient(), [](comm::World& world, device::Device& device) {
    const auto communicator = world.make_communicator("gather");
    std::array<float, 8> own{};
    communicator->all_reduce(std::array{comm::AllReducePart{own.data(), 8}}, kernels::DType::f32, 1,
                             device.reduce(), {});
  });
  for (const auto& outcome : outcomes) EXPECT_THAT(outcome.error, HasSubstr("Device::memory()"));
}

// ---- processes -------------------------------------------------------------------------------------------

/// Ranks that were forked: they exchange through a page they share.
class ForkBootstrap final : public comm::Bootstrap {
 public:
  struct Page {
    pthread_barrier_t barrier;
    std::array<std::array<std::byte, 64>, 8> offers;
    std::array<std::array<char, 512>, 8> errors;
    std::array<std::array<char, 512>, 8> first_failures;
  };
  ForkBootstrap(Page& page, std::uint32_t rank, std::uint32_t size) : page_(page), rank_(rank), size_(size) {}
  [[nodiscard]] std::uint32_t rank() const noexcept override { return rank_; }
  [[nodiscard]] std::uint32_t size() const noexcept override { return size_; }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    std::memcpy(page_.offers[rank_].data(), mine.data(), mine.size());
    pthread_barrier_wait(&page_.barrier);
    for (std::size_t r = 0; r < size_; ++r)
      std::memcpy(all.data() + r * mine.size(), page_.offers[r].data(), mine.size());
    pthread_barrier_wait(&page_.barrier);
  }

 private:
  Page& page_;
  std::uint32_t rank_;
  std::uint32_t size_;
};

class ProcessFailure : public ::testing::Test {
 protected:
  /// Exit status of every rank; what each rank threw is in page->errors.
  std::vector<int> run(std::uint32_t size, const std::function<void(comm::World&, device::Device&)>& body) {
    page = static_cast<ForkBootstrap::Page*>(mmap(nullptr, sizeof(ForkBootstrap::Page),
                                                  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&page->barrier, &attributes, size);
    std::vector<pid_t> children;
    for (std::uint32_t r = 0; r < size; ++r) {
      const pid_t pid = fork();
      if (pid == 0) {
        int code = 0;
        try {
          ForkBootstrap bootstrap(*page, r, size);
          const auto world = comm::make_process_world(bootstrap, patient());
          try {
            const auto device = device::make_cpu_device(world->region());
            body(*world, *device);
          } catch (const std::exception& error) {
            world->fail(error.what());
            std::strncpy(page->errors[r].data(), error.what(), 511);
            std::strncpy(page->first_failures[r].data(), world->first_failure().c_str(), 511);
            code = 3;
          }
        } catch (const std::exception& error) {
          std::strncpy(page->errors[r].data(), error.what(), 511);
          code = 4;
        }
        _exit(code);
      }
      children.push_back(pid);
    }
    std::vector<int> statuses;
    for (const pid_t pid : children) {
      int status = 0;
      waitpid(pid, &status, 0);
      statuses.push_back(status);
    }
    return statuses;
  }
  void TearDown() override { munmap(page, sizeof(ForkBootstrap::Page)); }
  ForkBootstrap::Page* page = nullptr;
};

TEST_F(ProcessFailure, ProcessesShareMemory) {
  const auto statuses = run(3, [](comm::World& world, device::Device& device) {
    const auto communicator = world.make_communicator("reduce");
    const device::Buffer data = device.memory().allocate(4000, {}, device.reduce());
    auto* values = static_cast<float*>(data.data());
    for (int i = 0; i < 1000; ++i) values[i] = static_cast<float>(world.rank() + 1);
    communicator->all_reduce(std::array{comm::AllReducePart{values, 1000}}, kernels::DType::f32, 1,
                             device.reduce(), {});
    device.synchronize();
    for (int i = 0; i < 1000; ++i) {
      if (values[i] != 6.0F) throw std::runtime_error("wrong sum");
    }
    communicator->barrier_host();
  });
  for (std::size_t r = 0; r < 3; ++r) EXPECT_EQ(statuses[r], 0) << page->errors[r].data();
}

TEST_F(ProcessFailure, AKilledRankEndsTheOthers) {
  const auto statuses = run(3, [](comm::World& world, device::Device& device) {
    const auto communicator = world.make_communicator("gather");
    gather_once(*communicator, device);
    if (world.rank() == 1) kill(getpid(), SIGKILL);
    gather_once(*communicator, device);
  });
  EXPECT_TRUE(WIFSIGNALED(statuses[1]));
  for (const std::size_t r : {0U, 2U}) {
    ASSERT_TRUE(WIFEXITED(statuses[r]));
    EXPECT_EQ(WEXITSTATUS(statuses[r]), 3);
    EXPECT_THAT(page->errors[r].data(), HasSubstr("rank 1 ended (killed, crashed or left early)"));
  }
  EXPECT_STREQ(page->first_failures[0].data(), page->first_failures[2].data());
}

TEST_F(ProcessFailure, AThrowingRankEndsTheOthersWithItsMessage) {
  const auto statuses = run(3, [](comm::World& world, device::Device& device) {
    const auto communicator = world.make_communicator("gather");
    gather_once(*communicator, device);
    if (world.rank() == 0) throw std::runtime_error("disk full");
    communicator->barrier_host();
  });
  for (std::size_t r = 0; r < 3; ++r) {
    ASSERT_TRUE(WIFEXITED(statuses[r]));
    EXPECT_EQ(WEXITSTATUS(statuses[r]), 3);
    EXPECT_STREQ(page->first_failures[r].data(), "rank 0 failed: disk full");
  }
}

TEST_F(ProcessFailure, ARankThatLeavesInOrderButEarlyIsNoticed) {
  const auto statuses = run(2, [](comm::World& world, device::Device& device) {
    const auto communicator = world.make_communicator("gather");
    if (world.rank() == 0) return;
    gather_once(*communicator, device);
  });
  EXPECT_EQ(statuses[0], 0);
  EXPECT_THAT(page->errors[1].data(), HasSubstr("rank 0 ended"));
}

}  // namespace
}  // namespace shardscope::testing
