// A run of two ranks with what makes durations hard: one is held by the user for 6.47 s in the middle of a
// module, the other one is gone while it waits for a gather that was issued at one module for another.
#pragma once

#include "app/store/chunk.h"
#include "app/store/store.h"
#include "instrumentation/param_status.h"

namespace shardscope::store {

inline constexpr std::int64_t kMs = 1'000'000;
inline constexpr std::int64_t kPauseNs = 6'470 * kMs;
/// The module of rank 0: 10 ms without the pause. Rank 1's last event is at 25 ms.
inline constexpr std::int64_t kGoneNs = 25 * kMs;

/// Without `held` no pause was recorded: the module takes all of its span.
inline Store odd_ends(bool held = true) {
  using ev::EventKind;
  using ev::StreamId;
  Store store;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ev::RunTables tables;
    tables.run_id = "odd";
    tables.model = "net";
    tables.rank = rank;
    tables.world = 2;
    tables.stage = 3;
    tables.elems = 100;
    tables.modules = {{0, ev::kNoId, "", "Net", {}, true},
                      {1, 0, "net.first", "Linear", {0}, true},
                      {2, 0, "net.second", "Linear", {1}, true}};
    tables.params = {{0, "net.first.weight", "f32", {50}, 50, 25, 0, {1}, false},
                     {1, "net.second.weight", "f32", {50}, 50, 25, 0, {2}, false}};
    store.set_tables(rank, tables);
    Chunk chunk;
    chunk.rank = rank;
    const auto add = [&](std::int64_t at, EventKind kind, StreamId lane, std::uint32_t a,
                         std::uint32_t b = ev::kNoId, std::uint32_t c = ev::kNoId, std::uint8_t code = 0,
                         std::int64_t v0 = 0) {
      chunk.events.push_back({static_cast<std::uint64_t>(at), kind, lane, code, a, b, c, v0, 200});
    };
    const auto in_flight = ev::status_code(1, ev::StatusCause::prefetch);
    const auto available = ev::status_code(2, ev::StatusCause::prefetch);
    add(0, EventKind::step_begin, StreamId::host, 0);
    add(1 * kMs, EventKind::module_begin, StreamId::compute, 1);
    add(2 * kMs, EventKind::prefetch_issued, StreamId::host, 5, 1, 1, 0, 50);
    add(2 * kMs, EventKind::collective_part, StreamId::host, 9, 1, ev::kNoId, 0, 50);
    add(3 * kMs, EventKind::param_status, StreamId::gather, 1, 1, 5, in_flight, 50);
    add(3 * kMs, EventKind::collective_begin, StreamId::gather, 9, 5, ev::kNoId, 0, 50);
    if (rank == 0) {
      add(4 * kMs, EventKind::collective_end, StreamId::gather, 9, 5, ev::kNoId, 0, 50);
      if (held) {
        add(5 * kMs, EventKind::paused_begin, StreamId::host, 3);
        add(5 * kMs + kPauseNs, EventKind::paused_end, StreamId::host, 3);
      }
      add(11 * kMs + kPauseNs, EventKind::module_end, StreamId::compute, 1);
      add(12 * kMs + kPauseNs, EventKind::prefetch_outcome, StreamId::compute, 5, 2, 1, 0, 8 * kMs);
      add(12 * kMs + kPauseNs, EventKind::param_status, StreamId::compute, 1, 2, 5, available, 50);
      add(20 * kMs + kPauseNs, EventKind::step_end, StreamId::host, 0);
    } else {
      add(15 * kMs, EventKind::fetch_wait_begin, StreamId::compute, 2, 5, ev::kNoId, 0, 200);
      add(kGoneNs, EventKind::tokens, StreamId::host, 0);
    }
    store.ingest(chunk);
    RankRow row;
    row.rank = rank;
    row.connected = rank == 0;
    row.finished = rank == 0;
    row.exit_code = rank == 0 ? 1 : 128 + 9;
    row.events = chunk.events.size();
    if (rank == 0) row.exit_message = "rank 0 failed: rank 1 ended (killed, crashed or left early)";
    store.set_rank(row);
  }
  return store;
}

/// Rank 1 completes the step after all, and never ends what it has open in it.
inline void end_the_step(Store& store) {
  Chunk rest;
  rest.rank = 1;
  rest.sequence = 1;
  rest.events.push_back({static_cast<std::uint64_t>(kGoneNs + kMs), ev::EventKind::step_end,
                         ev::StreamId::host, 0, 0, ev::kNoId, ev::kNoId, 0, 0});
  store.ingest(rest);
}

}  // namespace shardscope::store
