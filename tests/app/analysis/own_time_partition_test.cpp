// A rank's own time is what the partition of 2.2 leaves without checkpoint and exposed communication: it is
// measured while blocks are made, by code of its own, and must say the same of the same run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "app/store/block_maker.h"
#include "app/store/chunk.h"
#include "app/store/own_times.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

constexpr std::int64_t kOneStep = 10'000'000;

struct Source {
  std::string name;
  std::string framework = {};
  std::string device = {};
  std::int32_t stage = 3;
  bool modules = true, kernels = false, records = false;
  bool known = true;
  std::uint32_t collective = ev::kNoId;  ///< their code
};

/// Steps of 10 ms with a checkpoint, a pause, a wait and collectives, partly covered.
std::vector<ev::Event> events_of(const Source& source, std::uint32_t steps) {
  std::vector<ev::Event> out;
  const auto span = [&](std::int64_t begin, std::int64_t end, EventKind kind, StreamId stream,
                        std::uint32_t a = 0, std::uint8_t code = 0) {
    const auto event = [&](std::int64_t at, EventKind of) {
      const bool collective = kind == EventKind::collective_begin;
      const std::uint32_t c = collective ? source.collective : ev::kNoId;
      out.push_back({static_cast<std::uint64_t>(at), of, stream, code, a, ev::kNoId, c, 0, 0});
    };
    event(begin, kind);
    event(end, ev::end_of(kind));
  };
  for (std::uint32_t step = 0; step < steps; ++step) {
    const auto ms = [&](double n) { return step * kOneStep + static_cast<std::int64_t>(n * 1e6); };
    span(ms(0), ms(10), EventKind::step_begin, StreamId::host, step);
    if (source.modules) span(ms(0.5), ms(4), EventKind::module_begin, StreamId::compute, 1);
    span(ms(1), ms(1.5 + 0.1 * step), EventKind::fetch_wait_begin, StreamId::compute, 1);
    if (source.kernels) span(ms(2), ms(3.5), EventKind::kernel_begin, StreamId::compute, 1);
    span(ms(0.8), ms(2.2), EventKind::collective_begin, StreamId::gather, 1, kGatherOp);
    span(ms(3), ms(5.5), EventKind::collective_begin, StreamId::reduce, 1, kGatherOp);
    span(ms(5.2), ms(6), EventKind::optimizer_begin, StreamId::worker, 1);
    span(ms(6), ms(7), EventKind::optimizer_begin, StreamId::compute, 1);
    span(ms(7.2), ms(8), EventKind::phase_begin, StreamId::compute, 0,
         static_cast<std::uint8_t>(ev::Phase::checkpoint_save));
    span(ms(7.8), ms(8.4), EventKind::collective_begin, StreamId::gather, 1, kGatherOp);
    span(ms(8.2), ms(9), EventKind::paused_begin, StreamId::host);
    if (!source.records) continue;
    span(ms(0), ms(10), EventKind::gpu_records_begin, StreamId::gpu_records);
    span(ms(1.2), ms(4.4), EventKind::gpu_begin, StreamId::gpu_compute, 1);
    span(ms(3.9), ms(6.1), EventKind::gpu_begin, StreamId::gpu_reduce, 1);
  }
  std::ranges::stable_sort(out, [](const ev::Event& a, const ev::Event& b) {
    return a.ticks != b.ticks ? a.ticks < b.ticks : ev::is_end(a.kind) && !ev::is_end(b.kind);
  });
  return out;
}

TEST(OwnTimePartition, IsWhatThePartitionLeaves) {
  const std::vector<Source> sources = {
      {.name = "own runtime"},
      {.name = "own runtime, kernels", .kernels = true},
      {.name = "own runtime on a GPU with records", .device = "cuda:0", .records = true},
      {.name = "own runtime on a GPU without", .device = "cuda:0"},
      {.name = "DDP", .framework = "DDP"},
      {.name = "FSDP2 on a CPU, synchronous calls",
       .framework = "FSDP2",
       .device = "cpu",
       .collective = ev::collective_code(0, ev::CollectiveScope::world, 2) | ev::kHoldsHost},
      {.name = "DDP, optimizer alone", .framework = "DDP", .modules = false, .known = false},
      {.name = "DeepSpeed 2, optimizer alone",
       .framework = "DeepSpeed 0.16",
       .stage = 2,
       .modules = false,
       .known = false},
      {.name = "DeepSpeed 3 on a GPU", .framework = "DeepSpeed 0.16", .device = "cuda:0", .records = true},
      {.name = "DeepSpeed 3 on a GPU without records",
       .framework = "DeepSpeed 0.16",
       .device = "cuda:0",
       .known = false}};
  constexpr std::uint32_t kSteps = 5;
  for (const Source& source : sources) {
    store::Chunk chunk;
    chunk.events = events_of(source, kSteps);
    RunBuilder run(1, source.stage, source.framework);
    run.on(source.device);
    store::Store& store = run.build();
    store::BlockMaker maker;
    store::OwnTimes times;
    maker.measure(times);
    maker.tables(store.tables());
    (void)maker.make(chunk);
    maker.measure_rest();
    chunk.sequence = 1;  // behind the empty one of build()
    store.ingest(chunk);
    const std::vector<store::OwnTimeRow> rows = times.changes().rows;
    EXPECT_EQ(rows.size(), source.known ? kSteps : 0U) << source.name;
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      const TimePartition part = partition_time(store, 0, step * kOneStep, (step + 1) * kOneStep);
      EXPECT_EQ(part.known(), source.known) << source.name;
      if (step >= rows.size()) continue;
      EXPECT_GT(part.exposed_comm_ns, 0) << source.name;
      EXPECT_EQ(rows[step].waited_ns, part.exposed_comm_ns) << source.name << ", step " << step;
      EXPECT_EQ(rows[step].own_ns, part.total_ns - part.checkpoint_ns - part.exposed_comm_ns)
          << source.name << ", step " << step;
    }
  }
}

/// A sub-group's update of 100 us to 900 us: the disk is another's until 200, its own states are read until
/// 500 and written from 700 on. The CPU computes in between.
TEST(OwnTimePartition, AnUpdateThatWaitsForItsStatesComputesBetweenReadAndWrite) {
  RunBuilder run(1);
  run.span(0, 0, 1000'000, EventKind::step_begin, StreamId::host, 0);
  run.span(0, 0, 100'000, EventKind::module_begin, StreamId::compute, 1, 0);
  run.span(0, 100'000, 900'000, EventKind::optimizer_begin, StreamId::worker, 1, 0);
  const auto moves = [&](std::int64_t begin, std::int64_t end, ev::TransferKind kind, std::uint32_t group) {
    run.span(0, begin, end, EventKind::transfer_begin, StreamId::nvme, ev::kNoId, group,
             static_cast<std::uint8_t>(kind), 4096);
  };
  moves(100'000, 200'000, ev::TransferKind::nvme_write, 0);
  moves(200'000, 500'000, ev::TransferKind::nvme_read, 1);
  moves(700'000, 900'000, ev::TransferKind::nvme_write, 1);
  const TimePartition time = partition_time(run.build(), 0, 0, 1000'000);
  EXPECT_EQ(time.compute_ns, 100'000 + 200'000);
  EXPECT_EQ(time.exposed_copy_ns, 100'000 + 300'000 + 200'000);
  EXPECT_EQ(time.idle_ns, 100'000);
}

}  // namespace
}  // namespace shardscope::analysis
