// Collectives by NCCL among several ranks, over an NCCL of host threads (host_cuda/nccl.cpp): with real ones
// each rank needs a GPU of its own. What is tested is what we ask of NCCL and what becomes of failures.
#include <chrono>
#include <future>
#include <thread>

#include "runtime/comm/cuda/nccl_transport.h"
#include "runtime/device/error.h"
#include "tests/gpu/collective_checks.h"
#include "tests/gpu/gpu.h"
#include "tests/gpu/host_cuda/nccl.h"
#include "tests/runtime/comm/thread_ranks.h"

namespace shardscope::gpu {
namespace {

using namespace std::chrono_literals;
using instrumentation::kNoId;
using kernels::DType;
using testing::RankOutcome;

/// So long that a test in which anybody waits for it is ended by its own limit.
constexpr std::chrono::milliseconds kNever = 1h;

std::vector<RankOutcome> run_ranks(std::uint32_t size, std::chrono::milliseconds timeout,
                                   const std::function<void(comm::World&, device::Device&)>& body) {
  auto worlds = comm::make_thread_worlds(size, {});
  std::vector<RankOutcome> outcomes(size);
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      try {
        const auto device = device::make_cuda_device({});
        worlds[r]->set_adapter(
            [=](std::unique_ptr<comm::Transport> host, const std::string& name, const comm::Group& group) {
              return std::make_unique<comm::NcclTransport>(
                  std::move(host), name, r, static_cast<std::uint32_t>(group.members.size()), 0, timeout);
            });
        body(*worlds[r], *device);
      } catch (const std::exception& error) {
        outcomes[r].error = error.what();
        worlds[r]->fail(error.what());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return outcomes;
}

TEST(NcclRanks, EveryCollective) {
  for (const std::uint32_t world : {1U, 2U, 3U, 4U}) {
    for (const RankOutcome& outcome : run_ranks(world, kNever, check_all))
      EXPECT_EQ(outcome.error, "") << world;
  }
}

// A mean's factor travels as a number of the elements' type.
TEST(NcclRanks, MeansOfEveryType) {
  for (const std::uint32_t n : {2U, 3U, 4U}) {
    const auto outcomes = run_ranks(n, kNever, [n](comm::World& world, device::Device& device) {
      const auto comm = world.make_communicator("means");
      for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
        constexpr std::int64_t kElems = 100;
        const std::vector<float> mine(kElems, static_cast<float>(world.rank() + 1));
        const DeviceArray floats(device, mine.data(), mine.size() * sizeof(float));
        const DeviceArray values(device, mine.size() * sizeof(float));
        const auto cast = [&](kernels::Ptr to, kernels::ConstPtr from) {
          device.compute().run([=](const kernels::Exec& e) { kernels::cast(e, to, from, kElems); });
          device.compute().synchronize();
        };
        cast({values.data(), type}, {floats.data(), DType::f32});
        const comm::AllReducePart part{values.data(), kElems, kNoId};
        comm->all_reduce({&part, 1}, type, 1.0F / static_cast<float>(n), device.reduce(), {});
        device.reduce().synchronize();
        cast({floats.data(), DType::f32}, {values.data(), type});
        std::vector<float> got(kElems);
        floats.read(got.data(), 0, got.size() * sizeof(float));
        const double mean = (n + 1) / 2.0;
        // One rounding of the factor and one of the result.
        const double bound = mean * (type == DType::f32 ? 0x1p-22 : type == DType::f16 ? 0x1p-10 : 0x1p-7);
        for (const float value : got) ASSERT_NEAR(value, mean, bound) << n;
      }
    });
    for (const RankOutcome& outcome : outcomes) EXPECT_EQ(outcome.error, "") << n;
  }
}

TEST(NcclRanks, GathersOfAGroupInPlaceOfDifferentSizes) {
  const auto outcomes = run_ranks(3, kNever, [](comm::World& world, device::Device& device) {
    const auto comm = world.make_communicator("gathers");
    constexpr std::int64_t kShards[] = {7, 0, 1, 4096};
    std::int64_t elems = 0;
    for (const std::int64_t shard : kShards) elems += shard * world.size();
    std::vector<float> host(static_cast<std::size_t>(elems), -1);
    std::vector<float> want(host.size());
    std::int64_t begin = 0;
    for (const std::int64_t shard : kShards) {
      for (std::int64_t i = 0; i < shard * world.size(); ++i) {
        const auto at = static_cast<std::size_t>(begin + i);
        want[at] = static_cast<float>(at);
        if (i / shard == world.rank()) host[at] = want[at];
      }
      begin += shard * world.size();
    }
    const DeviceArray all(device, host.data(), host.size() * sizeof(float));
    std::vector<comm::GatherPart> parts;
    auto* next = static_cast<float*>(all.data());
    for (const std::int64_t shard : kShards) {
      parts.push_back({next + shard * world.rank(), next, shard, kNoId});
      next += shard * world.size();
    }
    comm->all_gather(parts, DType::f32, device.gather(), {});
    device.gather().synchronize();
    all.read(host.data(), 0, host.size() * sizeof(float));
    ASSERT_EQ(host, want);
  });
  for (const RankOutcome& outcome : outcomes) EXPECT_EQ(outcome.error, "");
}

// NCCL answers for the call; the group around it must not stay open, or it takes in whatever comes next.
TEST(NcclRanks, ACallThatIsRefusedLeavesNoGroupOpen) {
  const auto outcomes = run_ranks(2, kNever, [](comm::World& world, device::Device& device) {
    const auto comm = world.make_communicator("refused");
    std::vector<float> host(64, static_cast<float>(world.rank() + 1));
    const DeviceArray data(device, host.data(), host.size() * sizeof(float));
    const auto reduce = [&] {
      const comm::ReducePart part{data.data(), data.data(), 64, 1, kNoId};
      comm->reduce({&part, 1}, DType::f32, 1, device.reduce(), {});
    };
    host_cuda::refuse_next_operation = true;
    try {
      reduce();
      ADD_FAILURE() << "it was refused";
    } catch (const BackendError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("ncclReduce"));
    }
    reduce();
    device.reduce().synchronize();
    data.read(host.data(), 0, host.size() * sizeof(float));
    EXPECT_EQ(host[0], world.rank() == 1 ? 3 : 1);
  });
  for (const RankOutcome& outcome : outcomes) EXPECT_EQ(outcome.error, "");
}

/// One collective of `elems` for parameter `param` on each rank, with or without the checks.
std::vector<RankOutcome> reduce_once(bool checks, const std::function<std::int64_t(std::uint32_t)>& elems,
                                     const std::function<std::uint32_t(std::uint32_t)>& param) {
  return run_ranks(2, 2s, [&](comm::World& world, device::Device& device) {
    world.set_sanity_checks(checks);
    const auto comm = world.make_communicator("checked");
    const DeviceArray data(device, 4096);
    for (int call = 0; call < 2; ++call) {
      const bool last = call == 1;
      const comm::AllReducePart part{data.data(), last ? elems(world.rank()) : 64,
                                     last ? param(world.rank()) : kNoId};
      comm->all_reduce({&part, 1}, DType::f32, 1, device.reduce(), {});
      device.reduce().synchronize();
    }
  });
}

// NCCL compares nothing: parameters of one size that two ranks took for one another would be summed.
TEST(NcclRanks, WithSanityChecksADifferenceIsNamedBeforeNcclGetsIt) {
  const auto same = [](std::uint32_t) { return std::int64_t{32}; };
  const auto other = [](std::uint32_t rank) { return std::int64_t{32} + rank; };
  const auto first = [](std::uint32_t) { return 7U; };
  const auto swapped = [](std::uint32_t rank) { return 7U + rank; };
  for (const bool checks : {false, true}) {
    for (const RankOutcome& outcome : reduce_once(checks, same, first)) EXPECT_EQ(outcome.error, "");
  }
  for (const RankOutcome& outcome : reduce_once(false, same, swapped)) EXPECT_EQ(outcome.error, "");
  for (const RankOutcome& outcome : reduce_once(true, same, swapped)) {
    EXPECT_THAT(outcome.error, ::testing::HasSubstr("factors or parameters"));
  }
  for (const RankOutcome& outcome : reduce_once(true, other, first)) {
    EXPECT_THAT(
        outcome.error,
        ::testing::HasSubstr("communicator 'checked': rank 0 all_reduce of 1 part, 32 elements f32 (call 1), "
                             "rank 1 all_reduce of 1 part, 33 elements f32 (call 1)"));
  }
}

/// Queues collectives until one throws.
void reduce_until_told(comm::Communicator& comm, device::Device& device) {
  const DeviceArray data(device, 4096);
  const comm::AllReducePart part{data.data(), 1024, kNoId};
  for (;;) {
    comm.all_reduce({&part, 1}, DType::f32, 1, device.reduce(), {});
    std::this_thread::sleep_for(10ms);
  }
}

// The others are in a collective that it never enters: their kernels must leave, and no rank may wait for
// it once more when communicators are destroyed.
TEST(NcclRanks, ARankThatFailsFreesTheOthers) {
  const auto outcomes = run_ranks(3, kNever, [](comm::World& world, device::Device& device) {
    const auto comm = world.make_communicator("test");
    if (world.rank() == 1) throw BackendError("step", 0, "broke on purpose", "rank 1");
    reduce_until_told(*comm, device);
  });
  for (const RankOutcome& outcome : outcomes)
    EXPECT_THAT(outcome.error, ::testing::HasSubstr("broke on purpose"));
}

TEST(NcclRanks, ACollectiveThatDoesNotEndInTimeIsAbortedAndNamed) {
  std::promise<void> reported;
  const auto outcomes = run_ranks(2, 300ms, [&](comm::World& world, device::Device& device) {
    const auto comm = world.make_communicator("late");
    if (world.rank() == 1) {
      reported.get_future().wait();
      return;
    }
    try {
      reduce_until_told(*comm, device);
    } catch (...) {
      reported.set_value();
      throw;
    }
  });
  EXPECT_THAT(outcomes[0].error, ::testing::HasSubstr("did not come to its end in time"));
  EXPECT_THAT(outcomes[0].error, ::testing::HasSubstr("communicator 'late', rank 0"));
}

}  // namespace
}  // namespace shardscope::gpu
