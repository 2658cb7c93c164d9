// Runs of one step, with ranks on several nodes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "app/store/store.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::test {

/// "host-aa", "host-ab", ...
inline std::string host_of_node(std::uint32_t node) {
  return {'h', 'o', 's', 't', '-', static_cast<char>('a' + node / 26), static_cast<char>('a' + node % 26)};
}

/// `per_node` ranks on each host; `change` adds to each rank's tables.
template <typename Change>
store::Store described(std::uint32_t ranks, std::uint32_t per_node, const Change& change) {
  RunBuilder run(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    run.span(rank, 0, 1000, EventKind::step_begin, StreamId::host, 0);
  store::Store store = std::move(run.build());
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    store::RankRow row;
    row.rank = rank;
    row.host = host_of_node(rank / per_node);
    store.set_rank(row);
    ev::RunTables tables = store.tables();
    tables.rank = rank;
    tables.local_world = per_node;
    change(tables);
    store.set_tables(rank, tables);
  }
  return store;
}

inline store::Store of_nodes(std::uint32_t ranks, std::uint32_t per_node) {
  return described(ranks, per_node, [](ev::RunTables&) {});
}

}  // namespace shardscope::test
