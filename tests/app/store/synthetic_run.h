// A made-up but plausible run for tests: a small GPT trained with ZeRO by several ranks on a virtual clock,
// as the tables and chunks that a collector would have received. Deterministic for a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/store/chunk.h"
#include "app/store/recording.h"
#include "app/store/store.h"
#include "instrumentation/emitter.h"

namespace shardscope::store {

struct SyntheticOptions {
  std::uint32_t world = 4;
  std::int32_t stage = 3;
  std::uint32_t steps = 4;
  std::uint32_t micro_steps = 1;  ///< per step
  std::uint32_t layers = 4;
  std::int64_t width = 256, vocabulary = 512, context = 128;
  std::int64_t bucket_elems = 400'000;
  std::int64_t prefetch_elems = 600'000;   ///< 0: nothing is prefetched
  std::int64_t persistence_elems = 1'000;  ///< parameters up to this size stay
  double link_gbps = 8, link_latency_us = 40;
  double compute_gflops = 60;
  std::uint32_t straggler = 2;  ///< this rank computes 30 % slower; kNoId: none
  std::uint64_t seed = 1;
  std::size_t chunk_events = 1024;
  /// Collectives name the gather or bucket that they are of, as the engine's do; else one number for each
  /// lane.
  bool plan_ids = false;
  std::int64_t clock_skew_ns = 5'000'000;  ///< rank r's clock is r times this ahead of the collector's
};

struct SyntheticRun {
  std::vector<ev::RunTables> tables;  ///< by rank
  std::vector<Chunk> chunks;          ///< of all ranks, in the order in which they would arrive
  std::vector<Message> messages;
  std::vector<RankRow> ranks;
};

[[nodiscard]] SyntheticRun make_synthetic_run(const SyntheticOptions& options = {});
/// The same with each chunk in two, its host's events and then those of the other threads: as rings are
/// drained, consecutive chunks overlap in time. Of one rank.
[[nodiscard]] SyntheticRun drained_by_thread(SyntheticRun run);
/// A run as a store.
[[nodiscard]] Store make_synthetic_store(const SyntheticOptions& options = {});
void fill_store(Store& store, const SyntheticRun& run);
/// Writes the run as a collector would, to the end.
void record(RecordingWriter& writer, const SyntheticRun& run);

}  // namespace shardscope::store
