// A job that uses NCCL: loads the plugin and plays collectives. `nccl_player RANK WORLD COLLECTIVES [first]`.
// Without `first` it knows nothing of Shardscope, and ends without destroying its communicators, as many do.
// With it the job has a run and says which collective its calls are of: `first` and those after it.
#include <cstdio>
#include <cstdlib>

#include "shardscope/shardscope.h"
#include "tests/instrumentation/nccl_profiler/fake_nccl.h"

using namespace shardscope::nccl_profiler;

namespace {

shardscope_run* start_run(int rank, int world) {
  shardscope_run_info info = SHARDSCOPE_RUN_INFO_INIT;
  info.run_id = "joined";
  info.rank = static_cast<std::uint32_t>(rank);
  info.world = info.local_world = static_cast<std::uint32_t>(world);
  shardscope_options options = SHARDSCOPE_OPTIONS_INIT;
  options.detail = SHARDSCOPE_DETAIL_KERNELS;
  options.linger_s = 10;
  shardscope_run* run = nullptr;
  if (shardscope_run_create(&info, &run) != SHARDSCOPE_OK ||
      shardscope_start(run, &options) != SHARDSCOPE_OK) {
    std::fprintf(stderr, "nccl_player: %s\n", shardscope_last_error());
    std::exit(1);
  }
  return run;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  const int rank = std::atoi(argv[1]), world = std::atoi(argv[2]), collectives = std::atoi(argv[3]);
  shardscope_run* const run = argc == 5 ? start_run(rank, world) : nullptr;
  // Static: still referred to at the end, so that no leak checker takes them for lost.
  static auto* world_comm = new FakeComm(FakeComm::Version::v5, 0x5EED, world, rank, "world");
  static auto* other_comm = new FakeComm(FakeComm::Version::v5, 0x0DD, world, rank, "other");
  for (int i = 0; i < collectives; ++i) {
    Played played{.function = i % 2 == 0 ? "AllGather" : "ReduceScatter",
                  .count = 100,
                  .channels = 2,
                  .sequence = static_cast<std::uint64_t>(i / 2)};
    if (run != nullptr) shardscope_nccl_calls(static_cast<std::uint32_t>(std::atoi(argv[4]) + i));
    void* call = world_comm->call(played);
    if (run != nullptr) shardscope_nccl_calls(SHARDSCOPE_NO_ID);
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
  if (run == nullptr) return 0;
  world_comm->finalize();
  other_comm->finalize();
  shardscope_finish(run, 0, "done");
  shardscope_run_destroy(run);
  return 0;
}
