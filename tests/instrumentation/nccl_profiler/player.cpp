// A job that knows nothing of Shardscope and uses NCCL: loads the plugin, plays collectives, and ends without
// destroying its communicators, as many do. `nccl_player RANK WORLD COLLECTIVES`.
#include <cstdio>
#include <cstdlib>

#include "tests/instrumentation/nccl_profiler/fake_nccl.h"

using namespace shardscope::nccl_profiler;

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int rank = std::atoi(argv[1]), world = std::atoi(argv[2]), collectives = std::atoi(argv[3]);
  // Static: still referred to at the end, so that no leak checker takes them for lost.
  static auto* world_comm = new FakeComm(FakeComm::Version::v5, 0x5EED, world, rank, "world");
  static auto* other_comm = new FakeComm(FakeComm::Version::v5, 0x0DD, world, rank, "other");
  for (int i = 0; i < collectives; ++i) {
    Played played{.function = i % 2 == 0 ? "AllGather" : "ReduceScatter",
                  .count = 100,
                  .channels = 2,
                  .sequence = static_cast<std::uint64_t>(i / 2)};
    void* call = world_comm->call(played);
    // NCCL makes gathers ones of bytes.
    Played enqueued = played;
    if (i % 2 == 0) {
      enqueued.count *= 2;
      enqueued.datatype = "ncclInt8";
    }
    void* handle = world_comm->collective(enqueued, call);
    world_comm->stop(call);
    // The first is reported late, so that there is something for the other communicator's to overlap with.
    const std::uint64_t begin = gpu_now() - (i == 0 ? 60'000'000 : 0);
    void* first = world_comm->channel(handle, 0, begin);
    void* second = world_comm->channel(handle, 1, begin);
    const std::uint64_t end = gpu_now() - (i == 0 ? 10'000'000 : 0);
    world_comm->end_channel(first, end);
    world_comm->end_channel(second, end);
    if (i == 0) {
      // At the same time on another communicator, on the same lane.
      void* overlapping = other_comm->collective(played, other_comm->call(played));
      other_comm->end_channel(other_comm->channel(overlapping, 0, begin), end);
      other_comm->end_channel(other_comm->channel(overlapping, 1, begin), end);
    }
  }
  return 0;
}
