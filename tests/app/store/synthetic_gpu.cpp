#include "tests/app/store/synthetic_gpu.h"

#include <algorithm>
#include <random>

#include "runtime/profile/open_spans.h"
#include "runtime/profile/record_join.h"

namespace shardscope::store {
namespace {

using ev::EventKind;
using ev::GpuOwner;
using ev::GpuWork;
using ev::StreamId;

constexpr std::uint32_t kComputeStream = 13, kGatherStream = 14, kReduceStream = 15;

/// Makes the records of one rank from its events, which it sees in the order of each lane.
class Gpu {
 public:
  explicit Gpu(std::uint32_t rank) : random_(rank + 1) {}

  void see(const ev::Event& event) {
    const auto at = static_cast<std::int64_t>(event.ticks);
    if (event.kind == EventKind::step_begin) step_ns_ = at;
    if (event.stream == StreamId::compute) compute(event, at);
    if (event.kind == EventKind::collective_begin) open_ns_ = at;
    if (event.kind == EventKind::collective_end && at > open_ns_) {
      const bool gathers = event.stream == StreamId::gather;
      const std::int64_t begin = std::max(open_ns_, free_[gathers ? 1 : 2]) + 1500;
      if (begin < at) {
        work(gathers ? 5 : 6, gathers ? kGatherStream : kReduceStream, begin, at, begin - 9000,
             {GpuOwner::collective, event.a});
        free_[gathers ? 1 : 2] = at;
      }
    }
  }
  profile::RecordBatch batch;

 private:
  /// Between two boundaries of the compute lane the module innermost has worked.
  void compute(const ev::Event& event, std::int64_t at) {
    const profile::Owner owner = waits_ ? profile::Owner{} : spans_.innermost();
    const bool boundary = ev::is_begin(event.kind) || ev::is_end(event.kind);
    if (boundary && owner.kind != GpuOwner::none && owner.kind != GpuOwner::phase)
      kernels(owner, last_ns_, at);
    if (event.kind == EventKind::fetch_wait_begin || event.kind == EventKind::reduce_wait_begin)
      waits_ = true;
    if (event.kind == EventKind::fetch_wait_end || event.kind == EventKind::reduce_wait_end) waits_ = false;
    (void)spans_.note(event);
    if (boundary) last_ns_ = at;
  }

  void kernels(profile::Owner owner, std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kShortest = 6000;
    const std::int64_t count = std::min<std::int64_t>(3, (end - begin) / kShortest);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t from = begin + (end - begin) * i / count;
      const std::int64_t to = begin + (end - begin) * (i + 1) / count;
      const bool late = random_() % 5 == 0;
      const std::int64_t start = std::max(from + (late ? (to - from) / 2 : 800), free_[0]);
      if (start >= to) continue;
      const auto name = owner.kind == GpuOwner::optimizer ? 4U : static_cast<std::uint32_t>(random_() % 4);
      work(name, kComputeStream, start, to, late ? start - 3500 : std::max(step_ns_, from - 40'000), owner);
      free_[0] = to;
    }
  }

  void work(std::uint32_t name, std::uint32_t stream, std::int64_t begin, std::int64_t end,
            std::int64_t launch, profile::Owner owner) {
    const std::uint32_t id = next_++;
    batch.launches.push_back({id, 1, launch, launch + 1});
    batch.owners.push_back({id, profile::owner_id(owner)});
    batch.work.push_back({GpuWork::kernel, name, stream, id, begin, end, 128 * 256, {}});
  }

  std::mt19937 random_;
  profile::OpenSpans spans_;
  bool waits_ = false;
  std::int64_t last_ns_ = 0, open_ns_ = 0, step_ns_ = 0;
  std::int64_t free_[3] = {};
  std::uint32_t next_ = 1;
};

}  // namespace

const std::vector<std::string>& gpu_names() {
  static const std::vector<std::string> names{"sm90_xmma_gemm_bf16bf16_bf16f32",
                                              "layer_norm<__nv_bfloat16>",
                                              "attention_forward<64>",
                                              "gelu<__nv_bfloat16>",
                                              "adamw<__nv_bfloat16>",
                                              "ncclDevKernel_AllGather_RING_LL",
                                              "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL"};
  return names;
}

Store make_synthetic_gpu_store(const SyntheticOptions& options) {
  SyntheticRun run = make_synthetic_run(options);
  add_gpu(run);
  Store store;
  fill_store(store, run);
  for (const RankRow& rank : run.ranks) {
    for (std::uint32_t id = 0; id < gpu_names().size(); ++id) store.add_name(rank.rank, id, gpu_names()[id]);
  }
  return store;
}

void add_gpu(SyntheticRun& run) {
  for (const RankRow& rank : run.ranks) {
    Gpu gpu(rank.rank);
    std::vector<Chunk*> chunks;
    for (Chunk& chunk : run.chunks) {
      if (chunk.rank == rank.rank) chunks.push_back(&chunk);
    }
    if (chunks.empty()) continue;
    for (const Chunk* chunk : chunks) {
      for (const ev::Event& event : chunk->events) gpu.see(event);
    }
    profile::GpuLanes lanes;
    lanes.know(kComputeStream, StreamId::gpu_compute);
    lanes.know(kGatherStream, StreamId::gpu_gather);
    lanes.know(kReduceStream, StreamId::gpu_reduce);
    profile::RecordJoin join(std::move(lanes), chunks.front()->times().begin_ns);
    join.add(gpu.batch);
    std::vector<profile::TimedEvent> events = join.take_all(chunks.back()->times().end_ns, 0);
    std::stable_sort(events.begin(), events.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::size_t at = 0;
    for (const auto& [ns, event] : events) {
      while (at + 1 < chunks.size() && ns > chunks[at]->times().end_ns) ++at;
      chunks[at]->events.push_back(event);
      chunks[at]->events.back().ticks = static_cast<std::uint64_t>(ns);
    }
    for (Chunk* chunk : chunks) {
      std::stable_sort(chunk->events.begin(), chunk->events.end(),
                       [](const ev::Event& a, const ev::Event& b) {
                         return static_cast<std::int64_t>(a.ticks) < static_cast<std::int64_t>(b.ticks);
                       });
    }
  }
}

}  // namespace shardscope::store
