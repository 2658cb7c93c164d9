// What tests of hangs build their runs from: a step that all ranks begin, collectives left open, ends.
#pragma once

#include <string>
#include <vector>

#include "app/store/silences.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::test {

inline constexpr auto kReduceOp = static_cast<std::uint8_t>(ev::CollectiveOp::reduce_scatter);

/// Every rank gathers #0 within a step; what follows is each test's own.
inline void common(RunBuilder& run, std::uint32_t world) {
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    run.instant(rank, 1'000'000, EventKind::step_begin, StreamId::host, 0);
    run.instant(rank, 1'000'100, EventKind::gate, StreamId::host, 1, 1, ev::kNoId,
                static_cast<std::uint8_t>(ev::GateKind::pre_forward));
    run.span(rank, 1'001'000, 1'002'000, EventKind::collective_begin, StreamId::gather, 0, 0, kGatherOp, 1000,
             4000);
  }
}

inline void open_gather(RunBuilder& run, std::uint32_t rank, std::int64_t at, std::uint32_t sequence,
                        std::uint8_t op = kGatherOp, std::int64_t bytes = 4000) {
  run.instant(rank, at, EventKind::collective_begin, StreamId::gather, sequence, 0, ev::kNoId, op, bytes / 4,
              bytes);
}

inline store::Message silent(std::uint32_t rank, std::int64_t at_ns, const std::string& text) {
  return {.at_ns = at_ns, .rank = rank, .severity = ev::Severity::warning, .text = text, .stands_for = 0};
}

/// By SIGKILL, whereupon rank 0 fails.
inline void rank_1_is_killed(store::Store& store) {
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    store::RankRow row = store.ranks()[rank];
    row.finished = rank == 0;
    row.exit_code = rank == 0 ? 1 : 128 + 9;
    row.connected = false;
    store.set_rank(row);
  }
}

/// A gather that the library ends by an error, as where it lost the connection to another of its ranks.
inline void failed_gather(RunBuilder& run, std::uint32_t rank, std::int64_t begin, std::int64_t end,
                          std::uint32_t sequence) {
  const std::uint32_t code = ev::collective_code(0, ev::CollectiveScope::world, 3);
  run.instant(rank, begin, EventKind::collective_begin, StreamId::gather, sequence, 0, code, kGatherOp, 1000,
              4000);
  run.instant(rank, end, EventKind::collective_end, StreamId::gather, sequence, 0, code | ev::kEndedByError,
              kGatherOp, 1000, 4000);
}

/// Ranks 0 and 2 wait in the next all-gather until it ends by an error; rank 1 has not begun it.
inline void gathers_fail(RunBuilder& run) {
  common(run, 3);
  failed_gather(run, 0, 2'000'000, 7'000'000, 1);
  failed_gather(run, 2, 2'500'000, 8'000'000, 1);
}

inline void over(store::Store& store, std::uint32_t rank, std::int32_t exit_code) {
  store::RankRow row = store.ranks()[rank];
  row.finished = exit_code < 128;
  row.exit_code = exit_code;
  row.connected = false;
  store.set_rank(row);
}

/// Describes the groups to every rank.
inline void describe(store::Store& store, std::uint32_t world, const std::vector<ev::GroupInfo>& groups) {
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    ev::RunTables tables = *store.rank_tables(rank);
    tables.groups = groups;
    store.set_tables(rank, tables);
  }
}

inline void open_in_group(RunBuilder& run, std::uint32_t rank, std::int64_t at, std::uint32_t group,
                          ev::CollectiveOp op = ev::CollectiveOp::all_gather) {
  run.instant(rank, at, EventKind::collective_begin, StreamId::gather, 1, 0,
              ev::collective_code(0, ev::CollectiveScope::group, group), static_cast<std::uint8_t>(op), 1000,
              4000);
}

}  // namespace shardscope::test
