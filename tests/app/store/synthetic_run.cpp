#include "tests/app/store/synthetic_run.h"

#include <algorithm>

#include "tests/app/store/synthetic_model.h"
#include "tests/app/store/synthetic_training.h"

namespace shardscope::store {
namespace {

/// Orders a rank's events as a publisher would send them and fills in the pool's bytes after each change.
void finish_events(std::vector<ev::Event>& events) {
  std::stable_sort(events.begin(), events.end(),
                   [](const ev::Event& a, const ev::Event& b) { return a.ticks < b.ticks; });
  std::int64_t pool = 0;
  for (ev::Event& event : events) {
    if (event.kind == ev::EventKind::memory_alloc) event.v1 = pool += event.v0;
    if (event.kind == ev::EventKind::memory_free) event.v1 = pool -= event.v0;
  }
}

}  // namespace

SyntheticRun make_synthetic_run(const SyntheticOptions& options) {
  SyntheticRun run;
  const ev::RunTables tables = make_synthetic_tables(options);
  SyntheticTraining training(options, tables);
  std::vector<RankClock>& ranks = training.play();
  for (std::uint32_t r = 0; r < options.world; ++r) {
    run.tables.push_back(tables);
    run.tables.back().rank = r;
    run.tables.back().pid = static_cast<std::int32_t>(1000 + r);
    std::vector<ev::Event>& events = ranks[r].events;
    finish_events(events);
    const std::int64_t offset = -static_cast<std::int64_t>(r) * options.clock_skew_ns;
    std::uint64_t sequence = 0;
    for (std::size_t i = 0; i < events.size(); i += options.chunk_events) {
      Chunk chunk;
      chunk.rank = r;
      chunk.sequence = sequence++;
      chunk.clock_offset_ns = offset;
      chunk.clock_residual_ns = 300 * static_cast<std::int64_t>(r);
      const std::size_t end = std::min(events.size(), i + options.chunk_events);
      chunk.events.assign(events.begin() + static_cast<std::ptrdiff_t>(i),
                          events.begin() + static_cast<std::ptrdiff_t>(end));
      for (ev::Event& event : chunk.events) event.ticks -= static_cast<std::uint64_t>(offset);
      run.chunks.push_back(std::move(chunk));
    }
    RankRow row;
    row.rank = r;
    row.connected = false;
    row.finished = true;
    row.host = "synthetic";
    row.pid = static_cast<std::int32_t>(1000 + r);
    row.clock_offset_ns = offset;
    row.clock_residual_ns = 300 * static_cast<std::int64_t>(r);
    run.ranks.push_back(row);
  }
  std::stable_sort(run.chunks.begin(), run.chunks.end(), [](const Chunk& a, const Chunk& b) {
    return a.times().end_ns + a.clock_offset_ns < b.times().end_ns + b.clock_offset_ns;
  });
  run.messages.push_back(
      {.at_ns = 0, .rank = 0, .severity = ev::Severity::info, .text = "synthetic run: nothing was trained"});
  return run;
}

SyntheticRun drained_by_thread(SyntheticRun run) {
  std::vector<Chunk> drained;
  for (const Chunk& chunk : run.chunks) {
    for (const bool host : {true, false}) {
      Chunk part;
      part.sequence = drained.size();
      part.clock_offset_ns = chunk.clock_offset_ns;
      for (const ev::Event& event : chunk.events) {
        if ((event.stream == ev::StreamId::host) == host) part.events.push_back(event);
      }
      drained.push_back(std::move(part));
    }
  }
  run.chunks = std::move(drained);
  return run;
}

void fill_store(Store& store, const SyntheticRun& run) {
  for (const ev::RunTables& tables : run.tables) store.set_tables(tables.rank, tables);
  for (const Chunk& chunk : run.chunks) store.ingest(chunk);
  for (const RankRow& row : run.ranks) store.set_rank(row);
  for (const Message& message : run.messages) store.add_message(message);
}

void record(RecordingWriter& writer, const SyntheticRun& run) {
  Store store;
  fill_store(store, run);
  for (const ev::RunTables& tables : run.tables) writer.tables(tables.rank, tables);
  for (const Chunk& chunk : run.chunks) writer.append(chunk);
  for (const Message& message : run.messages) writer.message(message);
  writer.finish(store);
}

Store make_synthetic_store(const SyntheticOptions& options) {
  Store store;
  fill_store(store, make_synthetic_run(options));
  return store;
}

}  // namespace shardscope::store
